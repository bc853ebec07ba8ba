// Where a caller's key stands: in the path, in the query, or in a header. Takes it out of the URL,
// so that nothing behind this sees it there.
import type { LegacyFormName } from "../../core/faults/legacy-form.ts";
import { digestOf } from "../../secrets/secret.ts";

/** The key that a request carries. */
export interface Credential {
  /** As written, unchecked; null = none was sent. Secret. */
  readonly secret: string | null;
  /** Of the secret; empty without one. */
  readonly digest: string;
  /** The URL without it. */
  readonly url: string;
  /** Old forms of the request that are not in the URL behind this; null = there are none. */
  readonly old: readonly LegacyFormName[] | null;
}

const IN_PATH = "/rpc/k/";
const BEARER = /(?:^|,)\s*bearer\s+([^\s,]+)/i;

/**
 * Reads a request's credential: path before query before `Authorization: Bearer` before
 * `X-Svc-Api-Key`.
 */
export function credentialOf(
  url: string,
  headers: { header(name: string): string | undefined },
): Credential {
  const found = secretOf(url, headers);
  const inQuery = found.url !== url && !url.startsWith(IN_PATH);
  const old = OLD.get(`${inQuery} ${headers.header("x-svc-version") === "2"}`) ?? null;
  return { ...found, digest: found.secret === null ? "" : digestOf(found.secret), old };
}

/** By whether the key stands in the query, and whether version 2 is asked for. */
const OLD: ReadonlyMap<string, readonly LegacyFormName[]> = new Map([
  ["true false", ["key-query"]],
  ["true true", ["key-query", "version-header"]],
  ["false true", ["version-header"]],
]);

type Found = Omit<Credential, "digest" | "old">;

function secretOf(url: string, headers: { header(name: string): string | undefined }): Found {
  if (url.startsWith(IN_PATH)) return inPath(url);
  const found = url.includes("key=") ? inQuery(url) : null;
  if (found !== null) return found;
  const authorization = headers.header("authorization");
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  return { secret: bearer ?? headers.header("x-svc-api-key") ?? null, url };
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

/** `?key=`, as it was sent before keys stood in the path. */
function inQuery(url: string): Found | null {
  const mark = url.indexOf("?");
  if (mark === -1) return null;
  const query = url.slice(mark + 1).split("&");
  const secret = query.find((field) => field.startsWith("key="))?.slice("key=".length);
  if (secret === undefined) return null;
  const rest = query.filter((field) => !field.startsWith("key=")).join("&");
  return { secret, url: url.slice(0, mark) + (rest === "" ? "" : `?${rest}`) };
}
