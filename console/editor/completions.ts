// What fits at a place of a document, by its JSON Schema: keys that are missing, words and empty
// values. Pure and bounded.
import type { JsonPlace } from "./json-place.ts";
import { isObject, resolved, type Schema } from "./schema-check.ts";

/** Something that can be put in. */
export interface Completion {
  readonly label: string;
  /** What it is for; "" = the schema does not say. */
  readonly note: string;
  readonly text: string;
  /** Where the cursor stands in `text` afterwards. */
  readonly cursor: number;
}

/** Keys that a schema leaves open, by the path of their object: as names of chains. */
export type KnownKeys = Readonly<Record<string, readonly string[]>>;

const MAX_SHOWN = 12;

/** The completions at a place, the best first. */
export function completionsAt(
  root: unknown,
  place: JsonPlace,
  known: KnownKeys,
): readonly Completion[] {
  if (!isObject(root)) return [];
  const schema = schemaAt(root, place.path);
  const all = place.kind === "key" ? keysOf(root, schema, place, known) : valuesOf(root, schema);
  const typed = place.typed.toLowerCase();
  const found = all.filter(({ label }) => label.toLowerCase().includes(typed));
  const isFirst = (each: Completion): boolean => each.label.toLowerCase().startsWith(typed);
  return [...found.filter(isFirst), ...found.filter((each) => !isFirst(each))].slice(0, MAX_SHOWN);
}

function keysOf(
  root: Schema,
  schema: Schema,
  { path, siblings, hasColon }: JsonPlace,
  known: KnownKeys,
): readonly Completion[] {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const place = path.join(".");
  const names = Object.hasOwn(known, place) ? (known[place] ?? []) : [];
  const open = names.map((name) => [name, schema["additionalProperties"]] as const);
  return [...Object.entries(properties), ...open]
    .filter(([name]) => !siblings.includes(name))
    .map(([name, inner]) => {
      const { text, cursor } = emptyValue(root, valueSchema(root, inner));
      const key = JSON.stringify(name);
      const note = noteOf(root, inner);
      if (hasColon) return { label: name, note, text: key, cursor: key.length };
      return { label: name, note, text: `${key}: ${text}`, cursor: key.length + 2 + cursor };
    });
}

function valuesOf(root: Schema, schema: Schema): readonly Completion[] {
  const { enum: words, type } = schema;
  if (Array.isArray(words)) return words.map(literal);
  if (type === "boolean") return [true, false].map(literal);
  if (type !== "object") return [];
  const { text, cursor } = emptyValue(root, schema);
  return [{ label: text, note: noteOf(root, schema), text, cursor }];
}

function literal(value: unknown): Completion {
  const text = JSON.stringify(value);
  return { label: String(value), note: "", text, cursor: text.length };
}

/** What values begin with, and where the cursor stands in it. */
const EMPTY: Readonly<Record<string, { readonly text: string; readonly cursor: number }>> = {
  string: { text: '""', cursor: 1 },
  array: { text: "[]", cursor: 1 },
  boolean: { text: "true", cursor: 4 },
};

/** A value to begin with: an object with the fields that it must have. */
function emptyValue(root: Schema, schema: Schema) {
  const type = String(schema["type"]);
  return type === "object" ? emptyObject(root, schema) : (EMPTY[type] ?? { text: "", cursor: 0 });
}

function emptyObject(root: Schema, schema: Schema): (typeof EMPTY)[string] {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
  const [first] = required;
  if (first === undefined) return { text: "{}", cursor: 1 };
  const fields = required.map((name) => {
    const inner = valueSchema(root, properties[name]);
    const value = inner["type"] === "object" ? "{}" : emptyValue(root, inner).text;
    return `${JSON.stringify(name)}: ${value}`;
  });
  return { text: `{ ${fields.join(", ")} }`, cursor: JSON.stringify(first).length + 5 };
}

function schemaAt(root: Schema, path: JsonPlace["path"]): Schema {
  return path.reduce<Schema>(
    (schema, part) => {
      if (typeof part === "number") return valueSchema(root, schema["items"]);
      const { properties, additionalProperties } = schema;
      const own = isObject(properties) && Object.hasOwn(properties, part);
      return valueSchema(root, own ? properties[part] : additionalProperties);
    },
    valueSchema(root, root),
  );
}

/** The schema behind references; of several, the first that is no null. */
function valueSchema(root: Schema, given: unknown): Schema {
  const schema = resolved(root, given);
  const options = schema["anyOf"];
  if (!Array.isArray(options)) return schema;
  return options.map((option) => resolved(root, option)).find(({ type }) => type !== "null") ?? {};
}

function noteOf(root: Schema, given: unknown): string {
  const own = isObject(given) ? given["description"] : undefined;
  const note = own ?? resolved(root, given)["description"];
  return typeof note === "string" ? note : "";
}
