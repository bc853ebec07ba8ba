// Checks the fields of a request against the schemas of its operation and describes what each
// invalid field allows. Repeats no value, since values may be secrets.
import { z } from "zod";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { allowedText, type JsonSchema, nodeAt } from "../../core/json-schema.ts";

/** Valid fields, or their faults. */
export type Checked =
  | { readonly kind: "checked"; readonly value: unknown }
  | ApiFault<"invalid_field" | "invalid_config" | "unknown_field">;

type Path = readonly (string | number)[];

/**
 * Checks an object. Reports unknown fields before invalid values, which get the code `wrong`.
 * `advice` is added to what is said of them.
 */
export function checkFields(
  schema: z.ZodObject,
  given: object,
  wrong: "invalid_field" | "invalid_config" = "invalid_field",
): Checked {
  const result = schema.safeParse(given);
  if (result.success) return { kind: "checked", value: result.data };
  const issues = result.error.issues.slice(0, MAX_ISSUES);
  const unknown = issues.flatMap((issue) =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => pathText([...parsePath(issue.path), key]))
      : [],
  );
  const known = Object.keys(schema.shape);
  if (unknown.length > 0)
    return apiFault("unknown_field", `unknown field: ${listed(unknown)}`, {
      details: unknown.slice(0, MAX_NAMED),
      nextAction:
        known.length === 0 ? "send no field" : `remove it; the fields are: ${known.join(", ")}`,
    });
  const root = parseJsonSchema(z.toJSONSchema(schema, { io: "input" }));
  const rules = new Map(
    issues.map(({ path }) => [pathText(parsePath(path)), ruleOf(root, parsePath(path), given)]),
  );
  const names = [...rules.keys()].slice(0, MAX_NAMED);
  const advice = names.map((name) => `${name}: ${rules.get(name)}`).join("; ");
  const all = listed([...rules.keys()]);
  return wrong === "invalid_field"
    ? apiFault(wrong, `invalid value: ${all}`, { details: names, nextAction: advice })
    : apiFault(wrong, `the document is not right: ${all}`, {
        details: names,
        nextAction: `${advice}; GET /api/v1/configuration-schema shows what is allowed`,
      });
}

/**
 * The query parameters as an object, the first of each name; digits are parsed as numbers. A schema
 * leaves out unknown fields, or refuses them if it is strict.
 */
export function queryOf(url: string): object {
  const mark = url.indexOf("?");
  const query = new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1));
  const fields = new Map<string, string | number>();
  for (const [name, text] of query)
    if (!fields.has(name)) fields.set(name, /^\d{1,15}$/.test(text) ? Number(text) : text);
  return Object.fromEntries(fields);
}

const MAX_ISSUES = 200;
const MAX_NAMED = 20;
const MAX_NAME_CHARS = 64;

function listed(names: readonly string[]): string {
  return names.slice(0, MAX_NAMED).join(", ") + (names.length > MAX_NAMED ? ", …" : "");
}

/** The path of a field as text, like `chains.base.providers[0]`. */
function pathText(path: Path): string {
  return path
    .map((part, i) =>
      typeof part === "number" ? `[${part}]` : `${i === 0 ? "" : "."}${shownName(part)}`,
    )
    .join("");
}

/** A field name chosen by the caller, with control characters and possible secrets removed. */
function shownName(name: string): string {
  return /^[\w.$ -]+$/.test(name) && !/svc_[a-z]{2}_/.test(name) && name.length <= MAX_NAME_CHARS
    ? name
    : "(a name that is not shown)";
}

/** The allowed values of a field in words. */
function ruleOf(root: JsonSchema, path: Path, given: unknown): string {
  const isRequired = nodeAt(root, path.slice(0, -1), given)?.required?.includes(
    String(path.at(-1)),
  );
  return `${allowedText(nodeAt(root, path, given))}${isRequired === true ? " (required)" : ""}`;
}

/** zod also allows symbols as keys; JSON has none. */
function parsePath(path: readonly PropertyKey[]): Path {
  return path.map((part) => (typeof part === "number" ? part : String(part)));
}

/** zod makes JSON Schemas with these keywords. */
function parseJsonSchema(schema: object): JsonSchema {
  return schema as JsonSchema;
}
