// Places in a JSON text that may be unfinished: what is being typed at the cursor, and where each
// value begins. Pure; reads a text of any content once, and never fails.

/** What the cursor stands at. */
export interface JsonPlace {
  readonly kind: "key" | "value";
  /** The way to the object that gets the key, or to the value. */
  readonly path: JsonPath;
  /** Keys that the object has, without the one at the cursor; empty at a value. */
  readonly siblings: readonly string[];
  /** What was typed of it before the cursor, without its quote. */
  readonly typed: string;
  /** What a completion replaces, quotes included. */
  readonly start: number;
  readonly end: number;
  /** True = a colon follows: only the name of the key is replaced. */
  readonly hasColon: boolean;
}

/** Keys and indexes. */
type JsonPath = readonly (string | number)[];

interface Token {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** An object or array that is open. */
interface Frame {
  readonly isObject: boolean;
  readonly path: JsonPath;
  readonly keys: string[];
  /** What comes next in it. */
  awaits: "key" | "colon" | "value" | "comma";
  key: string;
  index: number;
}

const TOKEN = /"(?:[^"\\\n]|\\[^\n])*"?|[{}[\]:,]|[^\s"{}[\]:,]+/g;

/** The place of a cursor; null = nothing can be completed there. */
export function placeAt(text: string, cursor: number): JsonPlace | null {
  const tokens = tokensOf(text);
  const frames: Frame[] = [];
  const nextAt = tokens.findIndex((token) => token.start >= cursor || isTypedAt(token, cursor));
  const before = nextAt === -1 ? tokens : tokens.slice(0, nextAt);
  for (const token of before) step(frames, token);
  const frame = frames.at(-1);
  if (frame === undefined || (frame.awaits !== "key" && frame.awaits !== "value")) return null;
  const next = nextAt === -1 ? undefined : tokens[nextAt];
  const isTyped = next !== undefined && isTypedAt(next, cursor);
  const after = tokens.slice(before.length + (isTyped ? 1 : 0));
  const range = isTyped ? rangeOf(next, cursor) : { typed: "", start: cursor, end: cursor };
  const shared = { ...range, hasColon: after[0]?.text === ":" };
  return frame.awaits === "key"
    ? { kind: "key", path: frame.path, siblings: [...frame.keys, ...laterKeys(after)], ...shared }
    : { kind: "value", path: innerPath(frame), siblings: [], ...shared };
}

/** Where each value stands: the offset of its key, or of itself in an array, by its path. */
export function offsetsOf(text: string): ReadonlyMap<string, number> {
  const frames: Frame[] = [];
  const offsets = new Map<string, number>();
  for (const token of tokensOf(text)) {
    const frame = frames.at(-1);
    if (frame?.awaits === "key" && token.text.startsWith('"'))
      offsets.set(pathText([...frame.path, contentOf(token.text)]), token.start);
    if (frame?.isObject === false && frame.awaits === "value" && token.text !== "]")
      offsets.set(pathText(innerPath(frame)), token.start);
    step(frames, token);
  }
  return offsets;
}

/** The offset of a path, or of the nearest part of it that is there; null = of none. */
export function offsetOf(offsets: ReadonlyMap<string, number>, path: string): number | null {
  for (let part = path; part !== ""; part = part.replace(/(^|\.)[^.[\]]*$|\[\d*\]?$/, "")) {
    const offset = offsets.get(part);
    if (offset !== undefined) return offset;
    if (!/[.[]/.test(part)) return null;
  }
  return null;
}

/** The line and column of an offset, counted from 1. */
export function lineOf(
  text: string,
  offset: number,
): { readonly line: number; readonly column: number } {
  const before = text.slice(0, offset);
  return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") };
}

function tokensOf(text: string): readonly Token[] {
  return Array.from(text.matchAll(TOKEN), ({ 0: token, index }) => ({
    text: token,
    start: index,
    end: index + token.length,
  }));
}

/** Reads one token on. */
function step(frames: Frame[], { text }: Token): void {
  const frame = frames.at(-1);
  if (text === "{" || text === "[") {
    frames.push({
      isObject: text === "{",
      path: frame === undefined ? [] : innerPath(frame),
      keys: [],
      awaits: text === "{" ? "key" : "value",
      key: "",
      index: 0,
    });
  } else if (text === "}" || text === "]") {
    frames.pop();
    const outer = frames.at(-1);
    if (outer !== undefined) outer.awaits = "comma";
  } else if (frame === undefined) return;
  else if (text === ":") frame.awaits = "value";
  else if (text === ",") {
    frame.awaits = frame.isObject ? "key" : "value";
    frame.index++;
  } else if (frame.awaits === "key") {
    frame.key = contentOf(text);
    frame.keys.push(frame.key);
    frame.awaits = "colon";
  } else frame.awaits = "comma";
}

function innerPath({ isObject, path, key, index }: Frame): JsonPath {
  return [...path, isObject ? key : index];
}

/** Whether the cursor is inside of a word or a string. */
function isTypedAt({ text, start, end }: Token, cursor: number): boolean {
  if (cursor <= start || cursor > end || /^[{}[\]:,]/.test(text)) return false;
  return cursor < end || !text.startsWith('"') || !isClosed(text);
}

/** A string without its end is replaced up to the cursor: what follows may be meant otherwise. */
function rangeOf({ text, start, end }: Token, cursor: number) {
  const isQuoted = text.startsWith('"');
  return {
    typed: text.slice(isQuoted ? 1 : 0, cursor - start),
    start,
    end: isQuoted && !isClosed(text) ? cursor : end,
  };
}

/** Keys of the object that is open, behind the cursor. */
function laterKeys(tokens: readonly Token[]): readonly string[] {
  const keys: string[] = [];
  let depth = 0;
  for (const [at, { text }] of tokens.entries()) {
    if (text === "{" || text === "[") depth++;
    if (text === "}" || text === "]") depth--;
    if (depth < 0) break;
    if (depth === 0 && text.startsWith('"') && tokens[at + 1]?.text === ":")
      keys.push(contentOf(text));
  }
  return keys;
}

function isClosed(text: string): boolean {
  return /^"(?:[^"\\]|\\.)*"$/.test(text);
}

/** What a string says; one that is no JSON is taken as it is written. */
function contentOf(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text.replace(/^"|"$/g, "");
  }
}

/** A path as problems name it: `chains.base.providers[0].name`. */
function pathText(path: JsonPath): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`))
    .join("")
    .replace(/^\./, "");
}
