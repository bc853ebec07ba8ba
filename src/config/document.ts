// Parses YAML into plain data, with the position of every key and value, and fills in `${NAME}`
// variables. Bounded in size, depth and alias expansion. Knows nothing of what settings mean, and
// never puts text of the file into a message, since values may be secrets.
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type YAMLError,
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

/** A parsed file. */
export interface ConfigDocument {
  /**
   * Maps, lists, text, numbers, booleans and null; null as a whole = the text could not be parsed.
   */
  readonly data: unknown;
  readonly problems: readonly Problem[];
  /** Position of a value, or of the nearest enclosing value if it is missing. */
  readonly valueAt: (path: Path) => Place;
  /** Position of the key that ends the path, or of the value if it has no key. */
  readonly keyAt: (path: Path) => Place;
  /** True = the value could not be read; its problem is already reported. */
  readonly isUnresolved: (path: Path) => boolean;
}

/** Environment variables by name. */
export type Variables = Readonly<Record<string, string | undefined>>;

const MAX_BYTES = 10_000_000;
const MAX_DEPTH = 32;
const MAX_ALIASED_NODES = 10_000;
const MAX_SYNTAX_PROBLEMS = 100;
const START: Place = { line: 1, column: 1 };
const REFERENCE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{/g;
const NOT_A_REFERENCE = `holds \`\${\` that does not begin a \`\${NAME}\`; write \`$\${\` for a literal one`;

/** Reads a YAML 1.2 file; never throws. */
export function readDocument(text: string | Uint8Array, variables: Variables): ConfigDocument {
  const source = decode(text);
  if (source.kind === "refused")
    return refused([{ place: START, path: [], message: source.message }]);
  const lines = new LineCounter();
  const parsed = parse(source.text, lines);
  if (parsed === null)
    return refused([
      { place: START, path: [], message: "cannot be read as YAML: it is nested too deeply" },
    ]);
  const broken = [...parsed.errors, ...parsed.warnings];
  if (broken.length > 0) return refused(syntaxProblems(broken, lines));
  const state: ReadState = {
    lines,
    variables,
    anchors: new Map(),
    keys: new Map(),
    values: new Map(),
    unresolved: new Set(),
    problems: [],
    aliased: 0,
  };
  const data = dataOf(state, parsed.contents, [], false);
  return {
    data: data ?? {},
    problems: state.problems,
    valueAt: (path) => nearest(state.values, path),
    keyAt: (path) => state.keys.get(keyOf(path)) ?? nearest(state.values, path),
    isUnresolved: (path) => state.unresolved.has(keyOf(path)),
  };
}

/** The state of reading one file; changed in place. */
interface ReadState {
  readonly lines: LineCounter;
  readonly variables: Variables;
  readonly anchors: Map<string, Node>;
  readonly keys: Map<string, Place>;
  readonly values: Map<string, Place>;
  readonly unresolved: Set<string>;
  readonly problems: Problem[];
  /** Number of nodes reached through aliases so far. */
  aliased: number;
}

function decode(
  text: string | Uint8Array,
):
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "refused"; readonly message: string } {
  const size = typeof text === "string" ? Buffer.byteLength(text) : text.length;
  if (size > MAX_BYTES) return { kind: "refused", message: `is larger than ${MAX_BYTES} bytes` };
  if (typeof text === "string") return { kind: "text", text };
  try {
    return { kind: "text", text: new TextDecoder("utf-8", { fatal: true }).decode(text) };
  } catch {
    return { kind: "refused", message: "is not UTF-8 text" };
  }
}

function parse(text: string, lines: LineCounter): Document | null {
  try {
    return parseDocument(text, {
      version: "1.2",
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: false,
    });
  } catch {
    return null; // Only the parser's own recursion can fail.
  }
}

function refused(problems: readonly Problem[]): ConfigDocument {
  return {
    data: null,
    problems,
    valueAt: () => START,
    keyAt: () => START,
    isUnresolved: () => false,
  };
}

function syntaxProblems(errors: readonly YAMLError[], lines: LineCounter): readonly Problem[] {
  const byLine = new Map<number, Problem>();
  for (const error of errors) {
    const place = placeAt(lines, error.pos[0]);
    if (!byLine.has(place.line))
      byLine.set(place.line, { place, path: [], message: syntaxMessage(error.code) });
    if (byLine.size >= MAX_SYNTAX_PROBLEMS) break;
  }
  return [...byLine.values()];
}

