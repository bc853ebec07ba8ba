// What a request says of itself in its URL and headers: its key, its provider and strategy, its
// view of the chain, the cache. Removes the key from the URL, so that no later stage sees it there.
// Read once for all requests of a connection whose heads are equal.
import type { LegacyFormName } from "../../core/faults/legacy-form.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { PASSED_HEADER, passedServices } from "../../core/passed-services.ts";
import { CONSISTENCIES, type Consistency } from "../../core/provider/profile.ts";
import { parseSeen, type SeenBlock } from "../../core/rpc/seen.ts";
import { digestOf } from "../../secrets/secret.ts";
import { isSessionPath } from "./target.ts";

/** The URL and the headers of a request, as far as they say how it is served. */
export interface Directives {
  /** The key as sent, unchecked; null = none was sent. Secret. */
  readonly secret: string | null;
  /** SHA-256 of the key; empty without one. */
  readonly digest: string;
  /** The URL without the key. */
  readonly url: string;
  /** Legacy forms used by the request that the URL no longer shows; absent = none. */
  readonly legacyForms: readonly LegacyFormName[] | undefined;
  /** The call is paid for by itself. */
  readonly payPerCall: boolean;
  /** `X-Svc-Provider`. */
  readonly provider: string | undefined;
  /** `X-Svc-Strategy`. */
  readonly strategy: string | undefined;
  /** The view of the chain that it asks for. */
  readonly wishes: Wishes | Fault;
  /** A provider is to be asked for this very request. */
  readonly fresh: boolean;
  /** Marks of the services that it has passed; undefined = none. */
  readonly passed: readonly string[] | undefined;
  /** The body is sent with a content encoding. */
  readonly compressed: boolean;
  /** The caller's own id of the request, unchecked. */
  readonly requestId: string | undefined;
}

/** The value of a request header, by lower-case name. */
type HeaderOf = (name: string) => string | undefined;

const IN_PATH = "/rpc/k/";
const BEARER = /(?:^|,)\s*bearer\s+([^\s,]+)/i;

/** Reads the directives of a request from its path with query, and its headers. */
export function readDirectives(url: string, header: HeaderOf): Directives {
  const found = secretOf(url, header);
  const inQuery = found.url !== url && !url.startsWith(IN_PATH);
  const passed = passedServices(header(PASSED_HEADER));
  const encoding = header("content-encoding");
  return {
    ...found,
    digest: found.secret === null ? "" : digestOf(found.secret),
    legacyForms: LEGACY_FORMS.get(`${inQuery} ${header("x-svc-version") === "2"}`),
    payPerCall: isSessionPath(url),
    provider: header("x-svc-provider"),
    strategy: header("x-svc-strategy"),
    wishes: wishesOf(url, header),
    fresh: wantsFresh(header),
    passed: passed.length === 0 ? undefined : passed,
    compressed: encoding !== undefined && encoding !== "identity",
    requestId: header("x-request-id"),
  };
}

/** By whether the key is in the query, and whether headers of version 2 are requested. */
const LEGACY_FORMS: ReadonlyMap<string, readonly LegacyFormName[]> = new Map([
  ["true false", ["key-query"]],
  ["true true", ["key-query", "version-header"]],
  ["false true", ["version-header"]],
]);

type Found = Pick<Directives, "secret" | "url">;

/**
 * The key of a request. The path wins over the query, `Authorization: Bearer` and `X-Svc-Api-Key`,
 * in this order.
 */
function secretOf(url: string, header: HeaderOf): Found {
  if (url.startsWith(IN_PATH)) return inPath(url);
  const found = url.includes("key=") ? inQuery(url) : null;
  if (found !== null) return found;
  const authorization = header("authorization");
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  return { secret: bearer ?? header("x-svc-api-key") ?? null, url };
}

function inPath(url: string): Found {
  const slash = url.indexOf("/", IN_PATH.length);
  const mark = url.indexOf("?");
  const pathEnd = mark === -1 ? url.length : mark;
  const end = slash === -1 || pathEnd < slash ? pathEnd : slash;
  const rest = url.slice(end);
  return {
    secret: url.slice(IN_PATH.length, end),
    url: `/rpc${rest.startsWith("/") ? rest : `/${rest}`}`,
  };
}

/** A key in `?key=`, the form used before keys were part of the path. */
function inQuery(url: string): Found | null {
  const mark = url.indexOf("?");
  if (mark === -1) return null;
  const query = url.slice(mark + 1).split("&");
  const secret = query.find((field) => field.startsWith("key="))?.slice("key=".length);
  if (secret === undefined) return null;
  const rest = query.filter((field) => !field.startsWith("key=")).join("&");
  return { secret, url: url.slice(0, mark) + (rest === "" ? "" : `?${rest}`) };
}

/** What a request says; null = nothing. */
export interface Wishes {
  readonly consistency: Consistency | null;
  readonly seen: SeenBlock | null;
}

/** What most requests say. */
const NO_WISHES: Wishes = { consistency: null, seen: null };

/** What a request says of its view of the chain. The query wins over the headers, as elsewhere. */
function wishesOf(url: string, header: HeaderOf): Wishes | Fault {
  const query = url.includes("?") ? queryOf(url) : null;
  const mode = query?.get("consistency") ?? header("x-svc-consistency");
  const mark = query?.get("seen") ?? header("x-svc-seen");
  if (mode === undefined && mark === undefined) return NO_WISHES;
  const consistency = mode === undefined ? null : CONSISTENCIES.find((each) => each === mode);
  if (consistency === undefined) return UNKNOWN_MODE;
  const seen = mark === undefined ? null : parseSeen(mark);
  return mark !== undefined && seen === null ? BAD_MARK : { consistency, seen };
}

/** The query; null = it says nothing of this, as most do: then it is not parsed. */
function queryOf(url: string): URLSearchParams | null {
  const mark = url.indexOf("?");
  if (!url.includes("consistency=", mark) && !url.includes("seen=", mark)) return null;
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
function wantsFresh(header: HeaderOf): boolean {
  const directive = header("cache-control");
  if (directive !== undefined && NO_CACHE.test(directive)) return true;
  return header("x-svc-cache")?.toLowerCase() === "bypass";
}
