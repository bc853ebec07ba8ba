// Filters of a service of several nodes: each is a record that any node can go on from. The process
// that keeps a filter answers polls from memory and writes how far its caller was told. Another
// process that is polled takes the record over and continues from there. Knows no database.
import {
  type ClaimedFilter,
  FILTER_IDLE_MS,
  type FilterOrigin,
  type FilterRecord,
  type FilterRecords,
  type FilterUpdate,
} from "../../core/stream/filter-record.ts";
import { markText, readMark, type StreamMark } from "../../core/stream/stream-mark.ts";
import { pause, type Runtime } from "../../runtime.ts";
import type { TimerWheel } from "../timer-wheel.ts";
import {
  type FilterAnswer,
  FilterForwarding,
  type FilterRef,
  type NodeWorkers,
} from "./filter-forwarding.ts";
import {
  type Filter,
  type FilterEnd,
  type FilterRequest,
  type Filters,
  isFilterId,
  type OpenedFilter,
  type PolledFilter,
} from "./filters.ts";

/** How a filter goes on here; called at most once a poll. */
export interface FilterRevival {
  /** Its request; null = the configuration does not serve it. */
  request(record: FilterRecord): FilterRequest | null;
  opened(filter: Filter): void;
}

/** Dependencies. */
export interface FilterClaimsParts extends NodeWorkers {
  readonly runtime: Pick<Runtime, "now" | "after">;
  readonly filters: Filters;
  readonly records: FilterRecords;
  readonly timerWheel: TimerWheel;
  readonly onError: (error: unknown) => void;
}

/** Between two checks of all filters that are kept here. */
const CHECK_MS = 1_000;
/** How long an answer waits for its record, and after a failure of the database no answer does. */
const WRITE_MS = 2_000;
const AWAY_MS = 1_000;
/** How long a call waits for the record of a filter that is kept elsewhere. */
const DATABASE_MS = 3_000;
/** How long a keeper may have an answer on its way, and the time between two reads of its row. */
const ANSWERING_MS = 2_000;
const ANSWERING_CHECK_MS = 20;
/** How long a poll waits for a filter that moves; what it misses is in the next answer. */
const MOVING_MS = 3_000;
/** A record is written again after so many blocks that brought nothing. */
const QUIET_BLOCKS = 32;
/** Reads of a record in one poll: for the whole wait, and when other processes are faster. */
const MAX_READS = (2 * ANSWERING_MS) / ANSWERING_CHECK_MS;
/** Longer parameters, in characters, are not recorded: the filter stays with this process. */
const MAX_PARAMS = 1_000_000;
const CLOSE_MS = 3_000;
/** A record that others polled so lately does not end with a filter that expires here. */
const EXPIRED_MS = FILTER_IDLE_MS - 5_000;

/** A filter that is kept here. */
interface Kept extends ClaimedFilter {
  readonly filter: Filter;
  isRecorded: boolean;
  writtenAtMs: number;
  /** What the record says was told. */
  recorded: StreamMark | null;
  /** Answers that may be on their way. */
  answering: number;
}

type Asked<T> = { readonly kind: "found"; readonly value: T } | { readonly kind: "away" };

type Moved = "open" | "gone" | "unavailable";

/** Filters that several nodes share. */
export class FilterClaims {
  readonly #parts: FilterClaimsParts;
  readonly #writer: RecordWriter;
  readonly #forwarding: FilterForwarding;
  readonly #kept = new Map<string, Kept>();
  /** Filters that are on their way here. */
  readonly #moving = new Map<string, Promise<Moved>>();
  #awayUntilMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  #cancelCheck: () => void;

  constructor(parts: FilterClaimsParts) {
    this.#parts = parts;
    this.#writer = new RecordWriter(parts.records, (error) => this.#failed(error));
    const pollHere = (ref: FilterRef): Promise<PolledFilter | null> => this.#pollHere(ref);
    this.#forwarding = new FilterForwarding({ ...parts, pollHere });
    this.#cancelCheck = parts.runtime.after(CHECK_MS, () => this.#checkLater());
  }

