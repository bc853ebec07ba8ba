// One message of a client WebSocket from arrival to answer: its cancellation, its place among
// waiting messages, and its memory.
import type { Interruption } from "../../core/billing/charging.ts";
import type { Timer } from "../../upstream/timer-wheel.ts";
import { RequestMemory, type RequestMemoryParts } from "../rpc/request-memory.ts";

/**
 * Memory of a waiting request beside its bytes: its records and its timer. Counted, because the
 * number of waiting requests has no other bound.
 */
const WAITING_BYTES = 1_024;

/** A message that was accepted; it holds memory until `release`. */
export class SocketRequest extends RequestMemory {
  /** The message; its JSON begins at `start`. */
  bytes: Buffer;
  readonly start: number;
  /** Position among the messages of its socket. */
  readonly order: number;
  cancel: ((why: Interruption) => void) | null = null;
  /** When it began to wait; null = it has not waited. */
  waitsSinceMs: number | null = null;
  /** Longest wait where nothing but room is waited for. */
  patienceMs = 0;
  /** Ends the wait; null = it does not wait. */
  timer: Timer | null = null;
  /** Neighbours in the queue. */
  previous: SocketRequest | null = null;
  next: SocketRequest | null = null;

  constructor(parts: RequestMemoryParts, bytes: Buffer, start: number, order: number) {
    super(parts);
    this.bytes = bytes;
    this.start = start;
    this.order = order;
  }

  /** Reserves memory to wait, instead of what it has; false = the budget is used up. */
  reserveWait(): boolean {
    const bytes = this.bytes.length + WAITING_BYTES;
    if (this.held === bytes) return true;
    if (!this.replaceBody(bytes)) return false;
    // The message may be a slice of a much longer chunk, which it would keep in memory.
    const copy = Buffer.allocUnsafeSlow(this.bytes.length);
    this.bytes.copy(copy);
    this.bytes = copy;
    return true;
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
