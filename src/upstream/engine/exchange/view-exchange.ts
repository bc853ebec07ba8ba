// Shares the view of the chain between the processes of a service: which block is the tip, and
// which transactions were accepted. By the bus between workers, and by hints between nodes. Each
// hint may be lost; then a process finds out by itself, or does not.
import { z } from "zod";
import { FULL_MS, take } from "../../../core/billing/gcra.ts";
import { parseJson } from "../../../core/fields.ts";
import type { Bus, Topic } from "../../../core/workers/bus.ts";
import type { HintPort } from "../../../core/workers/hint-port.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Tracker } from "../../health/tracker.ts";
import { ACCEPTED, type AcceptedTransactions, HINT_FIELDS } from "./accepted-transactions.ts";

/** The parts of an exchange. */
export interface ViewExchangeParts {
  readonly runtime: Pick<Runtime, "now" | "after">;
  readonly accepted: AcceptedTransactions;
  /** Every tracker that is served, by its key. */
  readonly trackersByKey: () => ReadonlyMap<string, Tracker>;
  readonly bus: Bus;
}

type BlockHint = Exclude<ViewHint, { readonly kind: "hello" }>;
type TipHint = Extract<ViewHint, { readonly kind: "tip" }>;

/** Where a hint came from. */
type Origin = "bus" | "nodes";

/** A tip is told at most once in this time, for each set. */
const TIP_MS = 50;
/** A tip that is further ahead is not believed. */
const MOST_AHEAD = 5;
/** Of a process: the transactions of its callers, and the tips of its sets. */
const RATE = { perSecond: 500, burst: 2_000 };
const DEFAULT_BLOCK_TIME_MS = 12_000;
/** Transactions that a process which has just begun is told of, at most once in this time. */
const NEWEST = 256;
const NEWEST_MS = 1_000;

/** Tells of tips and transactions, and hears of those of other processes. */
export class ViewExchange {
  readonly #parts: ViewExchangeParts;
  readonly #stops: (() => void)[];
  readonly #watched = new Map<Tracker, () => void>();
  /** Tips that are to be told once it is time. */
  readonly #tips = new Map<string, { readonly tip: TipHint; readonly origin: Origin | null }>();
  readonly #tipToldAtMs = new Map<string, number>();
  #served: ReadonlyMap<string, Tracker> = new Map();
  #nodes: HintPort | null = null;
  /** The sender of the tip that is being raised; null = providers of this process. */
  #origin: Origin | null = null;
  #fullAtMs = FULL_MS;
  #newestToldAtMs = Number.NEGATIVE_INFINITY;
  #cancelTips: (() => void) | null = null;

  constructor(parts: ViewExchangeParts) {
    this.#parts = parts;
    const { accepted, bus } = parts;
    this.#stops = [
      accepted.onAccepted((message) => {
        const hint = { kind: "transaction", ...message } as const;
        if (!this.#mayTell()) return;
        bus.publish(VIEW_HINTS, hint);
        this.#nodes?.tell(hintText(hint));
      }),
      bus.subscribe(VIEW_HINTS, (hint, from) => {
        const first = bus.workers().find((worker) => worker !== from);
        if (hint.kind !== "hello") this.#hear(ownCopy(hint), "bus");
        else if (first === bus.self) this.#tellNewest((newest) => bus.publish(VIEW_HINTS, newest));
      }),
    ];
    bus.publish(VIEW_HINTS, { kind: "hello" });
  }

