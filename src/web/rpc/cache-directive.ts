// What a request says of the cache, and what the header of its answer tells.
import type { CacheUse } from "../../core/routing/cache-terms.ts";
import type { Headers } from "../http/respond.ts";
import type { RequestInfo } from "./authenticate.ts";

const NO_CACHE = /(?:^|[\s,])no-(?:cache|store)(?:[\s,=]|$)/i;

/** Whether a provider is to be asked for this very request. */
export function wantsFresh(request: Pick<RequestInfo, "header">): boolean {
  const directive = request.header("cache-control");
  if (directive !== undefined && NO_CACHE.test(directive)) return true;
  return request.header("x-svc-cache")?.toLowerCase() === "bypass";
}

/** Tells how the call met the cache. */
export function addCacheUse(headers: Headers, use: CacheUse | null | undefined): void {
  if (use !== null && use !== undefined) headers.push("x-svc-cache", use.result);
}
