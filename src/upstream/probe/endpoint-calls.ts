// Calls to one endpoint that is probed, gently: one at a time with a pause between, each with a
// deadline, and all of them bounded. What a provider says is shown without its address and keys.

import { parseJson } from "../../core/fields.ts";
import type { Provider, Transport } from "../../core/provider/profile.ts";
import type { Failure } from "../../core/rpc/failure.ts";
import { shownMessage } from "../provider-check.ts";
import { callProvider, type ProviderCallParts, verdictOn } from "../rpc-call.ts";

/** Bounds of the probe of one endpoint. */
export interface ProbeBounds {
  readonly maxRequests: number;
  /** Between two requests. */
  readonly pauseMs: number;
  /** Waited after a rate limit that names no time; a named time counts up to ten times this. */
  readonly rateLimitMs: number;
  /** Deadline of each request. */
  readonly timeoutMs: number;
  /** Deadline of the whole probe. */
  readonly totalMs: number;
}

/** The bounds used unless a test tightens them. */
export const PROBE_BOUNDS: ProbeBounds = {
  maxRequests: 250,
  pauseMs: 50,
  rateLimitMs: 1_000,
  timeoutMs: 10_000,
  totalMs: 180_000,
};

/** Rate limits after which an endpoint is asked no more. */
const MAX_RATE_LIMITS = 5;

/** What came of one request. */
export type ProbeAnswer =
  | { readonly kind: "result"; readonly value: unknown; readonly latencyMs: number }
  /** The endpoint answered with an error. */
  | {
      readonly kind: "refused";
      readonly category: string;
      readonly said: string;
      /** The block range that the error names; null = it names none. */
      readonly maxBlockRange: number | null;
    }
  /** It was not answered, or not asked since a bound is reached. */
  | { readonly kind: "none"; readonly said: string };

/** The calls of one probe. */
export class EndpointCalls {
  readonly provider: Provider;
  /** Requests sent so far. */
  sent = 0;
  /** Answers that were rate limits. */
  rateLimits = 0;
  readonly #parts: ProviderCallParts;
  readonly #bounds: ProbeBounds;
  readonly #untilMs: number;

  constructor(parts: ProviderCallParts, provider: Provider, bounds: ProbeBounds) {
    this.#parts = parts;
    this.provider = provider;
    this.#bounds = bounds;
    this.#untilMs = parts.runtime.now() + bounds.totalMs;
  }

  /** Why nothing more is asked; null = there is room for a request. */
  get end(): string | null {
    const { maxRequests } = this.#bounds;
    if (this.sent >= maxRequests) return `the probe ends after ${maxRequests} requests`;
    if (this.rateLimits >= MAX_RATE_LIMITS) return "it limits the rate of requests";
    return this.#parts.runtime.now() >= this.#untilMs ? "the time for the probe is over" : null;
  }

  /** Sends a call; once more after a rate limit. Always resolves. */
  async send(
    method: string,
    params: readonly unknown[] = [],
    transport: Transport = this.provider.url === null ? "ws" : "http",
  ): Promise<ProbeAnswer> {
    const first = await this.#try(method, params, transport);
    return typeof first === "number"
      ? this.#afterPause(first, () => this.#try(method, params, transport))
      : first;
  }

  /** Runs something else that sends one request, within the same bounds. */
  async within<Found>(run: (timeoutMs: number) => Promise<Found>): Promise<Found | null> {
    if (this.end !== null) return null;
    await this.#pause(this.#bounds.pauseMs);
    this.sent++;
    return run(this.#bounds.timeoutMs);
  }

  async #afterPause(ms: number, again: () => Promise<ProbeAnswer | number>): Promise<ProbeAnswer> {
    await this.#pause(ms);
    const answer = await again();
    return typeof answer === "number" ? { kind: "none", said: "it limits the rate" } : answer;
  }

  /** The answer; a number = a rate limit, and how long to wait. */
  async #try(
    method: string,
    params: readonly unknown[],
    transport: Transport,
  ): Promise<ProbeAnswer | number> {
    const { end } = this;
    if (end !== null) return { kind: "none", said: end };
    await this.#pause(this.#bounds.pauseMs);
    this.sent++;
    const { runtime } = this.#parts;
    const startedAtMs = runtime.now();
    const call = { provider: this.provider, transport, method, params: JSON.stringify(params) };
    const answer = await callProvider(this.#parts, call, this.#bounds.timeoutMs);
    const latencyMs = runtime.now() - startedAtMs;
    if (Buffer.isBuffer(answer))
      return { kind: "result", value: parseJson(answer.toString("utf8")), latencyMs };
    return this.#failed(method, answer);
  }

  #failed(method: string, failure: Failure): ProbeAnswer | number {
    const { runtime } = this.#parts;
    const said = shownMessage(this.provider, failure.message);
    const { category, effect } = verdictOn(failure, { provider: this.provider, method }, runtime);
    if (category.endsWith("rate_limit")) {
      this.rateLimits++;
      const named = effect.kind === "cooldown" && failure.retryAfter !== null ? effect.ms : 0;
      const { rateLimitMs } = this.#bounds;
      return Math.min(Math.max(named, rateLimitMs), rateLimitMs * MAX_WAITS);
    }
    if (failure.kind !== "error" && failure.kind !== "body") return { kind: "none", said };
    const range = effect.kind === "learn" && effect.what === "range" ? effect.maxBlockRange : null;
    return { kind: "refused", category, said, maxBlockRange: range };
  }

  #pause(ms: number): Promise<void> {
    return ms === 0
      ? Promise.resolve()
      : new Promise((resolve) => void this.#parts.runtime.after(ms, resolve));
  }
}

const MAX_WAITS = 10;
