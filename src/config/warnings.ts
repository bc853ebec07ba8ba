// Warnings about settings that are valid but probably mistakes. Names settings and never shows
// values, which may be secrets.
import type { TableFault } from "./config-fault.ts";

/** Text that stands for a key in documentation, such as `YOUR_API_KEY` or `<api-key>`. */
const PLACEHOLDER =
  /your[-_ ]?(?:own[-_ ]?)?(?:api|project|access|app|infura|alchemy)?[-_ ]?(?:key|id|token|secret)\b|[<{]\s*(?:[a-z]+[-_ ])*(?:key|token|secret|id)\s*[>}]|(?:api|access)[-_]?key[-_]?here|\b(?:changeme|change-me|replace[-_]me)\b/i;
const MAX_WARNINGS = 100;
const MAX_DEPTH = 32;

/** Settings that the operator should check. */
export function warningsOf(data: unknown): readonly TableFault[] {
  const found: TableFault[] = [];
  collectWarnings(data, [], found);
  return found;
}

function collectWarnings(value: unknown, path: TableFault["path"], found: TableFault[]): void {
  if (found.length >= MAX_WARNINGS || path.length > MAX_DEPTH) return;
  if (typeof value === "string") {
    const message =
      "holds a placeholder where a key belongs: put yours there, best by the name of an " +
      "environment variable";
    if (PLACEHOLDER.test(value)) found.push({ path, at: "value", message });
  } else if (Array.isArray(value))
    for (const [index, item] of value.entries()) collectWarnings(item, [...path, index], found);
  else if (typeof value === "object" && value !== null)
    for (const [key, item] of Object.entries(value)) collectWarnings(item, [...path, key], found);
}
