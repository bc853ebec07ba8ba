// Counts the memory of one request in the budget of the service and in the share of its caller: the
// body, gathered answers, and bytes that a slow reader has not taken. Holds no bytes itself.
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { type MemoryBudget, SHORT_REQUEST_BYTES } from "../../upstream/memory-budget.ts";
import type { MemoryShare } from "../../upstream/transport.ts";
import type { TrustedProxies } from "../http/client-address.ts";
import { RequestCaller, type RequestInfo } from "./authenticate.ts";

export interface RequestMemoryParts {
  readonly budget: MemoryBudget;
  readonly proxies: TrustedProxies;
}

/** The memory of one request. Counts nothing after its release. */
export class RequestMemory implements MemoryShare {
  readonly #parts: RequestMemoryParts;
  readonly #request: RequestInfo;
  /** Null until the request is authenticated. */
  #caller: CallerIdentity | null = null;
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
  #isReleased = false;

  constructor(parts: RequestMemoryParts, request: RequestInfo) {
    this.#parts = parts;
    this.#request = request;
  }

  /** Sets the caller in whose share further bytes count. */
  countFor(caller: CallerIdentity): void {
    this.#caller = caller;
  }

  /** Reserves memory for the answer; false = the budget is used up. */
  take(bytes: number): boolean {
    if (this.#answerBytes === 0) this.#answerOf = this.#key();
    if (this.#isReleased || !this.#parts.budget.take(this.#answerOf, bytes)) return false;
    this.#answerBytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    const back = Math.min(bytes, this.#answerBytes);
    if (back === 0) return;
    this.#answerBytes -= back;
    this.#parts.budget.giveBack(this.#answerOf, back);
  }

  /** Reserves memory for a body that has arrived completely; false = the budget is used up. */
  takeBody(bytes: number): boolean {
    if (bytes > SHORT_REQUEST_BYTES) return this.takeBodyPart(bytes);
    if (!this.#parts.budget.takeForAll(bytes)) return false;
    this.#shared += bytes;
    return true;
  }

  /** Reserves memory for one part of a body; false = the budget is used up. */
  takeBodyPart(bytes: number): boolean {
    this.#bodyOf ??= this.#key();
    if (!this.#parts.budget.take(this.#bodyOf, bytes)) return false;
    this.#bodyBytes += bytes;
    return true;
  }

  /** Counts bytes not yet sent. They exist already, so this is never refused. */
  countUnsent(bytes: number): void {
    if (this.#isReleased || bytes === 0) return;
    this.#shared += bytes;
    this.#parts.budget.used += bytes;
  }

  release(): void {
    const { budget } = this.#parts;
    this.#isReleased = true;
    budget.used -= this.#shared;
    this.#shared = 0;
    if (this.#bodyOf !== null) budget.giveBack(this.#bodyOf, this.#bodyBytes);
    this.#bodyOf = null;
    this.#bodyBytes = 0;
    this.giveBack(this.#answerBytes);
  }

  /** The id of the caller, or its address while unknown. */
  #key(): string {
    const caller = this.#caller ?? new RequestCaller(this.#request, null, this.#parts.proxies);
    return caller.key;
  }
}
