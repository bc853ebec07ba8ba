// Reads the API key of a request from the path, the query or a header, and removes it from the URL,
// so that no later stage sees it there.
import type { LegacyFormName } from "../../core/faults/legacy-form.ts";
import { digestOf } from "../../secrets/secret.ts";

/** The API key of a request. */
export interface Credential {
  /** The key as sent, unchecked; null = none was sent. Secret. */
  readonly secret: string | null;
  /** SHA-256 of the key; empty without one. */
  readonly digest: string;
  /** The URL without the key. */
  readonly url: string;
  /** Legacy forms used by the request that the URL no longer shows; null = none. */
  readonly legacyForms: readonly LegacyFormName[] | null;
}

const IN_PATH = "/rpc/k/";
const BEARER = /(?:^|,)\s*bearer\s+([^\s,]+)/i;

/**
 * Reads the key of a request. The path wins over the query, `Authorization: Bearer` and
 * `X-Svc-Api-Key`, in this order.
 */
export function credentialOf(
  url: string,
  headers: { header(name: string): string | undefined },
): Credential {
  const found = secretOf(url, headers);
  const inQuery = found.url !== url && !url.startsWith(IN_PATH);
  const legacyForms =
    LEGACY_FORMS.get(`${inQuery} ${headers.header("x-svc-version") === "2"}`) ?? null;
  return { ...found, digest: found.secret === null ? "" : digestOf(found.secret), legacyForms };
}

/** By whether the key is in the query, and whether headers of version 2 are requested. */
const LEGACY_FORMS: ReadonlyMap<string, readonly LegacyFormName[]> = new Map([
  ["true false", ["key-query"]],
  ["true true", ["key-query", "version-header"]],
  ["false true", ["version-header"]],
]);

type Found = Omit<Credential, "digest" | "legacyForms">;

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
