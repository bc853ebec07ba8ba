// Filters that other workers of this service keep: their ids name the worker, which is asked over
// the bus. Answers questions of others about the filters that are kept here.
import type { Bus, BusReply, QuestionTopic, WorkerId } from "../../core/workers/bus.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";
import type { FilterPlace, Filters, PolledFilter } from "./filters.ts";

/** Names a filter for its owner. */
export interface FilterRef {
  readonly owner: string;
  readonly id: string;
}

/** What became of a question about a filter of another worker. */
export type RemoteAnswer<T> =
  | { readonly kind: "found"; readonly value: T }
  /** There is no such filter, or its worker is gone and the filter with it. */
  | { readonly kind: "none" }
  /** Its worker does not answer now. */
  | { readonly kind: "silent" }
  /** It cannot go on here now: the database does not answer, or no provider does. */
  | { readonly kind: "away" };

/** Hears an answer, unless the question was cancelled. */
type Heard<T> = (answer: RemoteAnswer<T>) => void;

/** Polls a filter that is kept here; null = it is not. */
type PollHere = (ref: FilterRef) => PolledFilter | null | Promise<PolledFilter | null>;

/** Dependencies. */
export interface RemoteFiltersParts {
  readonly bus: Bus;
  readonly timerWheel: TimerWheel;
  /** Those that are kept here. */
  readonly filters: Filters;
}

/** How long another worker has to answer. */
const ANSWER_MS = 5_000;
/** Polls of other workers whose answers may be on their way to callers, and for how long. */
const MAX_UNSETTLED = 10_000;
const SETTLE_MS = 60_000;

/** Filters of other workers: asks the other workers, and answers them. */
export class RemoteFilters {
  readonly #bus: Bus;
  #pollHere: PollHere;
  #lastPoll = 0;

  constructor(parts: RemoteFiltersParts) {
    this.#bus = parts.bus;
    this.#pollHere = ({ owner, id }) => parts.filters.poll(owner, id);
    answerOthers(parts, (ref) => this.#pollHere(ref));
  }

  /** The other worker that keeps a filter; null = this worker, or none. */
  keeperOf(id: string): WorkerId | null {
    const worker = workerIn(id);
    const isOther = worker !== null && worker !== this.#bus.self && isAlive(this.#bus, worker);
    return isOther ? worker : null;
  }

  /** The returned function cancels; what a cancelled poll took is kept for the next one. */
  poll(keeper: WorkerId, ref: FilterRef, done: Heard<PolledFilter>): () => void {
    const poll = ++this.#lastPoll;
    const settle = (written: boolean): void => {
      const request = { topic: SETTLE, message: { poll, written }, timeoutMs: ANSWER_MS };
      void this.#bus.request(keeper, request);
    };
    const found = (answer: RemoteAnswer<Buffer>): void =>
      done(answer.kind === "found" ? { ...answer, value: polledAs(answer.value, settle) } : answer);
    const asked = { topic: POLL, message: { ...ref, poll } };
    return this.#requestFrom(keeper, asked, found, () => settle(false));
  }

  /** The returned function cancels. */
  place(keeper: WorkerId, ref: FilterRef, done: Heard<FilterPlace>): () => void {
    return this.#requestFrom(keeper, { topic: PLACE, message: ref }, done);
  }

  /** The returned function cancels. */
  uninstall(keeper: WorkerId, ref: FilterRef, done: Heard<boolean>): () => void {
    return this.#requestFrom(keeper, { topic: UNINSTALL, message: ref }, done);
  }

  /** Has polls of other workers answered by another function than that of the filters. */
  answerPolls(poll: PollHere): void {
    this.#pollHere = poll;
  }

  /** Asks the keeper; `late` is called when the answer came after it was cancelled, or never. */
  #requestFrom<M, T>(
    keeper: WorkerId,
    { topic, message }: { readonly topic: QuestionTopic<M, T | "none">; readonly message: M },
    done: Heard<T>,
    late: () => void = () => {},
  ): () => void {
    let isCancelled = false;
    void this.#bus.request(keeper, { topic, message, timeoutMs: ANSWER_MS }).then((reply) => {
      if (isCancelled || (!reply.ok && reply.reason !== "gone")) late();
      if (!isCancelled) done(answerIn(reply));
    });
    return () => {
      isCancelled = true;
    };
  }
}

