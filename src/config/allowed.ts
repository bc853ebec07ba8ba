// The configuration table as JSON Schema.
import { z } from "zod";
import type { JsonSchema } from "../core/json-schema.ts";

/** JSON Schema (draft 2020-12) of the input that a table accepts. */
export function schemaOf(table: z.ZodType): JsonSchema {
  return parseSchema(z.toJSONSchema(table, { io: "input" }));
}

/** zod makes JSON Schemas with the keywords that are read here. */
function parseSchema(schema: object): JsonSchema {
  return schema as JsonSchema;
}
