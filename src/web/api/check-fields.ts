// Checks the fields of a request against the schemas of its operation and describes what each
// invalid field allows. Repeats no value, since values may be secrets.
import { z } from "zod";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";

/** Valid fields, or their faults. */
export type Checked =
  | { readonly kind: "checked"; readonly value: unknown }
  | ApiFault<"invalid_field" | "unknown_field">;

/** Checks an object. Reports unknown fields before invalid values. */
export function checkFields(schema: z.ZodObject, given: object): Checked {
  const result = schema.safeParse(given);
  if (result.success) return { kind: "checked", value: result.data };
  const { issues } = result.error;
  const unknown = issues
    .flatMap((issue) => (issue.code === "unrecognized_keys" ? issue.keys : []))
    .map(shownName);
  const known = Object.keys(schema.shape);
  if (unknown.length > 0) {
    const nextAction =
      known.length === 0 ? "send no field" : `remove it; the fields are: ${known.join(", ")}`;
    return apiFault("unknown_field", `unknown field: ${listed(unknown)}`, {
      details: unknown.slice(0, MAX_NAMED),
      nextAction,
    });
  }
  const wrong = [...new Set(issues.map((issue) => pathText(issue.path)))].slice(0, MAX_NAMED);
  const rules = [...new Set(issues.map((issue) => String(issue.path[0])))].map(
    (name) => `${name}: ${allowedIn(schema, name)}`,
  );
  return apiFault("invalid_field", `invalid value: ${listed(wrong)}`, {
    details: wrong,
    nextAction: rules.join("; "),
  });
}

/**
 * The query parameters as an object, the first of each name; digits are parsed as numbers. A schema
 * leaves out those that it does not know, or refuses them if it is strict.
 */
export function queryOf(url: string): object {
  const mark = url.indexOf("?");
  const query = new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1));
  const fields = new Map<string, string | number>();
  for (const [name, text] of query)
    if (!fields.has(name)) fields.set(name, /^\d{1,15}$/.test(text) ? Number(text) : text);
  return Object.fromEntries(fields);
}

const MAX_NAMED = 20;
const MAX_NAME_CHARS = 64;

function listed(names: readonly string[]): string {
  return names.slice(0, MAX_NAMED).join(", ") + (names.length > MAX_NAMED ? ", …" : "");
}

/** A field name chosen by the caller, with control characters and possible secrets removed. */
export function shownName(name: string): string {
  return /^[\w.$ -]+$/.test(name) && !/svc_[a-z]{2}_/.test(name) && name.length <= MAX_NAME_CHARS
    ? name
    : "(a name that is not shown)";
}

/** The path of a field as text, like `chains.base.providers[0]`. */
export function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((part, i) =>
      typeof part === "number" ? `[${part}]` : `${i === 0 ? "" : "."}${String(part)}`,
    )
    .join("");
}

interface Allowed {
  readonly type?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  /** The allowed values in words. */
  readonly title?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: Allowed;
  readonly anyOf?: readonly Allowed[];
}

function allowedIn(schema: z.ZodObject, name: string): string {
  const { properties = {}, required = [] } = parseJsonSchema(
    z.toJSONSchema(schema, { io: "input" }),
  );
  const rule = Object.hasOwn(properties, name) ? properties[name] : undefined;
  return `${allowedText(rule ?? {})}${required.includes(name) ? " (required)" : ""}`;
}

function allowedText(rule: Allowed): string {
  if (rule.title !== undefined) return rule.title;
  if (rule.anyOf !== undefined) return rule.anyOf.map(allowedText).join(", or ");
  switch (rule.type) {
    case "string":
      return rule.maxLength === undefined
        ? `text that matches ${rule.pattern ?? ".*"}`
        : `text of ${rule.minLength ?? 0} to ${rule.maxLength} characters`;
    case "integer":
      return `a whole number from ${rule.minimum} to ${rule.maximum}`;
    case "array":
      return (
        `a list of ${rule.minItems ?? 0} to ${rule.maxItems ?? "any number of"}, each ` +
        `${allowedText(rule.items ?? {})}`
      );
    default:
      return rule.type ?? "any value";
  }
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, Allowed>>;
  readonly required?: readonly string[];
}

/** The schema of an object, inline or behind a reference to a component. */
function parseJsonSchema(schema: object): ObjectSchema {
  const { $ref, $defs } = schema as {
    readonly $ref?: string;
    readonly $defs?: Readonly<Record<string, ObjectSchema>>;
  };
  return $ref === undefined ? schema : ($defs?.[$ref.replace(/^.*\//, "")] ?? {});
}
