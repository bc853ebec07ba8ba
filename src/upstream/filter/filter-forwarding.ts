// Polls of filters that another worker of this node keeps: the claim of a filter names its keeper,
// which is asked over the bus. Answers the other workers about the filters that are kept here.
import type { Bus, BusReply, QuestionTopic, WorkerId } from "../../core/workers/bus.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";
import type { Filters, PolledFilter } from "./filters.ts";

/** Names a filter for its owner. */
export interface FilterRef {
  readonly owner: string;
  readonly id: string;
}

/** What became of a call for a filter. */
export type FilterAnswer<T> =
  | { readonly kind: "found"; readonly value: T }
  /** There is no such filter. */
  | { readonly kind: "none" }
  /** The worker that keeps it does not answer now. */
  | { readonly kind: "silent" }
  /** It cannot go on here now: the database does not answer, or no provider does. */
  | { readonly kind: "away" };

/** The other workers of this node. */
export interface NodeWorkers {
  readonly bus: Bus;
  /** The other living worker that a claim names; null = another process. */
  readonly workerOf: (node: string) => WorkerId | null;
}

/** Dependencies. */
export interface FilterForwardingParts extends NodeWorkers {
  readonly timerWheel: TimerWheel;
  /** Those that are kept here. */
  readonly filters: Pick<Filters, "uninstall">;
  /** Polls a filter that is kept here; null = it is not. */
  readonly pollHere: (ref: FilterRef) => Promise<PolledFilter | null>;
}

/** How long another worker has to answer. */
const ANSWER_MS = 5_000;
/** Polls of other workers whose answers may be on their way to callers, and for how long. */
const MAX_UNSETTLED = 10_000;
const SETTLE_MS = 60_000;

/** A poll of another worker, until that worker says what became of the answer. */
interface Unsettled {
  readonly from: WorkerId;
  /** It may be settled before it is answered. */
  readonly polled: Promise<PolledFilter | null>;
  readonly timer: Timer;
}

/** Forwards calls for filters between the workers of a node. */
export class FilterForwarding {
  readonly #parts: FilterForwardingParts;
  readonly #unsettled = new Map<string, Unsettled>();
  #lastPoll = 0;

  constructor(parts: FilterForwardingParts) {
    this.#parts = parts;
    const { bus, filters, pollHere } = parts;
    bus.serve(POLL, async ({ poll, ...ref }, from) => {
      const polled = pollHere(ref);
      this.#keep(`${from} ${poll}`, from, polled);
      return (await polled)?.json ?? "none";
    });
    bus.serve(SETTLE, ({ poll, written }, from) => {
      this.#settle(`${from} ${poll}`, written);
      return true;
    });
    bus.serve(UNINSTALL, ({ owner, id }) => filters.uninstall(owner, id));
    bus.onWorkers(() => {
      const living = [...bus.workers(), ...bus.silent()];
      for (const [key, { from }] of [...this.#unsettled])
        if (!living.includes(from)) this.#settle(key, false);
    });
  }

  /**
   * Polls a filter at the worker of this node that keeps it as `node`, if there is one. An answer
   * that did not come in time is told again.
   */
  async poll(node: string, ref: FilterRef): Promise<FilterAnswer<PolledFilter>> {
    const keeper = this.#parts.workerOf(node);
    if (keeper === null) return { kind: "none" };
    const poll = ++this.#lastPoll;
    const settle = (written: boolean): void =>
      void this.#request(keeper, SETTLE, { poll, written });
    const reply = await this.#request(keeper, POLL, { ...ref, poll });
    if (!reply.ok) {
      if (reply.reason === "gone") return { kind: "none" };
      settle(false);
      return { kind: "silent" };
    }
    const json = reply.value;
    if (json === "none") return { kind: "none" };
    return { kind: "found", value: { json, isEmpty: json.length <= NO_CHANGES.length, settle } };
  }

  /** Ends a filter at the worker that keeps it as `node`. */
  uninstall(node: string, ref: FilterRef): void {
    const keeper = this.#parts.workerOf(node);
    if (keeper !== null) void this.#request(keeper, UNINSTALL, ref);
  }

  #request<M, R>(keeper: WorkerId, topic: QuestionTopic<M, R>, message: M): Promise<BusReply<R>> {
    return this.#parts.bus.request(keeper, { topic, message, timeoutMs: ANSWER_MS });
  }

  /** Keeps a poll until it is settled; without a word of its worker its changes are told again. */
  #keep(key: string, from: WorkerId, polled: Unsettled["polled"]): void {
    const timer = this.#parts.timerWheel.set(SETTLE_MS, () => this.#settle(key, false));
    this.#unsettled.set(key, { from, polled, timer });
    const [oldest = key] = this.#unsettled.keys();
    if (this.#unsettled.size > MAX_UNSETTLED) this.#settle(oldest, false);
  }

  #settle(key: string, written: boolean): void {
    const unsettled = this.#unsettled.get(key);
    this.#unsettled.delete(key);
    unsettled?.timer.clear();
    void unsettled?.polled.then((polled) => polled?.settle(written));
  }
}

const NO_CHANGES = "[]";

/** `poll`: its number, as the asking worker counts. */
const POLL: QuestionTopic<FilterRef & { readonly poll: number }, Buffer | "none"> = {
  name: "filter.poll",
};

const SETTLE: QuestionTopic<{ readonly poll: number; readonly written: boolean }, true> = {
  name: "filter.settle",
};

const UNINSTALL: QuestionTopic<FilterRef, boolean> = { name: "filter.uninstall" };