  /** Records a new filter. Resolves when it is recorded, or cannot be for now. */
  async created(filter: Filter): Promise<void> {
    if (!filter.isOpen || filter.request.params.length > MAX_PARAMS) return;
    const kept = this.#keep(filter, { claim: 1, isRecorded: false, recorded: null });
    if (!this.#isAway) await this.#within(WRITE_MS, this.#record(kept), false);
  }

  #keep(filter: Filter, state: Pick<Kept, "claim" | "isRecorded" | "recorded">): Kept {
    const { id } = filter;
    const kept = { id, filter, ...state, writtenAtMs: this.#parts.runtime.now(), answering: 0 };
    this.#kept.set(id, kept);
    filter.whenEnded((why) => this.#ended(kept, why));
    return kept;
  }

  async #pollHere({ owner, id }: FilterRef): Promise<PolledFilter | null> {
    const polled = this.#parts.filters.poll(owner, id);
    const kept = this.#kept.get(id);
    if (polled === null || kept?.isRecorded !== true || polled.isEmpty) return polled;
    kept.answering++;
    if ((await this.#announce(kept)) === "lost") {
      kept.answering--;
      polled.settle(false);
      kept.filter.end("handed_over");
      return null;
    }
    let isSettled = false;
    const settle = (written: boolean): void => {
      polled.settle(written);
      if (isSettled) return;
      isSettled = true;
      kept.answering--;
      if (this.#kept.get(id) === kept) void this.#write(kept);
    };
    return { ...polled, settle };
  }

  async poll(ref: FilterRef, revival: FilterRevival): Promise<FilterAnswer<PolledFilter>> {
    const startedAtMs = this.#parts.runtime.now();
    for (let reads = 0; reads < MAX_READS; reads++) {
      const here = await this.#pollArrived(ref);
      if (here !== null) return here;
      const found = await this.#find(ref);
      if (found.kind !== "found") return found;
      const record = found.value;
      const resume = record.mark === null ? null : readMark(record.mark);
      // Where a mark cannot be read, going on would leave out what was missed.
      if (resume === null && record.mark !== null) return NONE;
      const elsewhere = await this.#forwarding.poll(record.node, ref);
      if (elsewhere.kind !== "none") return elsewhere;
      const waitedMs = this.#parts.runtime.now() - startedAtMs;
      if (record.isAnswering && waitedMs < ANSWERING_MS) {
        await pause(this.#parts.runtime, ANSWERING_CHECK_MS);
        continue;
      }
      const request = revival.request(record);
      if (request === null) return NONE;
      const taken = await this.#bounded(this.#parts.records.take(record));
      if (taken.kind === "away") return AWAY;
      const moving = { ...request, movedId: ref.id, ...(resume === null ? {} : { resume }) };
      if (taken.value) this.#move(record, moving, revival);
    }
    return AWAY;
  }

  /** Tells with what a filter was created; counts as a poll. */
  async read(ref: FilterRef): Promise<FilterAnswer<FilterOrigin>> {
    const filter = this.#parts.filters.find(ref.id);
    if (filter?.request.owner === ref.owner) {
      filter.polledAtMs = this.#parts.runtime.now();
      return { kind: "found", value: originOf(filter) };
    }
    const found = await this.#find(ref);
    if (found.kind === "found") await this.#bounded(this.#parts.records.touch(ref.id));
    return found;
  }

  async uninstall({ owner, id }: FilterRef): Promise<FilterAnswer<boolean>> {
    const { filters, records } = this.#parts;
    if (!isFilterId(id)) return NONE;
    const isUnrecorded = this.#kept.get(id)?.isRecorded !== true;
    const wasHere = filters.uninstall(owner, id);
    const removed = await this.#bounded(records.remove(id, owner));
    if (removed.kind === "away") return wasHere ? { kind: "found", value: true } : AWAY;
    const node = removed.value;
    if (node !== null) this.#forwarding.uninstall(node, { owner, id });
    return { kind: "found", value: node !== null || (wasHere && isUnrecorded) };
  }

  /** Writes what callers have been told, and ends no record. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelCheck();
    const writes = [...this.#kept.values()].map((kept) => {
      if (kept.answering === 0) kept.filter.passQuiet();
      return kept.isRecorded ? this.#write(kept) : this.#record(kept);
    });
    await this.#within(CLOSE_MS, Promise.all(writes), []);
  }

  get #isAway(): boolean {
    return this.#parts.runtime.now() < this.#awayUntilMs;
  }

  readonly #failed = (error: unknown): void => {
    const wasAway = this.#isAway;
    this.#awayUntilMs = this.#parts.runtime.now() + AWAY_MS;
    if (!wasAway) this.#parts.onError(error);
  };

  /** Polls a filter that is here, or on its way; null = neither. */
  async #pollArrived(ref: FilterRef): Promise<FilterAnswer<PolledFilter> | null> {
    const moving = this.#moving.get(ref.id);
    if (moving !== undefined) {
      const opening = await this.#within(MOVING_MS, moving, "late" as const);
      if (opening === "late") return { kind: "found", value: NOTHING_YET };
      if (opening !== "open") return opening === "gone" ? NONE : AWAY;
    }
    const here = await this.#pollHere(ref);
    return here === null ? null : { kind: "found", value: here };
  }

  async #find({ owner, id }: FilterRef): Promise<FilterAnswer<FilterRecord>> {
    // A caller's text is no statement's: a server refuses some, which is no failure of its own.
    if (!isFilterId(id)) return NONE;
    const read = await this.#bounded(this.#parts.records.read(id));
    if (read.kind === "away") return AWAY;
    const record = read.value;
    if (record === null || record.owner !== owner || record.idleMs >= FILTER_IDLE_MS) return NONE;
    return { kind: "found", value: record };
  }

  /** Waits for the database within bounds. */
  #bounded<T>(asked: Promise<T>): Promise<Asked<T>> {
    const answer = asked.then(
      (value): Asked<T> => ({ kind: "found", value }),
      (error: unknown): Asked<T> => {
        this.#failed(error);
        return AWAY;
      },
    );
    return this.#within(DATABASE_MS, answer, AWAY);
  }

  /** Goes on with a filter that this process has taken over. */
  #move({ id, claim: before }: FilterRecord, request: FilterRequest, revival: FilterRevival): void {
    const claim = before + 1;
    const opening = new Promise<Moved>((resolve) => {
      this.#parts.filters.open(request, (opened) => {
        if (opened.kind === "opened") {
          this.#keep(opened.filter, { claim, isRecorded: true, recorded: request.resume ?? null });
          revival.opened(opened.filter);
        }
        resolve(this.#outcomeOf({ id, claim }, opened));
      });
    });
    this.#moving.set(id, opening);
    void opening.then(() => this.#moving.delete(id));
  }

