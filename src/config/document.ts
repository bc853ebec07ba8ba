// Parses YAML into plain data, with the position of every key and value, and fills in `${NAME}`
// variables. Bounded in size, depth and alias expansion. Knows nothing of what settings mean, and
// never puts text of the file into a message, since values may be secrets.
import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
} from "yaml";

/** A position in the file; both numbers count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Keys and list indexes from the root to a setting. */
export type Path = readonly (string | number)[];

/** A problem at a position. */
export interface Problem {
  readonly place: Place;
  readonly path: Path;
  readonly message: string;
}

/** Environment variables by name. */
export type Variables = Readonly<Record<string, string | undefined>>;

const MAX_BYTES = 10_000_000;
const MAX_DEPTH = 32;
const MAX_ALIASED_NODES = 10_000;
const MAX_SYNTAX_PROBLEMS = 100;
const REFERENCE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{/g;
const NOT_A_REFERENCE = `holds \`\${\` that does not begin a \`\${NAME}\`; write \`$\${\` for a literal one`;

/** A parsed YAML 1.2 file; never throws. */
export class ConfigDocument {
  /**
   * Maps, lists, text, numbers, booleans and null; null as a whole = the text could not be parsed.
   */
  readonly data: unknown;
  readonly problems: Problem[] = [];
  readonly #variables: Variables;
  readonly #lines = new LineCounter();
  readonly #anchors = new Map<string, Node>();
  readonly #keys = new Map<string, Place>();
  readonly #values = new Map<string, Place>();
  readonly #unresolved = new Set<string>();
  /** Number of nodes reached through aliases so far. */
  #aliased = 0;

  constructor(text: string | Uint8Array, variables: Variables) {
    this.#variables = variables;
    const parsed = parsedOf(text, this.#lines);
    if (typeof parsed === "string") this.#report([], parsed);
    else
      for (const { code, pos } of [...parsed.errors, ...parsed.warnings]) this.#refuse(code, pos);
    this.data =
      typeof parsed === "string" || this.problems.length > 0
        ? null
        : (this.#dataOf(parsed.contents, [], false) ?? {});
  }

  /** Position of a value, or of the nearest enclosing value if it is missing. */
  valueAt(path: Path): Place {
    for (let length = path.length; length >= 0; length--) {
      const place = this.#values.get(keyOf(path.slice(0, length)));
      if (place !== undefined) return place;
    }
    return { line: 1, column: 1 };
  }

  /** Position of the key that ends the path, or of the value if it has no key. */
  keyAt(path: Path): Place {
    return this.#keys.get(keyOf(path)) ?? this.valueAt(path);
  }

  /** True = the value could not be read; its problem is already reported. */
  isUnresolved(path: Path): boolean {
    return this.#unresolved.has(keyOf(path));
  }

  #report(path: Path, message: string, place = this.valueAt(path)): void {
    this.problems.push({ place, path, message });
  }

  /** Reports a value that stands for nothing; null in its place. */
  #lack(path: Path, message: string | null): null {
    if (message !== null) this.#report(path, message);
    this.#unresolved.add(keyOf(path));
    return null;
  }

  /** Reports an error of syntax, the first one of each line. */
  #refuse(code: ErrorCode, [offset]: readonly [number, number]): void {
    const place = this.#placeAt(offset);
    const isKnown = this.problems.some((problem) => problem.place.line === place.line);
    if (isKnown || this.problems.length >= MAX_SYNTAX_PROBLEMS) return;
    this.#report([], SYNTAX_MESSAGES.get(code) ?? NOT_VALID, place);
  }

  #dataOf(node: unknown, path: Path, aliased: boolean): unknown {
    if (aliased && ++this.#aliased > MAX_ALIASED_NODES) {
      const isFirst = this.#aliased === MAX_ALIASED_NODES + 1;
      const message = `expands YAML aliases to more than ${MAX_ALIASED_NODES} values`;
      return this.#lack(path, isFirst ? message : null);
    }
    const place = aliased ? null : this.#startOf(node);
    if (place !== null) this.#values.set(keyOf(path), place);
    if (path.length > MAX_DEPTH)
      return this.#lack(path, `is nested more than ${MAX_DEPTH} levels deep`);
    if (isAlias(node)) {
      const target = this.#anchors.get(node.source);
      return target === undefined
        ? this.#lack(path, "is a YAML alias of something that is not defined above it")
        : this.#dataOf(target, path, true);
    }
    const data = this.#contentOf(node, path, aliased);
    if ((isMap(node) || isSeq(node) || isScalar(node)) && node.anchor !== undefined)
      this.#anchors.set(node.anchor, node);
    return data;
  }

  #contentOf(node: unknown, path: Path, aliased: boolean): unknown {
    if (isMap(node)) return this.#mapOf(node.items, path, aliased);
    if (isSeq(node))
      return node.items.map((item, index) => this.#dataOf(item, [...path, index], aliased));
    if (!isScalar(node)) return null;
    const { value } = node;
    if (typeof value === "string") return this.#filledIn(value, path);
    if (value === null || typeof value === "number" || typeof value === "boolean") return value;
    return this.#lack(path, NO_TAGS);
  }

  #mapOf(items: readonly Pair[], path: Path, aliased: boolean): unknown {
    const entries = new Map<string, unknown>();
    for (const { key, value } of items) {
      const place = this.#startOf(key) ?? this.valueAt(path);
      const name = isScalar(key) ? String(key.value) : "";
      const at = [...path, name];
      if (name === "" || name === "__proto__")
        this.#report(path, "holds a key that is empty, not text, or not allowed", place);
      else if (entries.has(name)) {
        const { line } = this.#keys.get(keyOf(at)) ?? { line: 0 };
        this.#report(at, `is given twice; first at line ${line}`, place);
      } else {
        if (!aliased) this.#keys.set(keyOf(at), place);
        if (!aliased) this.#values.set(keyOf(at), place);
        entries.set(name, this.#dataOf(value, at, aliased));
      }
    }
    return Object.fromEntries(entries);
  }

  #filledIn(text: string, path: Path): string {
    return text.replace(REFERENCE, (match, name: string | undefined) => {
      if (match === "$${") return "${";
      const isSet = name !== undefined && Object.hasOwn(this.#variables, name);
      const value = isSet ? this.#variables[name] : undefined;
      if (value !== undefined) return value;
      const lacks = `needs the environment variable ${name}, which is not set`;
      this.#lack(path, name === undefined ? NOT_A_REFERENCE : lacks);
      return "";
    });
  }

  #startOf(node: unknown): Place | null {
    const range = isAlias(node) || isMap(node) || isSeq(node) || isScalar(node) ? node.range : null;
    return range ? this.#placeAt(range[0]) : null;
  }

  #placeAt(offset: number): Place {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  }
}