function syntaxMessage(code: YAMLError["code"]): string {
  switch (code) {
    case "BAD_INDENT":
      return "is not valid YAML: wrong indentation, or a bracket that is not closed";
    case "TAB_AS_INDENT":
      return "is not valid YAML: indent with spaces, not with tabs";
    case "MISSING_CHAR":
      return "is not valid YAML: a quote, bracket, comma or colon is missing";
    case "BAD_DQ_ESCAPE":
      return 'is not valid YAML: unknown escape in "…"; use single quotes for text with backslashes';
    case "BLOCK_AS_IMPLICIT_KEY":
    case "MULTILINE_IMPLICIT_KEY":
      return (
        "is not valid YAML: a key here is not `name: value` on one line; put quotes around text " +
        "that holds a colon and a space"
      );
    case "MULTIPLE_DOCS":
      return "must be the only document: remove the `---` and what follows";
    case "TAG_RESOLVE_FAILED":
      return "must not use YAML tags (`!name`)";
    case "BAD_DIRECTIVE":
      return "must not use YAML directives (`%NAME`)";
    default:
      return (
        "is not valid YAML here; put quotes around text that holds special characters, such as " +
        `'\${NAME}' inside { } or [ ]`
      );
  }
}

function dataOf(state: ReadState, node: unknown, path: Path, aliased: boolean): unknown {
  if (aliased && ++state.aliased > MAX_ALIASED_NODES) {
    if (state.aliased === MAX_ALIASED_NODES + 1)
      report(state, path, `expands YAML aliases to more than ${MAX_ALIASED_NODES} values`);
    state.unresolved.add(keyOf(path));
    return null;
  }
  if (!aliased) markPlace(state, node, path);
  if (path.length > MAX_DEPTH) {
    report(state, path, `is nested more than ${MAX_DEPTH} levels deep`);
    state.unresolved.add(keyOf(path));
    return null;
  }
  if (isAlias(node)) return aliasOf(state, node.source, path);
  const data = contentOf(state, node, path, aliased);
  if ((isMap(node) || isSeq(node) || isScalar(node)) && node.anchor !== undefined)
    state.anchors.set(node.anchor, node);
  return data;
}

function aliasOf(state: ReadState, name: string, path: Path): unknown {
  const target = state.anchors.get(name);
  if (target !== undefined) return dataOf(state, target, path, true);
  report(state, path, "is a YAML alias of something that is not defined above it");
  state.unresolved.add(keyOf(path));
  return null;
}

function contentOf(state: ReadState, node: unknown, path: Path, aliased: boolean): unknown {
  if (isMap(node)) return mapOf(state, node.items, path, aliased);
  if (isSeq(node))
    return node.items.map((item, index) => dataOf(state, item, [...path, index], aliased));
  if (!isScalar(node)) return null;
  const { value } = node;
  if (typeof value === "string") return filledIn(state, value, path);
  if (value === null || typeof value === "number" || typeof value === "boolean") return value;
  report(state, path, "must not use YAML tags (`!name`)");
  state.unresolved.add(keyOf(path));
  return null;
}

function mapOf(
  state: ReadState,
  items: readonly Pair[],
  path: Path,
  aliased: boolean,
): Readonly<Record<string, unknown>> {
  const entries = new Map<string, unknown>();
  for (const pair of items) {
    const place = startOf(state, pair.key) ?? nearest(state.values, path);
    const name = isScalar(pair.key) ? String(pair.key.value) : "";
    const at = [...path, name];
    const first = state.keys.get(keyOf(at));
    if (name === "" || name === "__proto__")
      state.problems.push({
        place,
        path,
        message: "holds a key that is empty, not text, or not allowed",
      });
    else if (entries.has(name))
      state.problems.push({
        place,
        path: at,
        message: `is given twice; first at line ${first?.line ?? 0}`,
      });
    else {
      if (!aliased) state.keys.set(keyOf(at), place);
      if (!aliased) state.values.set(keyOf(at), place);
      entries.set(name, dataOf(state, pair.value, at, aliased));
    }
  }
  return Object.fromEntries(entries);
}

function filledIn(state: ReadState, text: string, path: Path): string {
  return text.replace(REFERENCE, (match, name: string | undefined) => {
    if (match === "$${") return "${";
    const value =
      name !== undefined && Object.hasOwn(state.variables, name)
        ? state.variables[name]
        : undefined;
    if (value !== undefined) return value;
    state.unresolved.add(keyOf(path));
    report(
      state,
      path,
      name === undefined
        ? NOT_A_REFERENCE
        : `needs the environment variable ${name}, which is not set`,
    );
    return "";
  });
}

function report(state: ReadState, path: Path, message: string): void {
  state.problems.push({ place: nearest(state.values, path), path, message });
}

function markPlace(state: ReadState, node: unknown, path: Path): void {
  const place = startOf(state, node);
  if (place !== null) state.values.set(keyOf(path), place);
}

function startOf(state: ReadState, node: unknown): Place | null {
  const range = isAlias(node) || isMap(node) || isSeq(node) || isScalar(node) ? node.range : null;
  return range ? placeAt(state.lines, range[0]) : null;
}

function placeAt(lines: LineCounter, offset: number): Place {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

function nearest(places: ReadonlyMap<string, Place>, path: Path): Place {
  for (let length = path.length; length >= 0; length--) {
    const place = places.get(keyOf(path.slice(0, length)));
    if (place !== undefined) return place;
  }
  return START;
}

function keyOf(path: Path): string {
  return path.join("\u0000");
}
