// Counts the bytes of memory that requests and gathered answers take, in total and per caller.
// Holds no bytes itself: users of the memory take and release room.
import type { MemoryShare } from "./transport.ts";

/**
 * Callers that memory counts for when it serves no single caller: the service itself, and all
 * users' providers together.
 */
export const SERVICE = "the service";
export const USERS_PROVIDERS = "users' providers";

/**
 * Complete requests up to this size count toward the total only, not toward their caller: the
 * number of connections bounds them.
 */
export const SHORT_REQUEST_BYTES = 4_096;

/** Bounds of the budget. */
export interface MemoryLimits {
  /** Most bytes held at one time, in total and for one caller. */
  readonly maxInFlightBytes: number;
  readonly maxCallerBytes: number;
}

/** Bytes held in memory for requests in flight. */
export class MemoryBudget {
  /** A budget without bounds, for short-lived connections that have bounds of their own. */
  static unbounded(): MemoryBudget {
    return new MemoryBudget(() => ({
      maxInFlightBytes: Number.POSITIVE_INFINITY,
      maxCallerBytes: Number.POSITIVE_INFINITY,
    }));
  }

  /** Bytes held in total. */
  used = 0;
  readonly #limits: () => MemoryLimits;
  /**
   * Bytes held per caller, for requests and gathered answers together; callers with 0 are absent.
   */
  readonly #callers = new Map<string, number>();
  #relieve: (bytes: number) => void = () => {};

  constructor(limits: () => MemoryLimits) {
    this.#limits = limits;
  }

  /** Number of callers for whom bytes are held. */
  get callers(): number {
    return this.#callers.size;
  }

  /** Before a call is refused, this gives back as many bytes as it can do without. */
  onShortage(relieve: (bytes: number) => void): void {
    this.#relieve = relieve;
  }

  /** Takes room for `bytes` more of a caller's requests or answers. False = there is none. */
  take(caller: string, bytes: number): boolean {
    const held = this.#callers.get(caller) ?? 0;
    if (held + bytes > this.#limits().maxCallerBytes || !this.#hasRoom(bytes)) return false;
    if (bytes > 0) this.#callers.set(caller, held + bytes);
    this.used += bytes;
    return true;
  }

  giveBack(caller: string, bytes: number): void {
    const held = (this.#callers.get(caller) ?? 0) - bytes;
    if (held > 0) this.#callers.set(caller, held);
    else this.#callers.delete(caller);
    this.used -= bytes;
  }

  /** Takes room that counts toward the total only. False = there is none. */
  takeForAll(bytes: number): boolean {
    if (!this.#hasRoom(bytes)) return false;
    this.used += bytes;
    return true;
  }

  #hasRoom(bytes: number): boolean {
    const { maxInFlightBytes } = this.#limits();
    const missing = this.used + bytes - maxInFlightBytes;
    if (missing <= 0) return true;
    this.#relieve(missing);
    return this.used + bytes <= maxInFlightBytes;
  }

  /**
   * Counted but never refused: for data that cannot be refused without harm to others.
   */
  get openRoom(): MemoryShare {
    return {
      take: (bytes) => {
        this.used += bytes;
        return true;
      },
      giveBack: (bytes) => {
        this.used -= bytes;
      },
    };
  }

  /** The room of a permanent caller: the service itself, or all users' providers together. */
  roomOf(caller: string): MemoryShare {
    return {
      take: (bytes) => this.take(caller, bytes),
      giveBack: (bytes) => this.giveBack(caller, bytes),
    };
  }
}
