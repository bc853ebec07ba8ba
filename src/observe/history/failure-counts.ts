// What one process counts of failures for incidents, since it was taken last: how attempts at each
// provider failed, and whose calls failed with them. Costs nothing for calls that succeed at once.
// Callers are kept as salted digests. Bounded by the configured providers. Knows no time.
import { hash } from "node:crypto";
import type { Attempt } from "../../core/provider/attempt.ts";
import { type ErrorGroup, errorGroupOf } from "../../core/provider-errors/category.ts";
import type { RoutedCall } from "../../upstream/engine/router.ts";

/** How attempts at a provider failed in a step. */
export interface ProviderFailures {
  readonly profile: string;
  readonly chain: string;
  readonly provider: string;
  readonly labels: readonly FailureLabel[];
  /** Calls that failed, where an attempt at this provider did so. */
  readonly calls: number;
  /** Digests of their callers. */
  readonly callers: readonly string[];
}

/** One way in which attempts failed, and how many. */
export interface FailureLabel {
  readonly label: string;
  readonly isLimit: boolean;
  readonly count: number;
}

/** Callers of one provider that are told apart; more count as these. */
export const MAX_CALLERS = 1_000;
/** Ways to fail that are told apart; others are not named. */
export const MAX_LABELS = 8;
const DIGEST_CHARACTERS = 16;

const LABELS: Readonly<Partial<Record<ErrorGroup, string>>> = {
  rate_limit: "rate limit",
  credentials: "credentials refused",
  timeout: "time-outs",
  network: "no connection",
  server: "server errors",
};

/** Whether a failure of this category is one that makes a provider bad. */
function isCountedFailure(category: string): boolean {
  return LABELS[errorGroupOf(category)] !== undefined;
}

interface Counted {
  readonly profile: string;
  readonly chain: string;
  readonly provider: string;
  readonly labels: Map<string, { readonly isLimit: boolean; count: number }>;
  calls: number;
  readonly callers: Set<string>;
}

/** The counts of a process. */
export class FailureCounts {
  readonly #salt: string;
  #counted = new Map<string, Counted>();

  /** `salt`: the same at all workers of a service. */
  constructor(salt: string) {
    this.#salt = salt;
  }

  /** Counts a failed attempt at a configured provider; `httpStatus` 0 = there was none. */
  attempt(
    at: { readonly profile: string; readonly chain: string },
    { provider, verdict }: Pick<Attempt, "provider" | "verdict">,
    httpStatus: number,
  ): void {
    const group = errorGroupOf(verdict?.category ?? "");
    const word = LABELS[group];
    if (word === undefined) return;
    const label = httpStatus >= 400 ? `HTTP ${httpStatus}` : word;
    const { labels } = this.#of(at, provider.id);
    const known = labels.get(label);
    if (known !== undefined) known.count++;
    else if (labels.size < MAX_LABELS)
      labels.set(label, { isLimit: group === "rate_limit", count: 1 });
  }

  /** Counts a call that failed at the providers whose attempts failed, with its caller. */
  call(
    at: { readonly profile: string; readonly chain: string },
    { traces, request }: Pick<RoutedCall, "traces" | "request">,
  ): void {
    const failed = new Set<string>();
    for (const { attempt } of traces)
      if (!attempt.provider.guarded && isCountedFailure(attempt.verdict?.category ?? ""))
        failed.add(attempt.provider.id);
    if (failed.size === 0) return;
    const { keyId, key } = request.caller;
    const caller = hash("sha256", `${this.#salt} ${keyId ?? key}`, "base64url");
    for (const id of failed) {
      const counted = this.#of(at, id);
      counted.calls++;
      if (counted.callers.size < MAX_CALLERS)
        counted.callers.add(caller.slice(0, DIGEST_CHARACTERS));
    }
  }

  /** What was counted since the last time. */
  take(): readonly ProviderFailures[] {
    const counted = this.#counted;
    this.#counted = new Map();
    return Array.from(counted.values(), ({ labels, callers, ...rest }) => ({
      ...rest,
      labels: Array.from(labels, ([label, each]) => ({ label, ...each })),
      callers: [...callers],
    }));
  }

  #of({ profile, chain }: { readonly profile: string; readonly chain: string }, provider: string) {
    const id = `${profile} ${chain} ${provider}`;
    const known = this.#counted.get(id);
    if (known !== undefined) return known;
    const labels: Counted["labels"] = new Map();
    const created = { profile, chain, provider, labels, calls: 0, callers: new Set<string>() };
    this.#counted.set(id, created);
    return created;
  }
}
