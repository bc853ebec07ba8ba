// Converts schemas of the contract to JSON Schema and collects the named ones as components. Knows
// no operation.
import { z } from "zod";
import type { JsonSchema } from "../../core/json-schema.ts";

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
