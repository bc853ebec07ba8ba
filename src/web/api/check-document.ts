// Checks a nested document against a schema and names the path of every invalid field. Repeats no
// value, since values may be secrets.
import type { z } from "zod";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { pathText, shownName } from "./check-fields.ts";

/** A valid document, or its faults. */
export type CheckedDocument =
  | { readonly kind: "checked"; readonly value: unknown }
  | ApiFault<"invalid_config" | "unknown_field">;

const MAX_NAMED = 20;

/** Checks a document. Reports unknown fields before invalid values. */
export function checkDocument(schema: z.ZodObject, given: object): CheckedDocument {
  const result = schema.safeParse(given);
  if (result.success) return { kind: "checked", value: result.data };
  const unknown = new Set<string>();
  const wrong = new Map<string, string>();
  for (const issue of result.error.issues) {
    const path = issue.path.map((part) => (typeof part === "string" ? shownName(part) : part));
    if (issue.code === "unrecognized_keys")
      for (const key of issue.keys) unknown.add(pathText([...path, shownName(key)]));
    else wrong.set(pathText(path), ruleOf(issue));
    if (unknown.size + wrong.size >= MAX_ISSUES) break;
  }
  if (unknown.size > 0)
    return apiFault("unknown_field", `unknown field: ${listed([...unknown])}`, {
      details: [...unknown].slice(0, MAX_NAMED),
    });
  const rules = [...wrong].slice(0, MAX_NAMED).map(([path, rule]) => `${path} ${rule}`);
  const nextAction = `${rules.join("; ")}; GET /api/v1/configuration-schema shows what is allowed`;
  return apiFault("invalid_config", `the document is not right: ${listed([...wrong.keys()])}`, {
    details: [...wrong.keys()].slice(0, MAX_NAMED),
    nextAction,
  });
}

const MAX_ISSUES = 200;

/** The rule that was broken, without the value. */
function ruleOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be of type ${issue.expected}`;
    case "too_big":
      return `must not be above ${issue.maximum}`;
    case "too_small":
      return `must not be below ${issue.minimum}`;
    default:
      return "has a value that is not allowed";
  }
}

function listed(names: readonly string[]): string {
  return names.slice(0, MAX_NAMED).join(", ") + (names.length > MAX_NAMED ? ", …" : "");
}
