// Turns the shapes of the contract into JSON Schema, and collects those that have a name as
// components. Knows no operation.
import { z } from "zod";

/** A piece of JSON Schema, as far as documents look into it. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly additionalProperties?: boolean;
}

/** Renders shapes and remembers the named ones. */
export interface Schemas {
  of(shape: z.ZodType): JsonSchema;
  /** Named shapes that were rendered so far. */
  readonly components: Readonly<Record<string, JsonSchema>>;
}

/** Where references to named shapes point. */
export const COMPONENTS = "#/components/schemas/";

/** Starts without named shapes. */
export function createSchemas(): Schemas {
  const components: Record<string, JsonSchema> = {};
  return {
    components,
    of(shape) {
      const { $defs = {}, ...root } = parseNode(
        z.toJSONSchema(shape, { target: "draft-2020-12", io: "input", override: plain }),
      );
      Object.assign(components, $defs);
      return root;
    },
  };
}

/**
 * Leaves out what only repeats the type: bounds of safe integers, and patterns of known formats.
 */
function plain({ jsonSchema: node }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
  if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum;
  if (node.format !== undefined) delete node.pattern;
}

type Root = JsonSchema & { readonly $defs?: Readonly<Record<string, JsonSchema>> };

/** A copy in terms of the type above, with references that point at components. */
function parseNode(schema: object): Root {
  const { $schema: _, ...node } = JSON.parse(
    JSON.stringify(schema).replaceAll('"$ref":"#/$defs/', `"$ref":"${COMPONENTS}`),
  ) as Root & { $schema?: string };
  return node;
}

/** The record's own fields of an object shape, each with whether it has to be there. */
export function fieldsOf(
  node: JsonSchema,
): readonly { readonly name: string; readonly schema: JsonSchema; readonly required: boolean }[] {
  return Object.entries(node.properties ?? {}).map(([name, schema]) => ({
    name,
    schema,
    required: node.required?.includes(name) ?? false,
  }));
}