  #outcomeOf(kept: ClaimedFilter, opened: OpenedFilter): Moved {
    if (opened.kind === "opened") return "open";
    const { outcome } = opened;
    if (outcome.kind !== "fault" || outcome.fault.code !== "filter_not_found") return "unavailable";
    this.#remove(kept, 0);
    return "gone";
  }

  /** Says that an answer is on its way, so that no other process goes on before it is settled. */
  #announce(kept: Kept): Promise<Written> {
    if (this.#isAway) return Promise.resolve("failed");
    const written = this.#writer.write(this.#updateOf(kept, null));
    return this.#within(WRITE_MS, written, "failed" as const).then((outcome) => {
      if (outcome === "failed") this.#awayUntilMs = this.#parts.runtime.now() + AWAY_MS;
      return outcome;
    });
  }

  async #write(kept: Kept): Promise<Written> {
    const { delivered } = kept.filter;
    const mark = delivered === null || delivered === kept.recorded ? null : markText(delivered);
    const nowMs = this.#parts.runtime.now();
    const written = await this.#writer.write(this.#updateOf(kept, mark));
    if (written !== "kept") return written;
    kept.writtenAtMs = nowMs;
    if (delivered !== null) kept.recorded = delivered;
    return written;
  }

  #updateOf({ id, claim, answering, filter }: Kept, mark: string | null) {
    const idleMs = Math.max(0, this.#parts.runtime.now() - filter.polledAtMs);
    return { id, claim, isAnswering: answering > 0, mark, idleMs };
  }

  /** False = it could not be recorded. */
  async #record(kept: Kept): Promise<boolean> {
    const { delivered } = kept.filter;
    if (!kept.filter.isOpen) return true;
    try {
      const mark = delivered === null ? null : markText(delivered);
      await this.#parts.records.add(originOf(kept.filter), mark);
      kept.isRecorded = true;
      kept.recorded = delivered;
      // It ended meanwhile.
      if (this.#kept.get(kept.id) !== kept) this.#remove(kept, 0);
      return true;
    } catch (error) {
      this.#failed(error);
      return false;
    }
  }

  #checkLater(): void {
    void this.#check()
      .catch(this.#failed)
      .then(() => {
        if (this.#isClosed) return;
        this.#cancelCheck = this.#parts.runtime.after(CHECK_MS, () => this.#checkLater());
      });
  }

  /** Writes what changed, and notices what another process has taken over. */
  async #check(): Promise<void> {
    const all = [...this.#kept.values()];
    // The first failure ends the turn: where one statement fails, many would take long to.
    for (const kept of all) if (!kept.isRecorded && !(await this.#record(kept))) break;
    const recorded = all.filter(({ isRecorded }) => isRecorded);
    if (recorded.length === 0) return;
    const due = recorded.filter((kept) => this.#isDue(kept));
    const written = await Promise.all(due.map((kept) => this.#write(kept)));
    for (const [at, kept] of due.entries()) if (written[at] === "lost") this.#lose(kept);
    const others = recorded.filter((kept) => !due.includes(kept));
    const ids = await this.#parts.records.kept(others);
    for (const kept of others) if (!ids.has(kept.id)) this.#lose(kept);
  }

  #lose(kept: Kept): void {
    if (this.#kept.get(kept.id) === kept) kept.filter.end("handed_over");
  }

  #isDue({ filter, recorded, writtenAtMs }: Kept): boolean {
    const { quietHeight } = filter;
    const height = recorded?.blocks.at(-1)?.number ?? null;
    if (quietHeight !== null && height !== null && quietHeight - height >= QUIET_BLOCKS)
      filter.passQuiet();
    return filter.delivered !== recorded || filter.polledAtMs > writtenAtMs;
  }

  #ended(kept: Kept, why: FilterEnd): void {
    if (this.#isClosed || !this.#kept.delete(kept.id)) return;
    if (why !== "handed_over" && why !== "uninstalled")
      this.#remove(kept, why === "expired" ? EXPIRED_MS : 0);
  }

  #remove(kept: ClaimedFilter, idleMs: number): void {
    this.#parts.records.removeKept(kept, idleMs).catch(this.#failed);
  }

  /** What a promise resolves with, or `late` after a time. */
  #within<T, L>(ms: number, promise: Promise<T>, late: L): Promise<T | L> {
    return new Promise((resolve) => {
      const cancel = this.#parts.runtime.after(ms, () => resolve(late));
      void promise.then((value) => {
        cancel();
        resolve(value);
      });
    });
  }
}

/** What other processes need to go on with a filter. */
function originOf({ id, request }: Filter): FilterOrigin {
  const { owner, method, params, profile, named, tracker, strategy, pin } = request;
  const chain = tracker.set.chain.chainName;
  return { id, owner, method, params, profile, named, chain, strategy, pin: pin?.id ?? null };
}

const NONE = { kind: "none" } as const;
const AWAY = { kind: "away" } as const;

/** The answer while a filter is on its way. */
const NOTHING_YET: PolledFilter = {
  json: Buffer.from("[]"),
  isEmpty: true,
  settle() {},
};

/** `kept`: written; `lost`: another process keeps the filter, or it is gone. */
type Written = "kept" | "lost" | "failed";

/** Most records of one statement. */
const MAX_AT_ONCE = 500;

/**
 * Writes the records of filters that this process keeps: one statement at a time, with everything
 * that came up while the last one ran.
 */
class RecordWriter {
  readonly #records: Pick<FilterRecords, "write">;
  readonly #onError: (error: unknown) => void;
  #open = new Map<string, FilterUpdate>();
  /** Writes what is open, once what is under way has been written; null = nothing is open. */
  #next: Promise<ReadonlyMap<string, Written>> | null = null;
  #last: Promise<unknown> = Promise.resolve();

  /** `onError` hears of statements that failed. */
  constructor(records: Pick<FilterRecords, "write">, onError: (error: unknown) => void) {
    this.#records = records;
    this.#onError = onError;
  }

  /** Always resolves. */
  async write(update: FilterUpdate): Promise<Written> {
    const mark = update.mark ?? this.#open.get(update.id)?.mark ?? null;
    this.#open.set(update.id, { ...update, mark });
    if (this.#next === null) {
      this.#next = this.#last.then(() => this.#writeOpen());
      this.#last = this.#next;
    }
    return (await this.#next).get(update.id) ?? "failed";
  }

  async #writeOpen(): Promise<ReadonlyMap<string, Written>> {
    // In one order, so that no two processes wait for each other.
    const updates = [...this.#open.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    this.#open = new Map();
    this.#next = null;
    const written = new Map<string, Written>();
    for (let at = 0; at < updates.length; at += MAX_AT_ONCE) {
      const batch = updates.slice(at, at + MAX_AT_ONCE);
      const kept = await this.#records.write(batch).catch((error: unknown) => {
        this.#onError(error);
        return null;
      });
      for (const { id } of batch) {
        const outcome = kept?.has(id) === true ? "kept" : "lost";
        written.set(id, kept === null ? "failed" : outcome);
      }
    }
    return written;
  }
}
