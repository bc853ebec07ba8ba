// Counts the memory of one request in the budget of the service and in the share of its caller: the
// body, gathered answers, and bytes that a slow reader has not taken. Holds no bytes itself.
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { type MemoryBudget, SHORT_REQUEST_BYTES } from "../../upstream/memory-budget.ts";
import type { MemoryShare } from "../../upstream/transport.ts";

/** The budget of the service, and the caller in whose share bytes count. */
export interface RequestMemoryParts {
  readonly budget: MemoryBudget;
  readonly caller: CallerIdentity;
}

/** The memory of one request. Counts nothing after its release. */
export class RequestMemory implements MemoryShare {
  /** In whose share further bytes count. */
  caller: CallerIdentity;
  /** True once it was released. */
  isOver = false;
  readonly #budget: MemoryBudget;
  /** Bytes counted in the shared budget only: short bodies, and bytes not yet sent. */
  #shared = 0;
  #bodyBytes = 0;
  /** The caller in whose share the body counts; null = in nobody's. */
  #bodyOf: string | null = null;
  #answerBytes = 0;
  /**
   * The caller in whose share the answer counts. Remembered, because the key may move to another
   * account.
   */
  #answerOf = "";

  constructor({ budget, caller }: RequestMemoryParts) {
    this.#budget = budget;
    this.caller = caller;
  }

  /** Bytes that are held for the request itself. */
  get held(): number {
    return this.#shared + this.#bodyBytes;
  }

  /** Reserves memory for the answer; false = the budget is used up. */
  take(bytes: number): boolean {
    if (this.#answerBytes === 0) this.#answerOf = this.caller.key;
    if (this.isOver || !this.#budget.take(this.#answerOf, bytes)) return false;
    this.#answerBytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    const back = Math.min(bytes, this.#answerBytes);
    if (back === 0) return;
    this.#answerBytes -= back;
    this.#budget.giveBack(this.#answerOf, back);
  }

  /** Reserves memory for a body that has arrived completely; false = the budget is used up. */
  takeBody(bytes: number): boolean {
    if (bytes > SHORT_REQUEST_BYTES) return this.takeBodyPart(bytes);
    if (!this.#budget.takeForAll(bytes)) return false;
    this.#shared += bytes;
    return true;
  }

  /** Reserves memory for one part of a body; false = the budget is used up. */
  takeBodyPart(bytes: number): boolean {
    this.#bodyOf ??= this.caller.key;
    if (!this.#budget.take(this.#bodyOf, bytes)) return false;
    this.#bodyBytes += bytes;
    return true;
  }

  /** Reserves memory in the share of the caller in place of what is held; false = as above. */
  replaceBody(bytes: number): boolean {
    const { key } = this.caller;
    if (!this.#budget.take(key, bytes)) return false;
    this.#releaseBody();
    this.#bodyOf = key;
    this.#bodyBytes = bytes;
    return true;
  }

  /** Counts bytes not yet sent. They exist already, so this is never refused. */
  countUnsent(bytes: number): void {
    if (this.isOver || bytes === 0) return;
    this.#shared += bytes;
    this.#budget.used += bytes;
  }

  release(): void {
    this.isOver = true;
    this.#releaseBody();
    this.giveBack(this.#answerBytes);
  }

  #releaseBody(): void {
    this.#budget.used -= this.#shared;
    this.#shared = 0;
    if (this.#bodyOf !== null) this.#budget.giveBack(this.#bodyOf, this.#bodyBytes);
    this.#bodyOf = null;
    this.#bodyBytes = 0;
  }
}
