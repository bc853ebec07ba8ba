// The messages of one client WebSocket that wait for their turn, in the order of their arrival.
// Starts and refuses none of them itself.
import type { SocketRequest } from "./socket-request.ts";

/** A list linked through its requests, so that each of them can leave it at any time. */
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
