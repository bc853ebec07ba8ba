// The port of what keeps a subscription whole when its provider is replaced. Says what every kind
// must do, and nothing of how.
import type { ProviderSet } from "../../core/provider/profile.ts";
import type { Subscription } from "../../core/stream/subscription.ts";
import type { Runtime } from "../../runtime.ts";
import type { TimerWheel } from "../timer-wheel.ts";
import type { CheckedStream, LogChecks } from "./log-checks.ts";
import type { Source } from "./source.ts";

/**
 * Why a source cannot serve: `far` = more was missed than may be asked for, `unanswered` = it does
 * not give what it must have, `backlog` = it sends faster than can be checked, `missing_logs` = it
 * left logs out, which have been told. `forgotten`: no source can, since logs would have to be
 * taken back that are no longer held.
 */
export type SourceFailure = "far" | "unanswered" | "backlog" | "missing_logs" | "forgotten";

/** What continuity reports to. */
export interface EventSink {
  /** Results for the subscribers, in order. */
  emit(results: readonly Buffer[]): void;
  /** The source cannot serve any longer. */
  failed(why: SourceFailure): void;
}

/** Keeps a subscription whole across sources. */
export interface Continuity {
  /**
   * Goes on at a source, from where the last one stopped; events wait until `release`. Resolves
   * with null when nothing is missing any more. `round` is how often all sources were tried in
   * vain: the time that one may take grows with it.
   */
  attach(source: Source, round: number): Promise<SourceFailure | null>;
  /** Tells what has waited, and from now on what comes. */
  release(): void;
  /** The source is gone, and with it what it sent and nobody was told. */
  detach(): void;
  /** An event of the source; `head` = a head, otherwise what the subscription is to. */
  hear(raw: Buffer, head: boolean): void;
  /** When the source last told of a head; null = it need not. */
  readonly lastHeadAtMs: number | null;
  /** Height that has been told; null where there is none. */
  readonly height: number | null;
  /** Blocks that had to be asked for, and frames that were no events. */
  readonly filledBlocks: number;
  readonly strays: number;
}

/** What continuity works with. */
export interface ContinuityParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly subscription: Subscription;
  /** As it is now: a reload may change it. */
  readonly set: () => ProviderSet;
  readonly stream: () => CheckedStream;
  /** Of its profile and chain. */
  readonly checks: LogChecks;
}
