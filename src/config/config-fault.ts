// Faults of a configuration as shown to the operator: place, setting, what is wrong and what is
// allowed. Shows keys and variable names, never values, which may be secrets.
import type { z } from "zod";
import { allowedText, type JsonSchema, nodeAt, recordOf } from "../core/json-schema.ts";

/** One fault of the configuration. */
export interface ConfigFault {
  /** The file as named by the operator, or `environment` or `command line`. */
  readonly file: string;
  /** From 1; 0 outside files. */
  readonly line: number;
  /** From 1; 0 outside files. */
  readonly column: number;
  /** For example `profiles.public.chains.ethereum.providers[0].url`; empty = the whole file. */
  readonly path: string;
  /** What is wrong and what is allowed. */
  readonly message: string;
}

/** A fault in one of the configuration tables, before its line is known. */
export interface TableFault {
  readonly path: readonly (string | number)[];
  readonly at: "key" | "value";
  readonly message: string;
}

/** Most unknown keys of one map that are reported. */
const MAX_KEYS = 1_000;

/** One line per fault: `file:line:column  path  message`. */
export function formatFaults(faults: readonly ConfigFault[]): string {
  return faults
    .map(({ file, line, column, path, message }) =>
      [line === 0 ? file : `${file}:${line}:${column}`, path, message]
        .filter((part) => part !== "")
        .join("  "),
    )
    .join("\n");
}

/** A path as text; keys that are not plain words are left out. */
export function pathText(path: readonly (string | number)[]): string {
  return path
    .map((step) =>
      typeof step === "number" ? `[${step}]` : `.${/^[\w.-]{1,64}$/.test(step) ? step : '"…"'}`,
    )
    .join("")
    .replace(/^\./, "");
}

/**
 * Turns the validator's issues into faults. `schema` describes the table, `data` is the checked
 * input.
 */
export function tableFaults(
  issues: readonly z.core.$ZodIssue[],
  schema: JsonSchema,
  data: unknown,
): readonly TableFault[] {
  return issues.flatMap((issue): readonly TableFault[] => {
    const path = issue.path.map((step) => (typeof step === "number" ? step : String(step)));
    const node = nodeAt(schema, path, data);
    const fault = (message: string, at: TableFault["at"] = "value") => [{ path, at, message }];
    const must = `must be ${allowedText(node)}`;
    switch (issue.code) {
      case "unrecognized_keys":
        return issue.keys.slice(0, MAX_KEYS).map((key) => ({
          path: [...path, key],
          at: "key",
          message: unknownKey(key, Object.keys((node && recordOf(node))?.properties ?? {})),
        }));
      case "invalid_union": {
        // The faults inside a setting that may be a record and is one: of the record that it comes
        // closest to.
        const [within] = issue.errors
          .filter((inner) =>
            inner.some(({ path, code }) => path.length > 0 || code === "unrecognized_keys"),
          )
          .sort((a, b) => unknownKeys(a) - unknownKeys(b));
        if (within === undefined)
          return fault(`${isRecordAlone(node) ? kindText(valueAt(data, path), node) : ""}${must}`);
        const inside = within.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }));
        return tableFaults(inside, schema, data);
      }
      case "invalid_key": {
        const names = nodeAt(schema, path.slice(0, -1), data)?.propertyNames;
        return fault(`must be ${allowedText(names ?? null)}`, "key");
      }
      case "invalid_type":
        return fault(`${kindText(valueAt(data, path), node)}${must}`);
      default:
        return fault(`${must}${otherUrlHint(path.at(-1), valueAt(data, path))}`);
    }
  });
}

/** Whether a setting may be several records, and nothing else. */
function isRecordAlone(node: JsonSchema | null): boolean {
  return node?.anyOf?.every(({ properties }) => properties !== undefined) === true;
}

/** How many settings a record has that are unknown in a table. */
function unknownKeys(issues: readonly z.core.$ZodIssue[]): number {
  return issues.reduce(
    (sum, issue) => sum + (issue.code === "unrecognized_keys" ? issue.keys.length : 0),
    0,
  );
}

/** A hint if the value belongs in the provider's other URL setting. */
function otherUrlHint(key: string | number | undefined, value: unknown): string {
  if (typeof value !== "string") return "";
  if (key === "url" && /^wss?:/i.test(value)) return "; a WebSocket address belongs under `ws_url`";
  return key === "ws_url" && /^https?:/i.test(value) ? "; an HTTP address belongs under `url`" : "";
}

function unknownKey(key: string, known: readonly string[]): string {
  const close = known.find((name) => isClose(key.toLowerCase().replaceAll("-", "_"), name));
  return (
    "is not a known setting; " +
    `${close === undefined ? `known here: ${known.join(", ")}` : `did you mean \`${close}\`?`}`
  );
}

/**
 * Whether two words are at most two edits apart (one for short words), or one is a prefix of the
 * other.
 */
export function isClose(a: string, b: string): boolean {
  const limit = b.length < 5 ? 1 : 2;
  if (Math.abs(a.length - b.length) > limit) return a.length >= 3 && b.startsWith(a);
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return (row[b.length] ?? 0) <= limit;
}

function kindText(value: unknown, node: JsonSchema | null): string {
  if (value === undefined) return "is missing: ";
  if (value === null) return "is empty: ";
  if (Array.isArray(value)) return "is a list: ";
  if (typeof value === "string") return "is text: ";
  if (typeof value === "boolean") return "is true or false: ";
  if (typeof value === "object") return "is a map: ";
  return node?.type === "integer" || node?.type === "number" ? "" : "is a number: ";
}

function valueAt(data: unknown, path: readonly (string | number)[]): unknown {
  let value = data;
  for (const step of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = Object.hasOwn(value, step) ? Reflect.get(value, step) : undefined;
  }
  return value;
}
