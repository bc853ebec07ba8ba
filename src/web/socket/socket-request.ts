// One message of a client WebSocket from arrival to answer: its cancellation, its place among
// waiting messages, and its memory.
import type { Interruption } from "../../core/billing/charging.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { type MemoryBudget, SHORT_REQUEST_BYTES } from "../../upstream/memory-budget.ts";
import type { Timer } from "../../upstream/timer-wheel.ts";
import type { MemoryShare } from "../../upstream/transport.ts";

/** The budget of the service, and the caller of the socket in whose share its requests count. */
export interface SocketMemory {
  readonly budget: MemoryBudget;
  readonly caller: CallerIdentity;
}

/**
 * Memory of a waiting request beside its bytes: its records and its timer. Counted, because the
 * number of waiting requests has no other bound.
 */
const WAITING_BYTES = 1_024;

/** A message that was accepted; it holds memory until `release`. */
export class SocketRequest implements MemoryShare {
  /** The message; its JSON begins at `start`. */
  bytes: Buffer;
  readonly start: number;
  /** Position among the messages of its socket. */
  readonly order: number;
  cancel: ((why: Interruption) => void) | null = null;
  isOver = false;
  /** Bytes reserved for the request itself. */
  held = 0;
  /** When it began to wait; null = it has not waited. */
  waitsSinceMs: number | null = null;
  /** Longest wait where nothing but room is waited for. */
  patienceMs = 0;
  /** Ends the wait; null = it does not wait. */
  timer: Timer | null = null;
  /** Neighbours in the queue. */
  previous: SocketRequest | null = null;
  next: SocketRequest | null = null;
  readonly #memory: SocketMemory;
  /**
   * The callers in whose shares `held` and `#gathered` count; null = in nobody's. Remembered,
   * because the key may move to another account.
   */
  #heldOf: string | null = null;
  #gathered = 0;
  #gatheredOf = "";

  constructor(memory: SocketMemory, bytes: Buffer, start: number, order: number) {
    this.#memory = memory;
    this.bytes = bytes;
    this.start = start;
    this.order = order;
  }

  /** Reserves memory to be served at once; false = the budget is used up. */
  reserve(): boolean {
    const { budget, caller } = this.#memory;
    const { length } = this.bytes;
    const key = length > SHORT_REQUEST_BYTES ? caller.key : null;
    if (!(key === null ? budget.takeForAll(length) : budget.take(key, length))) return false;
    this.#heldOf = key;
    this.held = length;
    return true;
  }

  /** Reserves memory to wait, instead of what it has; false = the budget is used up. */
  reserveWait(): boolean {
    const { budget, caller } = this.#memory;
    const bytes = this.bytes.length + WAITING_BYTES;
    if (this.held === bytes) return true;
    if (!budget.take(caller.key, bytes)) return false;
    this.#giveBackRequest();
    this.#heldOf = caller.key;
    this.held = bytes;
    // The message may be a slice of a much longer chunk, which it would keep in memory.
    const copy = Buffer.allocUnsafeSlow(this.bytes.length);
    this.bytes.copy(copy);
    this.bytes = copy;
    return true;
  }

  take(bytes: number): boolean {
    const { budget, caller } = this.#memory;
    if (this.#gathered === 0) this.#gatheredOf = caller.key;
    if (this.isOver || !budget.take(this.#gatheredOf, bytes)) return false;
    this.#gathered += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    const back = Math.min(bytes, this.#gathered);
    this.#gathered -= back;
    if (back > 0) this.#memory.budget.giveBack(this.#gatheredOf, back);
  }

  /** Releases all its memory. */
  release(): void {
    this.#giveBackRequest();
    this.giveBack(this.#gathered);
  }

  #giveBackRequest(): void {
    if (this.#heldOf === null) this.#memory.budget.used -= this.held;
    else this.#memory.budget.giveBack(this.#heldOf, this.held);
    this.held = 0;
  }
}

// The messages of one client WebSocket that wait for their turn, in the order of their arrival.
// Starts and refuses none of them itself.

/** A linked list of requests, from which any request can be removed at any time. */
export class RequestQueue {
  size = 0;
  /** The request whose turn is next; null = none waits. */
  first: SocketRequest | null = null;
  #last: SocketRequest | null = null;

  /** Adds a request behind all that arrived before it. */
  add(request: SocketRequest): void {
    // Only requests that had started before stand in front of others: as few as may be in flight.
    const last = this.#last;
    let behind = last !== null && last.order > request.order ? this.first : null;
    while (behind !== null && behind.order < request.order) behind = behind.next;
    const before = behind === null ? last : behind.previous;
    request.previous = before;
    request.next = behind;
    if (before === null) this.first = request;
    else before.next = request;
    if (behind === null) this.#last = request;
    else behind.previous = request;
    this.size++;
  }

  /** Removes a request, and ends its timer. */
  remove(request: SocketRequest): void {
    const { previous, next } = request;
    if (previous === null) this.first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
    request.previous = null;
    request.next = null;
    request.timer?.clear();
    request.timer = null;
    this.size--;
  }
}