/** The document in a text, or why there is none. */
function parsedOf(text: string | Uint8Array, lineCounter: LineCounter): Document | string {
  const size = typeof text === "string" ? Buffer.byteLength(text) : text.length;
  if (size > MAX_BYTES) return `is larger than ${MAX_BYTES} bytes`;
  let source: string;
  try {
    source =
      typeof text === "string" ? text : new TextDecoder("utf-8", { fatal: true }).decode(text);
  } catch {
    return "is not UTF-8 text";
  }
  try {
    const options = { version: "1.2", prettyErrors: false, uniqueKeys: false } as const;
    return parseDocument(source, { ...options, lineCounter });
  } catch {
    // Only the parser's own recursion can fail.
    return "cannot be read as YAML: it is nested too deeply";
  }
}

const NO_TAGS = "must not use YAML tags (`!name`)";
const NO_KEY =
  "is not valid YAML: a key here is not `name: value` on one line; put quotes around text " +
  "that holds a colon and a space";
const NOT_VALID =
  "is not valid YAML here; put quotes around text that holds special characters, such as " +
  `'\${NAME}' inside { } or [ ]`;
const SYNTAX_MESSAGES: ReadonlyMap<ErrorCode, string> = new Map([
  ["BAD_INDENT", "is not valid YAML: wrong indentation, or a bracket that is not closed"],
  ["TAB_AS_INDENT", "is not valid YAML: indent with spaces, not with tabs"],
  ["MISSING_CHAR", "is not valid YAML: a quote, bracket, comma or colon is missing"],
  [
    "BAD_DQ_ESCAPE",
    'is not valid YAML: unknown escape in "…"; use single quotes for text with backslashes',
  ],
  ["BLOCK_AS_IMPLICIT_KEY", NO_KEY],
  ["MULTILINE_IMPLICIT_KEY", NO_KEY],
  ["MULTIPLE_DOCS", "must be the only document: remove the `---` and what follows"],
  ["TAG_RESOLVE_FAILED", NO_TAGS],
  ["BAD_DIRECTIVE", "must not use YAML directives (`%NAME`)"],
]);

function keyOf(path: Path): string {
  return path.join("\u0000");
}
