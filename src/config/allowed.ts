// The allowed values of a setting, in words and as JSON Schema, for messages and the reference.
// Rendered from the configuration table.
import { z } from "zod";
import { configFile } from "./schema.ts";

/** One node of a JSON Schema. */
export type SchemaNode = z.core.JSONSchema.BaseSchema;

/** JSON Schema (draft 2020-12) of the configuration file. */
export function configJsonSchema(): SchemaNode {
  return schemaOf(configFile);
}

/** JSON Schema of the input that a table accepts. */
export function schemaOf(table: z.ZodType): SchemaNode {
  return z.toJSONSchema(table, { io: "input" });
}

/**
 * The node that describes a path; `data` decides between records of several kinds. Null = nothing
 * describes it.
 */
export function nodeAt(
  root: SchemaNode,
  path: readonly (string | number)[],
  data: unknown,
): SchemaNode | null {
  let node: SchemaNode | null = root;
  let value = data;
  for (const step of path) {
    if (node === null) return null;
    value = memberOf(value, step);
    const record: SchemaNode = recordOf(node) ?? node;
    node = asNode(
      typeof step === "number"
        ? itemOf(node)
        : (record.properties?.[step] ?? record.additionalProperties),
    );
    node = node === null ? null : variantFor(node, memberOf(value, "kind"));
  }
  return node;
}

/** The record that a setting is, or may be beside a word such as `off`; null = it is none. */
export function recordOf(node: SchemaNode): SchemaNode | null {
  if (node.properties !== undefined) return node;
  const options = (node.anyOf ?? []).map(asNode);
  return options.find((option) => option?.properties !== undefined) ?? null;
}

/** The kinds of record that a setting may be, told apart by `kind`; empty = it has only one. */
export function variantsOf(
  node: SchemaNode,
): readonly { readonly kind: string; readonly node: SchemaNode }[] {
  return (node.oneOf ?? []).flatMap((option) => {
    const variant = asNode(option);
    const kind = asNode(variant?.properties?.["kind"])?.const;
    return variant === null || typeof kind !== "string" ? [] : [{ kind, node: variant }];
  });
}

/** The node of the record's own `kind`; if that is unknown, a node with nothing but a kind. */
function variantFor(node: SchemaNode, kind: unknown): SchemaNode {
  const variants = variantsOf(node);
  if (variants.length === 0) return node;
  const choice = {
    type: "object",
    properties: { kind: { enum: variants.map((variant) => variant.kind) } },
  } as const;
  return variants.find((variant) => variant.kind === kind)?.node ?? choice;
}

function memberOf(value: unknown, step: string | number): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, step) : undefined;
}

/** The node of a list's items. */
export function itemOf(node: SchemaNode): SchemaNode | null {
  return Array.isArray(node.items) ? null : asNode(node.items);
}

/** A JSON Schema node; null = it is only true or false. */
export function asNode(value: SchemaNode | boolean | null | undefined): SchemaNode | null {
  return typeof value === "object" ? value : null;
}

/** The allowed values, as words that follow "must be". */
export function allowedText(node: SchemaNode | null): string {
  if (node === null) return "valid";
  if (node.title !== undefined) return node.title;
  if (node.const !== undefined) return String(node.const);
  if (node.enum !== undefined) return `one of ${node.enum.join(", ")}`;
  if (node.anyOf !== undefined)
    return node.anyOf.map((option) => allowedText(asNode(option))).join(", or ");
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
  if (exclusiveMinimum !== undefined)
    return ` above ${exclusiveMinimum}${high === undefined ? "" : `, up to ${high}`}`;
  if (low !== undefined && high !== undefined) return ` from ${low} to ${high}`;
  if (low !== undefined) return `, at least ${low}`;
  return high === undefined ? "" : `, at most ${high}`;
}

function lengthText({ minLength, maxLength }: SchemaNode): string {
  if (maxLength === undefined) return minLength === undefined ? "" : " that is not empty";
  return ` of ${minLength === undefined ? "up" : minLength} to ${maxLength} characters`;
}
