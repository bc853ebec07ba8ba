// Filters, served by the service itself: each subscribes to a stream and keeps events until the
// caller polls, so that filters survive the loss of a provider as subscriptions do. Knows no API
// keys and no JSON-RPC envelope; an owner is an opaque text, equal only for the same caller.

import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { readHead } from "../../core/stream/chain-event.ts";
import { changesJson, FilterChanges } from "../../core/stream/filter-changes.ts";
import { FILTER_IDLE_MS } from "../../core/stream/filter-record.ts";
import type { StreamMark } from "../../core/stream/stream-mark.ts";
import { countElsewhere, type Holdings } from "../../core/workers/shared-holdings.ts";
import type { Runtime } from "../../runtime.ts";
import type { Outcome } from "../engine/answer.ts";
import type { RoutedCall } from "../engine/router.ts";
import type { MemoryBudget } from "../memory-budget.ts";
import { CountsByChain, zeros } from "../stream/counts-by-chain.ts";
import { COPIES_OF_FILTER, SHORT_CHARS } from "../stream/filter-quota.ts";
import type {
  StreamCaller,
  StreamPosition,
  SubscribeRequest,
  Subscriber,
} from "../stream/subscriber.ts";
import type { Subscriptions } from "../stream/subscriptions.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";

/** The kinds of filter, as displayed. */
export const FILTER_KINDS = ["logs", "blocks", "pending"] as const;

/** One of the kinds. */
export type FilterKind = (typeof FILTER_KINDS)[number];

/**
 * Why a filter ended. `unread`: it had too many unread changes. `memory`: all filters together had
 * too many. `lost`: its stream could not continue. `owner`: its key ended. `unclaimed`: its caller
 * left before receiving the id. `handed_over`: another process keeps it now.
 */
export const FILTER_ENDS = [
  "uninstalled",
  "expired",
  "unread",
  "memory",
  "lost",
  "owner",
  "unclaimed",
  "handed_over",
] as const;

/** One of the reasons. */
export type FilterEnd = (typeof FILTER_ENDS)[number];

/** The request for a filter. */
export interface FilterRequest extends SubscribeRequest {
  readonly kind: FilterKind;
  /** The owner: only requests with an equal text find the filter. */
  readonly owner: string;
  /** The caller whose limit it counts toward. */
  readonly caller: StreamCaller;
  /** How it was created: the method, its params as JSON, and the slug that was asked for. */
  readonly method: string;
  readonly params: string;
  readonly named: string;
  /** The id of a filter that another process kept; absent = it is new. */
  readonly movedId?: string;
}

/** The answer to a request for a filter. */
export type OpenedFilter =
  | { readonly kind: "opened"; readonly filter: Filter; readonly route: RoutedCall | null }
  | { readonly kind: "refused"; readonly outcome: Outcome; readonly route: RoutedCall | null };

/**
 * The answer to a poll. `settle` must report whether the answer was written; if not, the next
 * answer repeats it.
 */
export interface PolledFilter {
  readonly json: Buffer;
  /** There was nothing to tell. */
  readonly isEmpty: boolean;
  readonly settle: (written: boolean) => void;
}

/** Bounds of all filters together. */
export interface FilterLimits {
  readonly maxFilters: number;
  readonly maxCallerFilters: number;
  readonly maxFilterBytes: number;
  /** Unread changes may take a quarter of each. */
  readonly maxInFlightBytes: number;
  readonly maxCallerBytes: number;
}

/** Dependencies of filters. */
export interface FiltersParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly subscriptions: Pick<Subscriptions, "open">;
  readonly limits: () => FilterLimits;
  /** Unread changes count in it, and are the first to go where a call would find no room. */
  readonly budget: MemoryBudget;
  /** Generates unguessable bytes. */
  readonly secret: (bytes: number) => Buffer;
  /** The numbers of filters of callers at the other workers, and of all under `ALL`. */
  readonly callers: Holdings<number>;
}

const ID_BYTES = 16;
const ID_PATTERN = /^0x[0-9a-f]{34}$/;
/** Filters that move to a process may be so many times what a caller may create there. */
const MOVED_FACTOR = 4;
/** Bytes that a change counts toward the limit of all filters, besides its text. */
const CHANGE_OVERHEAD_BYTES = 32;
/** The part of the memory for calls that unread changes may take: one of so many. */
const PART_OF_MEMORY = 4;
/** Most texts of changes that are known, and the longest: equal ones are held once. */
const MAX_KNOWN_TEXTS = 4_096;
const MAX_KNOWN_CHARS = 2_048;