  /** Other nodes are there from now on. */
  join(nodes: HintPort | null): void {
    if (nodes === null) return;
    this.#nodes = nodes;
    const receive = (text: string): void => {
      const hint = hintOf(text);
      if (hint === null) return;
      if (hint.kind !== "hello") this.#hear(hint, "nodes");
      else if (this.#speaksForNode()) this.#tellNewest((newest) => nodes.tell(hintText(newest)));
    };
    this.#stops.push(nodes.subscribe(receive));
    nodes.tell(hintText({ kind: "hello" }));
  }

  /** Follows the trackers that are served now. */
  watch(): void {
    const served = this.#parts.trackersByKey();
    this.#served = served;
    const trackers = new Set(served.values());
    for (const [tracker, stop] of this.#watched)
      if (!trackers.has(tracker)) {
        stop();
        this.#watched.delete(tracker);
      }
    for (const [set, tracker] of served)
      if (!this.#watched.has(tracker)) this.#watched.set(tracker, this.#follow(set, tracker));
  }

  close(): void {
    for (const stop of [...this.#stops, ...this.#watched.values()]) stop();
    this.#watched.clear();
    this.#cancelTips?.();
    this.#cancelTips = null;
  }

  #follow(set: string, tracker: Tracker): () => void {
    const { chainId } = tracker.set.chain;
    return tracker.blocks.view.attend(({ number, hash }, reorganised) => {
      // Each process hears of reorganisations from its own providers.
      if (reorganised !== undefined || this.#origin === "nodes") return;
      this.#tellTip({ kind: "tip", set, chainId, number, hash });
    });
  }

  #tellTip(tip: TipHint): void {
    const origin = this.#origin;
    // The worker that found the tip told it to other workers already.
    if (origin === "bus" && !this.#speaksForNode()) return;
    this.#tips.set(tip.set, { tip, origin });
    const sinceMs = this.#parts.runtime.now() - (this.#tipToldAtMs.get(tip.set) ?? -TIP_MS);
    if (sinceMs >= TIP_MS) return this.#tellTips();
    this.#cancelTips ??= this.#parts.runtime.after(TIP_MS - sinceMs, () => this.#tellTips());
  }

  #tellTips(): void {
    const { bus, runtime } = this.#parts;
    this.#cancelTips?.();
    this.#cancelTips = null;
    const nowMs = runtime.now();
    for (const { tip, origin } of this.#tips.values()) {
      if (!this.#mayTell()) break;
      if (origin === null) bus.publish(VIEW_HINTS, tip);
      if (this.#speaksForNode()) this.#nodes?.tell(hintText(tip));
      this.#tipToldAtMs.set(tip.set, nowMs);
    }
    this.#tips.clear();
    if (this.#tipToldAtMs.size > this.#watched.size + MOST_AHEAD) this.#tipToldAtMs.clear();
  }

  /**
   * One worker sends the tips of all workers to other nodes; each worker hears other nodes by
   * itself.
   */
  #speaksForNode(): boolean {
    const { bus } = this.#parts;
    return bus.workers()[0] === bus.self;
  }

  #mayTell(): boolean {
    const after = take(this.#fullAtMs, RATE, this.#parts.runtime.now());
    if (after !== null) this.#fullAtMs = after;
    return after !== null;
  }

  #tellNewest(tell: (hint: ViewHint) => void): void {
    const nowMs = this.#parts.runtime.now();
    if (nowMs - this.#newestToldAtMs < NEWEST_MS) return;
    this.#newestToldAtMs = nowMs;
    for (const message of this.#parts.accepted.newest(NEWEST))
      if (this.#mayTell()) tell({ kind: "transaction", ...message });
  }

  #hear(hint: BlockHint, origin: Origin): void {
    const tracker = this.#served.get(hint.set);
    if (tracker !== undefined && tracker.set.chain.chainId !== hint.chainId) return;
    if (hint.kind === "transaction") {
      const blockTimeMs = tracker?.set.chain.blockTimeMs ?? DEFAULT_BLOCK_TIME_MS;
      return this.#parts.accepted.hear(hint, blockTimeMs);
    }
    const tip = tracker?.blocks.view.tip ?? null;
    if (tracker === undefined || tip === null || hint.number > tip.number + MOST_AHEAD) return;
    // The tip is known already: only its hash may be new.
    if (hint.number === tip.number && (hint.hash === null || tip.hash !== null)) return;
    this.#origin = origin;
    tracker.blocks.view.raise({ number: hint.number, hash: hint.hash });
    this.#origin = null;
  }
}

/** Copies the bytes to keep: a slice would keep the whole message in memory. */
function ownCopy(hint: BlockHint): BlockHint {
  if (hint.kind !== "transaction" || hint.raw === null) return hint;
  return { ...hint, raw: Buffer.from(hint.raw) };
}

/** A hint as text, the form in which it reaches other nodes. */
const HINT = z.discriminatedUnion("kind", [
  /** The sender has just started, and knows no transaction. */
  z.object({ kind: z.literal("hello") }),
  /** The newest block that it serves of a set. */
  z.object({ kind: z.literal("tip"), ...HINT_FIELDS, hash: HINT_FIELDS.hash.nullable() }),
  /** A transaction that a provider has accepted. */
  ACCEPTED.extend({ kind: z.literal("transaction") }),
]);

export type ViewHint = z.infer<typeof HINT>;

/** Hints on the bus between workers. */
const VIEW_HINTS: Topic<ViewHint> = { name: "view.hint" };

/** A hint as text, for those who are reached by texts alone. */
export function hintText(hint: ViewHint): string {
  return JSON.stringify(
    hint.kind === "transaction" ? { ...hint, raw: hint.raw?.toString("base64") ?? null } : hint,
  );
}

/** Reads such a text; null = it is none of this version. */
export function hintOf(text: string): ViewHint | null {
  return HINT.safeParse(parseJson(text)).data ?? null;
}
