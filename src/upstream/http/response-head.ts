// The head of an HTTP/1.1 answer and the framing of a chunked body, parsed strictly: anything
// ambiguous is refused. Knows nothing of connections.

/** A parsed head. */
export interface ResponseHead {
  readonly status: number;
  /** Only the headers that matter here, by lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body:
    | { readonly kind: "counted"; readonly bytes: number }
    | { readonly kind: "chunked" }
    | { readonly kind: "until_close" };
  readonly keepAlive: boolean;
  /** How long the origin keeps an idle connection, less two seconds; null = it does not say. */
  readonly idleMs: number | null;
}

const CR = 0x0d;
const LF = 0x0a;
const VERSION = "HTTP/1.";
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [^\r\n]*)?$/;
/** A tab after a value is kept: some parsers would not accept a length or encoding with one. */
const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?) *$/;
const WANTED: ReadonlySet<string> = new Set([
  "content-length",
  "content-encoding",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "retry-after",
]);
/** Lengths of the wanted names, so that most lines are skipped without a copy. */
const WANTED_LENGTHS: ReadonlySet<number> = new Set([...WANTED].map((name) => name.length));
/** How a chunk-size line may begin. */
const CHUNK_START = /^[0-9a-fA-F]{1,12}(?:[\t ;\r]|$)/;
const CHUNK_LINE = /^([0-9a-fA-F]{1,12})[ \t]*(?:;[\t -~\x80-\xff]*)?$/;
/** Most digits of a chunk size, as `CHUNK_LINE` has it. */
const MAX_SIZE_DIGITS = 12;
const MAX_LINES = 128;
/** Fields that must not be repeated, even with equal values. */
const FRAMING: ReadonlySet<string> = new Set(["content-length", "transfer-encoding"]);

/**
 * Whether the bytes so far can still become a head: they begin as one, and every line ends in CR
 * LF. `from` = the bytes before were judged already.
 */
export function mayBecomeHead(bytes: Buffer, from: number): boolean {
  const begun = Math.min(bytes.length, VERSION.length);
  if (from < VERSION.length && !VERSION.startsWith(bytes.toString("latin1", 0, begun)))
    return false;
  return hasProperLineEnds(bytes, from);
}

/** Whether every CR is followed by an LF, unless it is the last byte, and every LF follows a CR. */
function hasProperLineEnds(bytes: Buffer, from: number): boolean {
  for (let at = Math.max(0, from - 1); at < bytes.length; at++) {
    if (bytes[at] === LF && bytes[at - 1] !== CR) return false;
    if (bytes[at] === CR && at + 1 < bytes.length && bytes[at + 1] !== LF) return false;
  }
  return true;
}

/**
 * Parses a head without its final blank line; null = it is malformed or its framing is ambiguous.
 */
export function readHead(text: string): ResponseHead | null {
  const firstEnd = lineEnd(text, 0);
  const status = STATUS_LINE.exec(text.slice(0, firstEnd));
  if (status === null) return null;
  const headers: Record<string, string | undefined> = {};
  for (let at = firstEnd + 2, lines = 0; at < text.length; lines++) {
    if (lines >= MAX_LINES) return null;
    const end = lineEnd(text, at);
    const colon = text.indexOf(":", at);
    // A name with white space around it is a folded line, or a name that other parsers may read
    // without it.
    if (
      end === -1 ||
      colon <= at ||
      colon >= end ||
      text.charCodeAt(at) <= 0x20 ||
      text.charCodeAt(colon - 1) <= 0x20
    )
      return null;
    if (WANTED_LENGTHS.has(colon - at)) {
      const field = FIELD.exec(text.slice(at, end));
      if (field === null) return null;
      const name = (field[1] ?? "").toLowerCase();
      if (WANTED.has(name)) {
        const known = headers[name];
        if (known !== undefined && FRAMING.has(name)) return null;
        headers[name] = known === undefined ? field[2] : `${known}, ${field[2]}`;
      }
    }
    at = end + 2;
  }
  return judge(status[1] === "1", Number(status[2]), headers);
}

/** End of the line that starts at `at`; -1 = it does not end in CR LF. */
function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\r", at);
  const feed = text.indexOf("\n", at);
  if (end === -1) return feed === -1 ? text.length : -1;
  return feed === end + 1 ? end : -1;
}

/** Longest line between two chunks, and most bytes of all trailers of one body. */
const MAX_LINE_BYTES = 1_024;
const MAX_TRAILER_BYTES = 16_384;

/** Parses a chunked body while it arrives, split at any byte; strict about line ends. */
export class ChunkedBody {
  /** The part of the body that is expected next. */
  #next: "size" | "data" | "data_end" | "trailer" = "size";
  #dataBytes = 0;
  #trailerBytes = 0;
  /** A partially received line. */
  #partial: Buffer | null = null;

