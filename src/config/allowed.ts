// What a setting may be, in words and as JSON Schema. Rendered from the configuration table, for messages and for the reference. Knows no values.
import { z } from "zod";
import { configFile } from "./schema.ts";

/** One node of a JSON Schema. */
export type SchemaNode = z.core.JSONSchema.BaseSchema;

/** JSON Schema (draft 2020-12) of the configuration file. */
export function configJsonSchema(): SchemaNode {
  return schemaOf(configFile);
}

/** JSON Schema of what a table accepts as input. */
export function schemaOf(table: z.ZodType): SchemaNode {
  return z.toJSONSchema(table, { io: "input" });
}

/** The node that describes a path; null where nothing does. */
export function nodeAt(root: SchemaNode, path: readonly (string | number)[]): SchemaNode | null {
  let node: SchemaNode | null = root;
  for (const step of path) {
    if (node === null) return null;
    node = asNode(typeof step === "number" ? itemOf(node) : (node.properties?.[step] ?? node.additionalProperties));
  }
  return node;
}

/** The node of a list's items. */
export function itemOf(node: SchemaNode): SchemaNode | null {
  return Array.isArray(node.items) ? null : asNode(node.items);
}

/** A JSON Schema node, where there is one rather than a plain yes or no. */
export function asNode(value: SchemaNode | boolean | null | undefined): SchemaNode | null {
  return typeof value === "object" ? value : null;
}

/** What is allowed, to follow "must be". */
export function allowedText(node: SchemaNode | null): string {
  if (node === null) return "valid";
  if (node.title !== undefined) return node.title;
  if (node.enum !== undefined) return `one of ${node.enum.join(", ")}`;
  if (node.anyOf !== undefined) return node.anyOf.map((option) => allowedText(asNode(option))).join(", or ");
  switch (node.type) {
    case "integer":
      return `a whole number${rangeText(node)}`;
    case "number":
      return `a number${rangeText(node)}`;
    case "boolean":
      return "true or false";
    case "string":
      return `text${lengthText(node)}`;
    case "array":
      return `a list${node.maxItems === undefined ? "" : ` of up to ${node.maxItems} items`}`;
    case "object":
      return "a map";
    case "null":
      return "null";
    default:
      return "valid";
  }
}

function rangeText({ minimum, maximum, exclusiveMinimum }: SchemaNode): string {
  const low = minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum;
  const high = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (exclusiveMinimum !== undefined) return ` above ${exclusiveMinimum}${high === undefined ? "" : `, up to ${high}`}`;
  if (low !== undefined && high !== undefined) return ` from ${low} to ${high}`;
  if (low !== undefined) return `, at least ${low}`;
  return high === undefined ? "" : `, at most ${high}`;
}

function lengthText({ minLength, maxLength }: SchemaNode): string {
  if (maxLength === undefined) return minLength === undefined ? "" : " that is not empty";
  return ` of ${minLength === undefined ? "up" : minLength} to ${maxLength} characters`;
}
