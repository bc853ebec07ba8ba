// The head of an HTTP/1.1 answer and the size line of a chunk, read strictly: what could be understood in two ways is refused. Pure.

/** What an answer's head says. */
export interface AnswerHead {
  readonly status: number;
  /** Only the headers that matter here, by lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: { readonly kind: "counted"; readonly bytes: number } | { readonly kind: "chunked" } | { readonly kind: "until_close" };
  readonly keepAlive: boolean;
  /** How long the origin keeps an idle connection, less a second; null = it does not say. */
  readonly idleMs: number | null;
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [^\r\n]*)?$/;
const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?)[ \t]*$/;
const WANTED: ReadonlySet<string> = new Set(["content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive", "retry-after"]);
/** Lengths of the wanted names, so that most lines are passed over without a copy. */
const WANTED_LENGTHS: ReadonlySet<number> = new Set([...WANTED].map((it) => it.length));
const MAX_LINES = 128;

/** Reads a head without its final blank line; null when it is malformed or its framing is in doubt. */
export function readHead(text: string): AnswerHead | null {
  const firstEnd = text.indexOf("\r\n");
  const status = STATUS_LINE.exec(firstEnd === -1 ? text : text.slice(0, firstEnd));
  if (status === null) return null;
  const headers: Record<string, string | undefined> = {};
  let at = firstEnd === -1 ? text.length : firstEnd + 2;
  for (let lines = 0; at < text.length; lines++) {
    if (lines >= MAX_LINES) return null;
    const end = text.indexOf("\r\n", at);
    const stop = end === -1 ? text.length : end;
    const colon = text.indexOf(":", at);
    if (colon === -1 || colon >= stop || colon === at) return null;
    const c = text.charCodeAt(at);
    if (c === 0x20 || c === 0x09) return null;
    if (WANTED_LENGTHS.has(colon - at)) {
      const field = FIELD.exec(text.slice(at, stop));
      if (field === null) return null;
      const name = (field[1] ?? "").toLowerCase();
      if (WANTED.has(name)) {
        if (headers[name] !== undefined && headers[name] !== field[2]) return null;
        headers[name] = field[2];
      }
    }
    at = stop + 2;
  }
  return judge(status[1] === "1", Number(status[2]), headers);
}

/** Size of a chunk from its line; null when it is none. Extensions are passed over. */
export function readChunkSize(line: string): number | null {
  const size = /^([0-9a-fA-F]{1,12})[ \t]*(?:;.*)?$/.exec(line)?.[1];
  return size === undefined ? null : Number.parseInt(size, 16);
}

function judge(isOneOne: boolean, status: number, headers: Readonly<Record<string, string | undefined>>): AnswerHead | null {
  const { "content-length": length, "transfer-encoding": encoding, connection = "", "keep-alive": hint = "" } = headers;
  const close = /(?:^|,)\s*close\s*(?:,|$)/i.test(connection);
  const stays = isOneOne ? !close : /(?:^|,)\s*keep-alive\s*(?:,|$)/i.test(connection);
  const seconds = /(?:^|[,\s])timeout=(\d{1,6})/.exec(hint)?.[1];
  const idleMs = seconds === undefined ? null : Math.max(0, Math.min(120, Number(seconds)) * 1_000 - 1_000);
  const rest = { status, headers, idleMs };
  if (status < 200 || status === 204 || status === 304) return { ...rest, keepAlive: stays && status !== 101, body: { kind: "counted", bytes: 0 } };
  if (encoding !== undefined)
    return length === undefined && encoding.toLowerCase() === "chunked" ? { ...rest, keepAlive: stays, body: { kind: "chunked" } } : null;
  if (length === undefined) return { ...rest, keepAlive: false, body: { kind: "until_close" } };
  return /^\d{1,15}$/.test(length) ? { ...rest, keepAlive: stays, body: { kind: "counted", bytes: Number(length) } } : null;
}
