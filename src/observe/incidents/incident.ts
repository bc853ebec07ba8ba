// An incident: one cause at one provider, or of a chain, from its beginning to its end. Also how
// the incidents that several nodes, or a service before and after a restart, saw of the same cause
// become one, and which of them are asked for. Pure.
import type { IncidentCause, ProviderCondition } from "./judge.ts";

/** One incident; it never holds an address or a secret. */
export interface Incident {
  readonly id: string;
  readonly profile: string;
  readonly chain: string;
  /** Id and alias of the provider; null = it is of the chain. */
  readonly provider: { readonly id: string; readonly alias: string } | null;
  readonly cause: IncidentCause;
  /** The state that it puts the provider into; null = it is of the chain. */
  readonly state: ProviderCondition | null;
  /** The cause in words. */
  readonly words: string;
  /** Wall clock, like all times here. */
  readonly startedMs: number;
  /** Null = it is open. */
  readonly endedMs: number | null;
  /** Only of an open one: since when all is well; null = it is not. */
  readonly goodSinceMs: number | null;
  /** Attempts at the provider while it was bad, and how many of them failed. */
  readonly attempts: number;
  readonly failed: number;
  /** Calls that failed, where an attempt at the provider did so. */
  readonly failedCalls: number;
  /** Callers of these calls, each counted once. */
  readonly users: number;
}

/** A state is over when all was well for so long. */
export const CLOSE_MS = 300_000;
/** Closed incidents that are kept in memory, and read of the database. */
export const MAX_CLOSED = 1_000;

/** Which incidents are asked for. */
export interface IncidentQuery {
  /** Null = all; so with each. */
  readonly profile: string | null;
  readonly chain: string | null;
  /** Id of a provider. */
  readonly provider: string | null;
  readonly open: boolean;
  /** Incidents that were open at some time within. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** The incidents of a query, those that began last first. */
export function selectIncidents(
  incidents: readonly Incident[],
  { profile, chain, provider, open, fromMs, toMs }: IncidentQuery,
): readonly Incident[] {
  return incidents
    .filter(
      (each) =>
        (profile === null || each.profile === profile) &&
        (chain === null || each.chain === chain) &&
        (provider === null || each.provider?.id === provider) &&
        (!open || each.endedMs === null) &&
        each.startedMs <= toMs &&
        (each.endedMs ?? Number.POSITIVE_INFINITY) >= fromMs,
    )
    .toSorted(byStart);
}

function byStart(left: Incident, right: Incident): number {
  return right.startedMs - left.startedMs || (left.id < right.id ? 1 : -1);
}

/** The same incidents, one for each cause that several nodes or starts of a node saw at a time. */
export function joinIncidents(incidents: readonly Incident[]): readonly Incident[] {
  const subjects = Map.groupBy(incidents, ({ profile, chain, provider, cause }) =>
    JSON.stringify([profile, chain, provider?.id, cause]),
  );
  return [...subjects.values()].flatMap((same) => {
    const joined: Incident[] = [];
    for (const each of same.toSorted(byStart).reverse()) {
      const last = joined.at(-1);
      const lastEndMs = last?.endedMs ?? Number.POSITIVE_INFINITY;
      if (last === undefined || each.startedMs > lastEndMs + CLOSE_MS) joined.push(each);
      else joined[joined.length - 1] = joinedWith(last, each);
    }
    return joined;
  });
}

/** Callers who are the same at several nodes cannot be told: at least as many as at one of them. */
function joinedWith(first: Incident, later: Incident): Incident {
  const isOpen = first.endedMs === null || later.endedMs === null;
  const current = first.endedMs === null && later.endedMs !== null ? first : later;
  return {
    ...current,
    id: first.id,
    startedMs: first.startedMs,
    endedMs: isOpen ? null : Math.max(first.endedMs ?? 0, later.endedMs ?? 0),
    attempts: first.attempts + later.attempts,
    failed: first.failed + later.failed,
    failedCalls: first.failedCalls + later.failedCalls,
    users: Math.max(first.users, later.users),
  };
}

/** How often attempts failed in one way, as it is called. */
export type FailureLabels = ReadonlyMap<string, number>;

const ENOUGH_FOR_SHARE = 20;

/** The most frequent failure of a number of attempts, in words; null = none failed. */
export function failureWords(attempts: number, labels: FailureLabels): string | null {
  let top: readonly [string, number] | null = null;
  for (const label of labels) if (top === null || label[1] > top[1]) top = label;
  if (top === null) return null;
  const [label, count] = top;
  const all = Math.max(attempts, count);
  return all < ENOUGH_FOR_SHARE
    ? `${count} of ${all} attempts: ${label}`
    : `${Math.round((100 * count) / all)} % ${label}`;
}
