// Which calls of a filter the feed takes in each second. The number is bounded, and successful
// calls get four fifths of it, so that failures find room.
import type { RouteRequest } from "../../upstream/engine/call-context.ts";
import { ANY_CALL, type CallFilter, dependsOnEnd, filterKey, mayMatch } from "./call-filter.ts";

/** Of the calls that are taken, the share of those that may have gone well. */
const GOOD_SHARE = 0.8;

/**
 * What there is to say of a call. `notable`: it did not go well. `explained`: the inputs of its
 * plan were recorded, or it had no choice. `plain`: it went well, and nothing more is known.
 */
export type CallWorth = "notable" | "explained" | "plain";

/** The sample of one filter. */
export class CallSample {
  readonly filter: CallFilter;
  /** Of the filter. */
  readonly key: string;
  /** The key alone, as a list. */
  readonly keys: readonly string[];
  /** False = the filter lets every call pass. */
  readonly isFiltered: boolean;
  /** Calls that matched and calls that were taken, since the last reading. */
  matched = 0;
  taken = 0;
  readonly #limit: number;
  readonly #goodLimit: number;
  readonly #takesPlain: boolean;
  /** In the present second. */
  #recordedNow = 0;
  #takenNow = 0;
  #goodNow = 0;

  constructor(filter: CallFilter, limitPerSecond: number) {
    this.filter = filter;
    this.key = filterKey(filter);
    this.keys = [this.key];
    this.isFiltered = this.key !== filterKey(ANY_CALL);
    this.#limit = limitPerSecond;
    this.#goodLimit = Math.ceil(limitPerSecond * GOOD_SHARE);
    this.#takesPlain = dependsOnEnd(filter);
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
