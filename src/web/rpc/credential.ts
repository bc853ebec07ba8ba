// Where a caller's key stands: in the path, in the query, or in a header. Takes it out of the URL, so that nothing behind this sees it there.

/** What a request says of its caller. */
export interface Credential {
  /** As written, unchecked; null = none was sent. Secret. */
  readonly secret: string | null;
  /** The URL without it. */
  readonly url: string;
}

const IN_PATH = "/rpc/k/";
const BEARER = /(?:^|,)\s*bearer\s+([^\s,]+)/i;

/** Reads a request's credential: path before query before `Authorization: Bearer` before `X-Svc-Api-Key`. */
export function credentialOf(url: string, headers: { header(name: string): string | undefined }): Credential {
  if (url.startsWith(IN_PATH)) return inPath(url);
  if (url.includes("key=")) {
    const found = inQuery(url);
    if (found !== null) return found;
  }
  const authorization = headers.header("authorization");
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  return { secret: bearer ?? headers.header("x-svc-api-key") ?? null, url };
}

function inPath(url: string): Credential {
  const slash = url.indexOf("/", IN_PATH.length);
  const mark = url.indexOf("?");
  const end = slash === -1 || (mark !== -1 && mark < slash) ? (mark === -1 ? url.length : mark) : slash;
  const rest = url.slice(end);
  return { secret: url.slice(IN_PATH.length, end), url: `/rpc${rest.startsWith("/") ? rest : `/${rest}`}` };
}

/** `?key=`, as it was sent before keys stood in the path. */
function inQuery(url: string): Credential | null {
  const mark = url.indexOf("?");
  if (mark === -1) return null;
  const query = url.slice(mark + 1).split("&");
  const secret = query.find((it) => it.startsWith("key="))?.slice("key=".length);
  if (secret === undefined) return null;
  const rest = query.filter((it) => !it.startsWith("key=")).join("&");
  return { secret, url: url.slice(0, mark) + (rest === "" ? "" : `?${rest}`) };
}
