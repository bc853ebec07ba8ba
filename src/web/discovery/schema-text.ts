// Describes JSON Schema in words: the type of a value, and the fields of an object as table rows.

import { z } from "zod";
import type { JsonSchema } from "../../core/json-schema.ts";
import { cell } from "./sections.ts";

/** The type of a value in words. */
export function typeText(node: JsonSchema): string {
  if (node.$ref !== undefined) {
    const name = node.$ref.slice(COMPONENTS.length);
    return `[${name}](#${name.toLowerCase()})`;
  }
  if (node.const !== undefined) return `\`${JSON.stringify(node.const)}\``;
  if (node.enum !== undefined)
    return `one of ${node.enum.map((value) => `\`${String(value)}\``).join(", ")}`;
  const choices = node.anyOf ?? node.oneOf;
  if (choices !== undefined) return choices.map(typeText).join(" or ");
  if (node.items !== undefined) return `list of ${typeText(node.items)}`;
  if (node.type === undefined) return "anything";
  return [
    [node.type].flat().join(" or "),
    node.format === undefined ? "" : `(${node.format})`,
    boundsText(node),
  ]
    .filter((part) => part !== "")
    .join(" ");
}

function boundsText({ minimum, maximum, minLength, maxLength, pattern }: JsonSchema): string {
  const low = minimum ?? minLength;
  const high = maximum ?? maxLength;
  const unit = minLength !== undefined || maxLength !== undefined ? " characters" : "";
  return [rangeText(low, high, unit), pattern === undefined ? "" : `like \`${pattern}\``]
    .filter((part) => part !== "")
    .join(", ");
}

function rangeText(low: number | undefined, high: number | undefined, unit: string): string {
  if (low === undefined) return high === undefined ? "" : `at most ${high}${unit}`;
  return high === undefined ? `at least ${low}${unit}` : `${low} to ${high}${unit}`;
}

/**
 * Name, type, required or optional, and meaning of every field, including those of nested objects.
 */
export function fieldRows(node: JsonSchema, prefix = ""): readonly (readonly string[])[] {
  return fieldsOf(node).flatMap(({ name, schema, required }) => {
    const inner = innerOf(schema);
    const fallback =
      schema.default === undefined ? "optional" : `default \`${JSON.stringify(schema.default)}\``;
    const necessity = required ? "always" : fallback;
    const row = [
      `\`${prefix}${name}\``,
      cell(inner === null ? typeText(schema) : inner.kind),
      necessity,
      cell(schema.description ?? ""),
    ];
    return [
      row,
      ...(inner === null ? [] : fieldRows(inner.node, `${prefix}${name}${inner.suffix}`)),
    ];
  });
}

interface Inner {
  readonly node: JsonSchema;
  readonly kind: string;
  readonly suffix: string;
}

/**
 * The object schema within a field: the field itself, the items of its list, or its non-null
 * alternative. Null = none.
 */
function innerOf(schema: JsonSchema): Inner | null {
  if (schema.properties !== undefined) return { node: schema, kind: "object", suffix: "." };
  if (schema.items?.properties !== undefined)
    return { node: schema.items, kind: "list of objects", suffix: "[]." };
  const [object, ...others] = schema.anyOf ?? [];
  const nullable = others.length === 1 && others[0]?.type === "null";
  return nullable && object?.properties !== undefined
    ? { node: object, kind: "object or null", suffix: "." }
    : null;
}

/** Prefix of references to named schemas. */
export const COMPONENTS = "#/components/schemas/";

/** Converts schemas, and remembers the named ones. */
export class Schemas {
  /** Named schemas converted so far. */
  readonly components: Record<string, JsonSchema> = {};

  of(shape: z.ZodType): JsonSchema {
    const { $defs = {}, ...root } = parseNode(
      z.toJSONSchema(shape, { target: "draft-2020-12", io: "input", override: plain }),
    );
    Object.assign(this.components, $defs);
    return root;
  }
}

/**
 * Removes keywords that only repeat the type: bounds of safe integers, and patterns of known
 * formats.
 */
function plain({ jsonSchema: node }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
  if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum;
  if (node.format !== undefined || node.$ref !== undefined) delete node.pattern;
}

/** A copy as the type above, with references that point to components. */
function parseNode(schema: object): JsonSchema {
  const { $schema: _, ...node } = JSON.parse(
    JSON.stringify(schema).replaceAll('"$ref":"#/$defs/', `"$ref":"${COMPONENTS}`),
  ) as JsonSchema & { $schema?: string };
  return node;
}

/** The fields of an object schema, each with whether it is required. */
export function fieldsOf(
  node: JsonSchema,
): readonly { readonly name: string; readonly schema: JsonSchema; readonly required: boolean }[] {
  return Object.entries(node.properties ?? {}).map(([name, schema]) => ({
    name,
    schema,
    required: node.required?.includes(name) ?? false,
  }));
}
