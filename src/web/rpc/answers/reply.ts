// The reply to one request before it is rendered: its outcome, the source of the answer, its cost
// and its evidence.
import { isCharged } from "../../../core/billing/charging.ts";
import type { PublicNode } from "../../../core/cluster-health.ts";
import type { Transport } from "../../../core/provider/profile.ts";
import { type AnswerSource, providerOf } from "../../../core/routing/answer-source.ts";
import type { Plan } from "../../../core/routing/plan.ts";
import { newCall } from "../../../core/rpc/call.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Outcome } from "../../../upstream/engine/answer.ts";
import type { RoutedCall } from "../../../upstream/engine/router.ts";
import type { Billing } from "../../payment/call-payment.ts";
import type { Target } from "../target.ts";
import { type Evidence, evidenceOf } from "./evidence.ts";

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

/** What evidence is made with. */
export interface EvidenceParts {
  readonly runtime: Pick<Runtime, "now">;
  readonly node: PublicNode | null;
}

/** The evidence of a reply. */
export function evidenceOfReply(reply: Reply, { runtime, node }: EvidenceParts): Evidence {
  const { route, target } = reply;
  const selected = providerOf(reply.source);
  return evidenceOf({
    requestId: reply.requestId,
    strategy: target.strategy,
    chain: target.chain,
    transport: reply.transport,
    profile: target.profile,
    plan: planOfReply(reply),
    attempts: route?.traces.map(({ attempt }) => attempt) ?? [],
    breakerState:
      selected === null
        ? null
        : target.tracker.health(selected, route?.traces.at(-1)?.attempt.transport ?? "http")
            .breaker,
    source: reply.source,
    cacheUse: route?.cacheUse ?? null,
    block: route?.at ?? null,
    tip: route === null ? null : tipStateOf(route),
    chargedCu: chargedCuOf(reply),
    node,
    endToEndMs: route === null ? 0 : runtime.now() - route.startedAtMs,
  });
}

/** The plan of a call; of an answer that no provider was asked for, the one of now. */
function planOfReply({ route, source, target: { tracker, strategy, pin } }: Reply): Plan {
  const isAsked = route !== null && route.traces.length > 0;
  if (isAsked || source.kind === "none") return route?.plan ?? NO_PLAN;
  return route === null
    ? tracker.plan(ANY_CALL, { strategy, transport: null, pin })
    : tracker.plan(route.request.call, route.request);
}

function tipStateOf({ request: { view }, isStale }: RoutedCall): Evidence["tip"] | null {
  if (view === undefined) return null;
  if (view === null || isStale) return "stale";
  return view.isAlone ? "alone" : null;
}

function chargedCuOf({ billing, source }: Pick<Reply, "billing" | "source">): number | null {
  if (billing === null || !("grant" in billing)) return null;
  return isCharged(source) ? billing.cu : 0;
}

const NO_PLAN: Plan = { candidates: [], excluded: [] };
/** A call that every provider can be asked. */
const ANY_CALL = newCall("eth_chainId", "[]");

/** Called with whether the answer was written completely. */
export type WriteListener = (written: boolean) => void;

/** The listeners of one answer. */
export class WriteListeners {
  #listeners: WriteListener[] = [];

  add(listener: WriteListener): void {
    this.#listeners.push(listener);
  }

  /** Calls each listener once and removes it. */
  notify(written: boolean): void {
    for (const listener of this.#listeners.splice(0)) listener(written);
  }
}
