// The reply to one request before it is rendered: its outcome, the source of the answer, its cost
// and its evidence.
import type { CallEnd } from "../../../core/call-end.ts";
import type { Transport } from "../../../core/provider/profile.ts";
import type { AnswerSource } from "../../../core/routing/answer-source.ts";
import type { Outcome } from "../../../upstream/engine/answer.ts";
import type { RoutedCall } from "../../../upstream/engine/router.ts";
import type { Billing } from "../../payment/call-payment.ts";
import type { Target } from "../target.ts";

/** The reply to one request, before it is rendered. */
export interface Reply {
  /** The caller's id as JSON text; null = a notification, which is not answered. */
  readonly id: string | null;
  readonly outcome: Outcome;
  /** Source of the answer; it determines the charge. */
  readonly source: AnswerSource;
  /** Null if no provider was involved. */
  readonly route: RoutedCall | null;
  readonly target: Target;
  readonly requestId: string;
  /** The transport between caller and service. */
  readonly transport: Transport;
  /** True if the evidence is sent as a separate message. */
  readonly notify: boolean;
  /** Called with whether the reply was shown to the caller as it is; null = nobody listens. */
  readonly written: ((shown: boolean) => void) | null;
  /** To be called once, as a streamed answer ended; null = it is not streamed: it is counted. */
  readonly ended: ((end: CallEnd) => void) | null;
  /** Null for callers without a key and for invalid requests. */
  readonly billing: Billing | null;
  /**
   * Settles the cost of the call once the whole answer was delivered or lost; null = already
   * settled. Streamed answers and batch items have it.
   */
  readonly settle: DeliveryCallback | null;
}

/**
 * Settles the cost of an answer. `delivered` = true if it was written completely, false if the
 * caller left before.
 */
export type DeliveryCallback = (delivered: boolean) => void;

/** Called with whether the answer was written completely. */
export type WriteListener = (written: boolean) => void;
