// The memory of one request: its body, what is gathered of its answer, and what a slow reader has
// yet to take, counted in the budget of all callers and in its own caller's share. Holds no bytes.
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { type MemoryBudget, SHORT_REQUEST_BYTES } from "../../upstream/memory-budget.ts";
import type { Room } from "../../upstream/transport.ts";
import type { Addressed, TrustedProxies } from "../http/client-address.ts";
import { RequestCaller } from "./caller-identity.ts";

/** What memory is counted with. */
export interface RequestMemoryParts {
  readonly budget: MemoryBudget;
  readonly proxies: TrustedProxies;
}

/** The memory of one request. Nothing is counted for it any more once it was released. */
export class RequestMemory implements Room {
  readonly #parts: RequestMemoryParts;
  readonly #request: Addressed;
  /** Null until the request is authenticated. */
  #caller: CallerIdentity | null = null;
  /** Counted for all callers together: a short body, and what a slow reader leaves lying. */
  #shared = 0;
  #bodyBytes = 0;
  /** Whose share the body counts in; null = it counts in none. */
  #bodyOf: string | null = null;
  #answerBytes = 0;
  /** Whose share the answer counts in: a key may come to another account meanwhile. */
  #answerOf = "";
  #isReleased = false;

  constructor(parts: RequestMemoryParts, request: Addressed) {
    this.#parts = parts;
    this.#request = request;
  }

  /** From here on bytes count in the share of this caller. */
  countFor(caller: CallerIdentity): void {
    this.#caller = caller;
  }

  /** Takes room for bytes of the answer; false = there is none. */
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

  /** Takes room for a body that is here whole; false = there is none. */
  takeBody(bytes: number): boolean {
    if (bytes > SHORT_REQUEST_BYTES) return this.takeBodyPart(bytes);
    if (!this.#parts.budget.takeForAll(bytes)) return false;
    this.#shared += bytes;
    return true;
  }

  /** Takes room for a part of a body that comes piece by piece; false = there is none. */
  takeBodyPart(bytes: number): boolean {
    this.#bodyOf ??= this.#key();
    if (!this.#parts.budget.take(this.#bodyOf, bytes)) return false;
    this.#bodyBytes += bytes;
    return true;
  }

  /** Counts what a slow reader leaves lying. There is no way back, so it is not refused. */
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

  /** The caller, or its address while the caller is unknown. */
  #key(): string {
    const caller = this.#caller ?? new RequestCaller(this.#request, null, this.#parts.proxies);
    return caller.key;
  }
}