  /**
   * Passes on where in `arrived` the data of chunks is. Returns the bytes after the end of the
   * body; null = the end has not arrived; undefined = malformed.
   */
  take(arrived: Buffer, give: (start: number, end: number) => void): Buffer | null | undefined {
    let at = 0;
    while (at < arrived.length) {
      if (this.#next === "data") {
        const end = Math.min(arrived.length, at + this.#dataBytes);
        this.#dataBytes -= end - at;
        if (this.#dataBytes === 0) this.#next = "data_end";
        give(at, end);
        at = end;
        continue;
      }
      const before = this.#partial;
      const dataAt = before === null ? this.#skipPlainSize(arrived, at) : at;
      if (dataAt > at) {
        at = dataAt;
        continue;
      }
      // Only bytes that may belong to the line are joined with its earlier part: data is passed on
      // in place.
      const text =
        before === null
          ? arrived.subarray(at)
          : Buffer.concat([before, arrived.subarray(at, at + MAX_LINE_BYTES + 2)]);
      this.#partial = null;
      const end = text.indexOf("\r\n");
      if (end === -1 || end > MAX_LINE_BYTES) return this.#keep(text);
      const line = text.toString("latin1", 0, end);
      at += end + 2 - (before === null ? 0 : before.length);
      if (this.#next === "trailer" && line === "") return arrived.subarray(at);
      if (!this.#takeLine(line)) return undefined;
    }
    return null;
  }

  /**
   * Reads the size of the next chunk if it is written without extensions and has arrived whole,
   * together with the line break before it: as nearly all are, without a copy. Returns where the
   * data begins; `at` = it is not so, and nothing was read.
   */
  #skipPlainSize(bytes: Buffer, at: number): number {
    let digitsAt = at;
    if (this.#next === "data_end") {
      if (bytes[at] !== CR || bytes[at + 1] !== LF) return at;
      digitsAt = at + 2;
    } else if (this.#next !== "size") return at;
    let end = digitsAt;
    let size = 0;
    while (end - digitsAt < MAX_SIZE_DIGITS) {
      const digit = hexDigit(bytes[end] ?? 0);
      if (digit === -1) break;
      size = size * 16 + digit;
      end++;
    }
    if (size === 0 || bytes[end] !== CR || bytes[end + 1] !== LF) return at;
    this.#dataBytes = size;
    this.#next = "data";
    return end + 2;
  }

  /** False = malformed. */
  #takeLine(line: string): boolean {
    switch (this.#next) {
      case "size": {
        const size = readChunkSize(line);
        this.#dataBytes = size ?? 0;
        this.#next = size === 0 ? "trailer" : "data";
        return size !== null;
      }
      case "trailer":
        this.#trailerBytes += line.length + 2;
        return this.#trailerBytes <= MAX_TRAILER_BYTES && !/[\r\n]/.test(line);
      case "data":
      case "data_end":
        this.#next = "size";
        return line === "";
    }
  }

  /** Keeps the beginning of a line; undefined = it cannot become a valid one. */
  #keep(bytes: Buffer): null | undefined {
    if (bytes.length > MAX_LINE_BYTES || !hasProperLineEnds(bytes, 0)) return undefined;
    if (this.#next === "data_end" && bytes[0] !== CR) return undefined;
    if (this.#next === "size" && !CHUNK_START.test(bytes.toString("latin1", 0, 14)))
      return undefined;
    this.#partial = Buffer.from(bytes);
    return null;
  }
}

/** The value of a hexadecimal digit; -1 = it is none. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Parses the size of a chunk; null = malformed. Extensions are ignored. */
function readChunkSize(line: string): number | null {
  const size = CHUNK_LINE.exec(line)?.[1];
  return size === undefined ? null : Number.parseInt(size, 16);
}

function judge(
  isOneOne: boolean,
  status: number,
  headers: Readonly<Record<string, string | undefined>>,
): ResponseHead | null {
  const {
    "content-length": length,
    "transfer-encoding": encoding,
    connection = "",
    "keep-alive": hint = "",
  } = headers;
  const close = /(?:^|,)\s*close\s*(?:,|$)/i.test(connection);
  const stays = isOneOne ? !close : /(?:^|,)\s*keep-alive\s*(?:,|$)/i.test(connection);
  const seconds = /(?:^|[,\s])timeout=(\d{1,6})/.exec(hint)?.[1];
  const idleMs =
    seconds === undefined ? null : Math.max(0, Math.min(120, Number(seconds)) * 1_000 - 2_000);
  const rest = { status, headers, idleMs };
  if (status === 101) return null;
  if (status < 200 || status === 204 || status === 304)
    return { ...rest, keepAlive: stays, body: { kind: "counted", bytes: 0 } };
  if (encoding !== undefined)
    return isOneOne && length === undefined && encoding.toLowerCase() === "chunked"
      ? { ...rest, keepAlive: stays, body: { kind: "chunked" } }
      : null;
  if (length === undefined) return { ...rest, keepAlive: false, body: { kind: "until_close" } };
  return /^\d{1,15}$/.test(length)
    ? { ...rest, keepAlive: stays, body: { kind: "counted", bytes: Number(length) } }
    : null;
}
