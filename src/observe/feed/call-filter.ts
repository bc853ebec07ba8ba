// Which calls a reader of the live feed wants to see. Cheap enough to be asked of every call at its
// end, before any of them are left out.
import type { CallOutcome } from "../../core/call-end.ts";
import type { RouteRequest } from "../../upstream/engine/call-context.ts";

/** Which calls a reader wants to see; what is left out may be anything. */
export interface CallFilter {
  readonly profile?: string | undefined;
  readonly chain?: string | undefined;
  readonly method?: string | undefined;
  readonly provider?: string | undefined;
  readonly key?: string | undefined;
  readonly outcome?: CallOutcome | undefined;
  /** Only calls with a failed attempt, or more than one. */
  readonly failovers: boolean;
  readonly minMs?: number | undefined;
}

/** What a filter looks at in a call that has ended. */
export interface FilteredCall {
  readonly profile: string;
  readonly chain: string;
  /** Null = it was not read. */
  readonly methodName: string | null;
  readonly keyId: string | null;
  readonly outcome: CallOutcome;
  /** Id of the provider that answered; null = none did, or several. */
  readonly provider: string | null;
  /** Ids of the providers that failed. */
  readonly failedProviders: readonly string[];
  readonly attempts: number;
  /** Null = it was not routed. */
  readonly totalMs: number | null;
}

/** Every call. */
export const ANY_CALL: CallFilter = { failovers: false };

/** Equal for equal filters. */
export function filterKey(filter: CallFilter): string {
  const { profile, chain, method, provider, key, outcome, failovers, minMs } = filter;
  return JSON.stringify([profile, chain, method, provider, key, outcome, failovers, minMs]);
}

/** Whether a call is one that a reader wants to see. */
export function matches(filter: CallFilter, call: FilteredCall): boolean {
  return (
    (filter.profile === undefined || filter.profile === call.profile) &&
    (filter.chain === undefined || filter.chain === call.chain) &&
    (filter.method === undefined || filter.method === call.methodName) &&
    (filter.key === undefined || filter.key === call.keyId) &&
    (filter.outcome === undefined || filter.outcome === call.outcome) &&
    (!filter.failovers || call.attempts > 1) &&
    (filter.minMs === undefined || (call.totalMs ?? 0) >= filter.minMs) &&
    (filter.provider === undefined ||
      filter.provider === call.provider ||
      call.failedProviders.includes(filter.provider))
  );
}

/** Whether a call that begins now may turn out to be one. */
function mayMatch(
  { chain, method, key }: CallFilter,
  { call, caller, tracker }: Pick<RouteRequest, "call" | "caller" | "tracker">,
): boolean {
  return (
    (method === undefined || method === call.methodName) &&
    (chain === undefined || chain === tracker.set.chain.chainName) &&
    (key === undefined || key === caller.keyId)
  );
}

// Which calls of a filter the feed takes in each second. The number is bounded, and successful
// calls get four fifths of it, so that failures find room.

/** Of the calls that are taken, the share of those that may have gone well. */
const GOOD_SHARE = 0.8;

/**
 * What there is to say of a call. `notable`: it did not go well. `explained`: the inputs of its
 * plan were recorded, or it had no choice, or it was not routed: refusals, which can be very many,
 * leave room for failures. `plain`: it went well, and nothing more is known.
 */
export type CallWorth = "notable" | "explained" | "plain";

/** The sample of one filter. */
export class CallSample {
  readonly filter: CallFilter;
  /** Of the filter. */
  readonly key: string;
  /** False = the filter lets every call pass. */
  readonly isFiltered: boolean;
  /** Calls that matched and calls that were taken, since the last reading. */
  matched = 0;
  taken = 0;
  readonly #limit: number;
  readonly #goodLimit: number;
  /** More of a call than how it began decides whether it matches. */
  readonly #takesPlain: boolean;
  /** In the present second. */
  #recordedNow = 0;
  #takenNow = 0;
  #goodNow = 0;

  constructor(filter: CallFilter, limitPerSecond: number) {
    this.filter = filter;
    this.key = filterKey(filter);
    this.isFiltered = this.key !== filterKey(ANY_CALL);
    this.#limit = limitPerSecond;
    this.#goodLimit = Math.ceil(limitPerSecond * GOOD_SHARE);
    const { provider, outcome, failovers, minMs } = filter;
    this.#takesPlain =
      provider !== undefined || outcome !== undefined || failovers || minMs !== undefined;
  }

  newSecond(): void {
    this.#recordedNow = 0;
    this.#takenNow = 0;
    this.#goodNow = 0;
  }

  /** Whether the inputs of the plan of a call that begins now are to be recorded. */
  records(request: Pick<RouteRequest, "call" | "caller" | "tracker">): boolean {
    if (this.#recordedNow >= this.#goodLimit) return false;
    if (this.isFiltered && !mayMatch(this.filter, request)) return false;
    this.#recordedNow++;
    return true;
  }

  /** Whether no call at all is taken before the next second. */
  get isFull(): boolean {
    return this.#takenNow >= this.#limit;
  }

  /** Takes a call that matched, if there is room for its kind. */
  takes(worth: CallWorth): boolean {
    if (worth !== "notable") {
      if (this.#goodNow >= this.#goodLimit) return false;
      if (worth === "plain" && !this.#takesPlain) return false;
      this.#goodNow++;
    }
    this.#takenNow++;
    this.taken++;
    return true;
  }
}