function polledAs(json: Buffer, settle: PolledFilter["settle"]): PolledFilter {
  return { json, isEmpty: json.length <= NO_CHANGES.length, settle };
}

const NO_CHANGES = "[]";

/** The first byte of the ids of filters of a worker. */
export function idByteOf(worker: WorkerId): number {
  return FIRST_ID_BYTE + Number(worker);
}

/** The worker in the id of a filter; null = it names none. */
function workerIn(id: string): WorkerId | null {
  const place = /^0x[0-9a-f]{34}$/.test(id)
    ? Number.parseInt(id.slice(2, 4), 16) - FIRST_ID_BYTE
    : 0;
  return place > 0 ? String(place) : null;
}

/** Ids are quantities, so their first digit is not 0. */
const FIRST_ID_BYTE = 0x10;

interface Unsettled {
  readonly from: WorkerId;
  readonly settle: (written: boolean) => void;
  readonly timer: Timer;
}

function answerOthers({ bus, timerWheel, filters }: RemoteFiltersParts, pollHere: PollHere): void {
  /** Polls that others have made here, until they say what became of the answers. */
  const unsettled = new Map<string, Unsettled>();

  function settle(key: string, written: boolean): void {
    const polled = unsettled.get(key);
    unsettled.delete(key);
    polled?.timer.clear();
    polled?.settle(written);
  }

  function answer(key: string, from: WorkerId, polled: PolledFilter | null): Buffer | "none" {
    if (polled === null) return "none";
    settle(key, false);
    const timer = timerWheel.set(SETTLE_MS, () => settle(key, false));
    unsettled.set(key, { from, settle: polled.settle, timer });
    const [oldest = key] = unsettled.keys();
    if (unsettled.size > MAX_UNSETTLED) settle(oldest, false);
    return polled.json;
  }

  bus.serve(POLL, ({ owner, id, poll }, from) => {
    const key = `${from} ${poll}`;
    const polled = pollHere({ owner, id });
    return polled instanceof Promise
      ? polled.then((later) => answer(key, from, later))
      : answer(key, from, polled);
  });
  bus.serve(SETTLE, ({ poll, written }, from) => {
    settle(`${from} ${poll}`, written);
    return true;
  });
  bus.serve(PLACE, ({ owner, id }) => filters.place(owner, id) ?? "none");
  bus.serve(UNINSTALL, ({ owner, id }) => filters.uninstall(owner, id));
  bus.onWorkers(() => {
    for (const [key, { from }] of [...unsettled]) if (!isAlive(bus, from)) settle(key, false);
  });
}

/** Whether a worker holds what it held, though it may not answer now. */
function isAlive(bus: Bus, worker: WorkerId): boolean {
  return bus.workers().includes(worker) || bus.silent().includes(worker);
}

function answerIn<T>(reply: BusReply<T | "none">): RemoteAnswer<T> {
  if (!reply.ok) return { kind: reply.reason === "gone" ? "none" : "silent" };
  return reply.value === "none" ? { kind: "none" } : { kind: "found", value: reply.value };
}

interface PollMessage extends FilterRef {
  /** Number of the poll, as its worker counts. */
  readonly poll: number;
}

interface SettleMessage {
  readonly poll: number;
  readonly written: boolean;
}

const POLL: QuestionTopic<PollMessage, Buffer | "none"> = { name: "filter.poll" };

const SETTLE: QuestionTopic<SettleMessage, true> = { name: "filter.settle" };

const PLACE: QuestionTopic<FilterRef, FilterPlace | "none"> = { name: "filter.place" };

const UNINSTALL: QuestionTopic<FilterRef, boolean | "none"> = { name: "filter.uninstall" };
