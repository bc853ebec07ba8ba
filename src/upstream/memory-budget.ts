// Counts the bytes of memory that requests and gathered answers take, in total and per caller.
// Holds no bytes itself: the holder takes and gives back.
import type { Room } from "./transport.ts";

/** Who is counted for what no caller asked for: the service, and all users' providers together. */
export const SERVICE = "the service";
export const USERS_PROVIDERS = "users' providers";

/**
 * Requests up to this size that are here whole count for nobody alone: the number of connections
 * bounds them.
 */
export const SHORT_REQUEST_BYTES = 4_096;

/** Bounds of the budget. */
export interface MemoryLimits {
  /** Held at one time, by all together and for one caller. */
  readonly maxInFlightBytes: number;
  readonly maxCallerBytes: number;
}

/** What is held in memory for requests under way. */
export class MemoryBudget {
  /** Without bounds, for connections of a short life and bounds of their own. */
  static unbounded(): MemoryBudget {
    return new MemoryBudget(() => ({
      maxInFlightBytes: Number.POSITIVE_INFINITY,
      maxCallerBytes: Number.POSITIVE_INFINITY,
    }));
  }

  /** By all together. */
  used = 0;
  readonly #limits: () => MemoryLimits;
  /**
   * Bytes held for each caller, requests and gathered answers together; callers with 0 are absent.
   */
  readonly #callers = new Map<string, number>();

  constructor(limits: () => MemoryLimits) {
    this.#limits = limits;
  }

  /** Callers for whom something is held. */
  get callers(): number {
    return this.#callers.size;
  }

  /** Takes room for so many bytes more of a caller's requests or answers; false = there is none. */
  take(caller: string, bytes: number): boolean {
    const { maxInFlightBytes, maxCallerBytes } = this.#limits();
    const held = this.#callers.get(caller) ?? 0;
    if (this.used + bytes > maxInFlightBytes || held + bytes > maxCallerBytes) return false;
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

  /** Takes room that counts for nobody alone; false = there is none. */
  takeForAll(bytes: number): boolean {
    if (this.used + bytes > this.#limits().maxInFlightBytes) return false;
    this.used += bytes;
    return true;
  }

  /** Room that is counted but never refused: for what cannot be refused without harm to others. */
  get openRoom(): Room {
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

  /**
   * The room of a caller that is always there: of the service itself, or of all users' providers
   * together.
   */
  roomOf(caller: string): Room {
    return {
      take: (bytes) => this.take(caller, bytes),
      giveBack: (bytes) => this.giveBack(caller, bytes),
    };
  }
}
