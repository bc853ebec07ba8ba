// What a request says of how it is answered, in the query or in headers, never in the body: its
// view of the chain, the newest block that its caller has seen, and the cache. A WebSocket says it
// in its handshake.
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { CONSISTENCIES, type Consistency } from "../../core/provider/profile.ts";
import type { CacheUse } from "../../core/routing/cache-terms.ts";
import { parseSeen, type SeenBlock } from "../../core/routing/seen.ts";
import type { Headers } from "../http/respond.ts";

/** The parts of a request that may say something. */
interface WishingRequest {
  /** Path and query. */
  readonly url: string;
  /** Value of a request header, by lower-case name. */
  header(name: string): string | undefined;
}

/** What a request says; null = nothing. */
export interface Wishes {
  readonly consistency: Consistency | null;
  readonly seen: SeenBlock | null;
}

/** What most requests say. */
const NO_WISHES: Wishes = { consistency: null, seen: null };

/** What a request says of its view of the chain. The query wins over the headers, as elsewhere. */
export function wishesOf(request: WishingRequest): Wishes | Fault {
  const query = queryOf(request.url);
  const mode = query?.get("consistency") ?? request.header("x-svc-consistency");
  const mark = query?.get("seen") ?? request.header("x-svc-seen");
  if (mode === undefined && mark === undefined) return NO_WISHES;
  const consistency = mode === undefined ? null : CONSISTENCIES.find((each) => each === mode);
  if (consistency === undefined) return UNKNOWN_MODE;
  const seen = mark === undefined ? null : parseSeen(mark);
  return mark !== undefined && seen === null ? BAD_MARK : { consistency, seen };
}

/** The query; null = it says nothing of this, as most do: then it is not parsed. */
function queryOf(url: string): URLSearchParams | null {
  const mark = url.indexOf("?");
  if (mark === -1 || !(url.includes("consistency=", mark) || url.includes("seen=", mark)))
    return null;
  return new URLSearchParams(url.slice(mark + 1));
}

const UNKNOWN_MODE: Fault = fault("invalid_field", "no consistency has this name", {
  nextAction: `use ${CONSISTENCIES.slice(0, -1).join(", ")} or ${CONSISTENCIES.at(-1)}`,
});

const BAD_MARK: Fault = fault("invalid_request", "the mark of the last seen block is not valid", {
  nextAction: "send X-Svc-Seen back as it was received, or leave it out",
});

const NO_CACHE = /(?:^|[\s,])no-(?:cache|store)(?:[\s,=]|$)/i;

/** Whether a provider is to be asked for this very request. */
export function wantsFresh(request: Pick<WishingRequest, "header">): boolean {
  const directive = request.header("cache-control");
  if (directive !== undefined && NO_CACHE.test(directive)) return true;
  return request.header("x-svc-cache")?.toLowerCase() === "bypass";
}

/** Tells how the call met the cache. */
export function addCacheUse(headers: Headers, use: CacheUse | null | undefined): void {
  if (use !== null && use !== undefined) headers.push("x-svc-cache", use.result);
}