/** Whether a text can be the id of a filter. */
export function isFilterId(text: string): boolean {
  return ID_PATTERN.test(text);
}

/** Bytes that what a filter is about counts beside its changes; few addresses count nothing. */
function bytesOfParams({ params }: FilterRequest): number {
  return params.length <= SHORT_CHARS ? 0 : COPIES_OF_FILTER * params.length;
}

/** Keeps filters. */
export class Filters {
  unreadBytes = 0;
  readonly #parts: FiltersParts;
  readonly #byId = new Map<string, Filter>();
  readonly #ofCallers = new Map<string, number>();
  readonly #counted = new CountsByChain(() => ({
    open: zeros(FILTER_KINDS),
    ended: zeros(FILTER_ENDS),
  }));
  /** What was last delivered, and its texts: the filters of one stream share them. */
  #results: readonly Buffer[] = [];
  #texts: { blocks: readonly string[] | null; others: readonly string[] | null } = NO_TEXTS;
  /** Texts of late, oldest first: logs that several streams tell are held once. */
  readonly #known = new Map<string, string>();
  readonly #callerBytes = new Map<string, number>();

  constructor(parts: FiltersParts) {
    this.#parts = parts;
    parts.budget.onShortage((bytes) => this.#relieve(bytes));
  }

  /**
   * Opens a filter; its changes start now. `done` is called once. The returned function cancels,
   * and ends the filter if it exists by then.
   */
  open(request: FilterRequest, done: (opened: OpenedFilter) => void): () => void {
    const why = this.#beyond(request);
    if (why !== null) {
      done({ kind: "refused", outcome: { kind: "fault", fault: why }, route: null });
      return () => {};
    }
    const id = request.movedId ?? this.#newId();
    const filter = new Filter(id, { registry: this, ...this.#parts, request }, done);
    this.#byId.set(id, filter);
    this.#count(request.caller.id, 1);
    this.#counted.of(request.profile, request.tracker).open[request.kind]++;
    filter.begin();
    return () => filter.end("unclaimed");
  }

  /** Takes the changes since the last answer; null = this owner has no such filter. */
  poll(owner: string, id: string): PolledFilter | null {
    return this.#of(owner, id)?.poll() ?? null;
  }

  uninstall(owner: string, id: string): boolean {
    const filter = this.#of(owner, id);
    filter?.end("uninstalled");
    return filter !== null;
  }

  /** An open filter; null = there is none. */
  find(id: string): Filter | null {
    const filter = this.#byId.get(id);
    return filter?.isOpen === true ? filter : null;
  }

  counts() {
    return this.#counted.all();
  }

  /** Forgets what was counted of chains that are served no more. */
  forgetChains(names: ReadonlySet<string>): void {
    this.#counted.forgetChains(names);
  }

  /** Removes a filter that has ended. */
  over({ id, request }: Filter, why: FilterEnd | null): void {
    if (!this.#byId.delete(id)) return;
    this.#count(request.caller.id, -1);
    const counts = this.#counted.of(request.profile, request.tracker);
    counts.open[request.kind]--;
    if (why !== null) counts.ended[why]++;
  }

  /**
   * Adjusts the number of unread bytes of a filter. Beyond the bound of its caller, the largest
   * filter of that caller ends; beyond that of all, the largest of the caller who holds most.
   */
  unread({ request }: Filter, bytes: number): void {
    const caller = request.caller.id;
    const held = (this.#callerBytes.get(caller) ?? 0) + bytes;
    if (held > 0) this.#callerBytes.set(caller, held);
    else this.#callerBytes.delete(caller);
    this.unreadBytes += bytes;
    this.#parts.budget.openRoom.take(bytes);
    if (bytes <= 0) return;
    const { maxFilterBytes, maxInFlightBytes, maxCallerBytes } = this.#parts.limits();
    const mostOfCaller = maxCallerBytes / PART_OF_MEMORY;
    while ((this.#callerBytes.get(caller) ?? 0) > mostOfCaller)
      if (!this.#endLargest(caller)) return;
    const most = Math.min(maxFilterBytes, maxInFlightBytes / PART_OF_MEMORY);
    while (this.unreadBytes > most) if (!this.#endLargest(this.#largestCaller())) return;
  }

  /** Ends filters until so many bytes are free, or none has any. */
  #relieve(bytes: number): void {
    const wanted = this.unreadBytes - bytes;
    while (this.unreadBytes > Math.max(0, wanted))
      if (!this.#endLargest(this.#largestCaller())) return;
  }

  #largestCaller(): string {
    let [largest, most] = ["", 0];
    for (const [caller, bytes] of this.#callerBytes)
      if (bytes > most) [largest, most] = [caller, bytes];
    return largest;
  }

  /** Ends the filter of a caller with the most unread bytes; false = none has any. */
  #endLargest(caller: string): boolean {
    let largest: Filter | null = null;
    for (const filter of this.#byId.values())
      if (
        filter.request.caller.id === caller &&
        filter.unreadBytes > (largest === null ? 0 : largest.unreadBytes)
      )
        largest = filter;
    largest?.end("memory");
    return largest !== null;
  }

  /** The texts of changes, as a filter of a kind tells them; made once for all filters. */
  textsOf(results: readonly Buffer[], kind: FilterKind): readonly string[] {
    if (results !== this.#results) {
      this.#results = results;
      this.#texts = { ...NO_TEXTS };
    }
    if (kind === "blocks") {
      this.#texts.blocks ??= results.map((raw) => `"${readHead(raw)?.hash ?? ""}"`);
      return this.#texts.blocks;
    }
    this.#texts.others ??= results.map((raw) => this.#once(raw.toString("latin1")));
    return this.#texts.others;
  }

  /** An equal text that is held already, if there is one. */
  #once(text: string): string {
    const known = this.#known.get(text);
    if (known !== undefined || text.length > MAX_KNOWN_CHARS) return known ?? text;
    if (this.#known.size >= MAX_KNOWN_TEXTS)
      for (const oldest of this.#known.keys()) {
        this.#known.delete(oldest);
        break;
      }
    this.#known.set(text, text);
    return text;
  }

  /** Counts one more, or one fewer, of a caller. */
  #count(caller: string, by: 1 | -1): void {
    const count = (this.#ofCallers.get(caller) ?? 0) + by;
    if (count > 0) this.#ofCallers.set(caller, count);
    else this.#ofCallers.delete(caller);
    this.#parts.callers.tell(caller, count > 0 ? count : null);
    this.#parts.callers.tell(ALL, this.#byId.size);
  }

  #beyond({ caller: { id }, movedId }: FilterRequest): Fault | null {
    const { limits, callers } = this.#parts;
    const { maxFilters, maxCallerFilters } = limits();
    // A filter that moves counted within its caller's bound where it was created, and its place
    // there is free again. Moves have a bound too: else one caller could fill this process.
    const most = movedId === undefined ? maxCallerFilters : MOVED_FACTOR * maxCallerFilters;
    if ((this.#ofCallers.get(id) ?? 0) + countElsewhere(callers, id) >= most)
      return fault(
        "rate_limit_exceeded",
        `this caller has ${maxCallerFilters} filters open (limits.max_caller_filters)`,
        {
          status: 200,
          nextAction:
            "uninstall filters that are no longer polled; each ends by itself after five " +
            "minutes without a poll",
        },
      );
    return this.#byId.size + countElsewhere(callers, ALL) >= maxFilters
      ? fault("unavailable", "too many filters are open (limits.max_filters)", { status: 200 })
      : null;
  }

  #of(owner: string, id: string): Filter | null {
    const filter = this.find(id);
    return filter?.request.owner === owner ? filter : null;
  }

  /** A new id: 34 hex digits, the first not 0, so that it is a valid quantity of fixed length. */
  #newId(): string {
    for (;;) {
      const bytes = this.#parts.secret(ID_BYTES + 1);
      bytes[0] = (bytes[0] ?? 0) | FIRST_DIGIT;
      const id = `0x${bytes.toString("hex")}`;
      if (!this.#byId.has(id)) return id;
    }
  }
}

/** No caller: counts the filters of all. */
const ALL = "";
const FIRST_DIGIT = 0x10;
const NO_TEXTS = { blocks: null, others: null };

interface FilterParts extends Pick<FiltersParts, "runtime" | "timerWheel" | "subscriptions"> {
  readonly registry: Filters;
  readonly request: FilterRequest;
}

/** A filter: opening, open or ended. */
export class Filter implements Subscriber {
  readonly id: string;
  readonly request: FilterRequest;
  /** What answers that were written told; null = the kind has no order to go on from. */
  delivered: StreamMark | null = null;
  /** When its caller last asked for its changes or its logs. */
  polledAtMs = 0;
  readonly #parts: FilterParts;
  readonly #changes = new FilterChanges();
  /** Of what it is about, once it is open. */
  #paramBytes = 0;
  #done: ((opened: OpenedFilter) => void) | null;
  #state: "opening" | "open" | "over" = "opening";
  #leave: (() => void) | null = null;
  #idle: Timer | null = null;
  #position: StreamPosition | null = null;
  readonly #whenEnded: ((why: FilterEnd) => void)[] = [];
  #endedWhy: FilterEnd | null = null;

  constructor(id: string, parts: FilterParts, done: (opened: OpenedFilter) => void) {
    this.id = id;
    this.request = parts.request;
    this.#parts = parts;
    this.#done = done;
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** Bytes as counted toward the limit of all filters: unread ones, and a long query. */
  get unreadBytes(): number {
    return this.#state === "over" ? 0 : this.#paramBytes + sizeOf(this.#changes);
  }

  begin(): void {
    const leave = this.#parts.subscriptions.open(this.request, this);
    if (this.#state === "over") leave();
    else this.#leave = leave;
  }

  started(route: RoutedCall | null, position: StreamPosition | null = null): void {
    if (this.#state !== "opening") return;
    this.#state = "open";
    this.#position = position;
    this.delivered = this.request.resume ?? position?.mark() ?? null;
    this.polledAtMs = this.#parts.runtime.now();
    this.#watchIdle(FILTER_IDLE_MS);
    this.#paramBytes = bytesOfParams(this.request);
    this.#parts.registry.unread(this, this.#paramBytes);
    this.#answer({ kind: "opened", filter: this, route });
  }

  refused(outcome: Outcome, route: RoutedCall | null): void {
    if (this.#state !== "opening") return;
    this.#close(null);
    this.#answer({ kind: "refused", outcome, route });
  }

  events(results: readonly Buffer[]): void {
    const before = sizeOf(this.#changes);
    for (const text of this.#parts.registry.textsOf(results, this.request.kind)) {
      if (this.#state === "over") return;
      if (!this.#changes.add(text)) return this.end("unread", this.#paramBytes + before);
    }
    this.#parts.registry.unread(this, sizeOf(this.#changes) - before);
  }

  ended(): void {
    this.end("lost");
  }

  poll(): PolledFilter {
    this.polledAtMs = this.#parts.runtime.now();
    // Events that are due arrive with the mark.
    const mark = this.#changes.count > 0 ? (this.#position?.mark() ?? null) : null;
    const batch = this.#changes.take(mark);
    let settled = false;
    const settle = (written: boolean): void => {
      if (settled || this.#state === "over") return;
      settled = true;
      const before = sizeOf(this.#changes);
      this.delivered = this.#changes.settle(batch, written) ?? this.delivered;
      this.#parts.registry.unread(this, sizeOf(this.#changes) - before);
    };
    return { json: changesJson(batch), isEmpty: batch.texts.length === 0, settle };
  }

  /** Number of the newest block up to which nothing is unread; null = something is, or unknown. */
  get quietHeight(): number | null {
    return this.#changes.count === 0 ? (this.#position?.height ?? null) : null;
  }

  /** Counts blocks that brought nothing as told. */
  passQuiet(): void {
    const mark = this.#position?.mark() ?? null;
    if (this.#changes.count === 0 && mark !== null) this.delivered = mark;
  }

  /** Ends the filter. `unread`: its bytes that the registry has counted, if not all. */
  end(why: FilterEnd, unread = this.unreadBytes): void {
    if (this.#state === "over") return;
    this.#parts.registry.unread(this, -unread);
    this.#close(why);
  }

  #close(why: FilterEnd | null): void {
    this.#state = "over";
    this.#idle?.clear();
    this.#leave?.();
    this.#parts.registry.over(this, why);
    this.#endedWhy = why;
    if (why !== null) for (const run of this.#whenEnded) run(why);
  }

  /** Calls back when the filter ends, at once if it has. */
  whenEnded(run: (why: FilterEnd) => void): void {
    if (this.#endedWhy !== null) run(this.#endedWhy);
    else this.#whenEnded.push(run);
  }

  #answer(opened: OpenedFilter): void {
    const done = this.#done;
    this.#done = null;
    done?.(opened);
  }

  #watchIdle(restMs: number): void {
    this.#idle = this.#parts.timerWheel.set(restMs, () => {
      const leftMs = FILTER_IDLE_MS - (this.#parts.runtime.now() - this.polledAtMs);
      if (leftMs > 0) this.#watchIdle(leftMs);
      else this.end("expired");
    });
  }
}

function sizeOf({ bytes, count }: FilterChanges): number {
  return bytes + count * CHANGE_OVERHEAD_BYTES;
}
