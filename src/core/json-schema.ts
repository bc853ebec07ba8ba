// JSON Schema as a value: what it says of a path, and the allowed values in words. Knows nothing of
// how a schema was made.

/** A JSON Schema, with the keywords that are read here and in documents. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly type?: string | readonly string[];
  /** The allowed values in words. */
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly propertyNames?: JsonSchema;
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
  readonly exclusiveMinimum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
}

/**
 * The node that describes a path; `data` decides between records of several kinds. Null = nothing
 * describes it.
 */
export function nodeAt(
  root: JsonSchema,
  path: readonly (string | number)[],
  data: unknown,
): JsonSchema | null {
  let node: JsonSchema | null = resolved(root, root);
  let value = data;
  for (const step of path) {
    if (node === null) return null;
    value = memberOf(value, step);
    const record: JsonSchema = recordWith(node, step) ?? node;
    // The value is a list, or may be one beside `null`.
    const items: JsonSchema | undefined =
      node.items ?? node.anyOf?.find((option) => option.items !== undefined)?.items;
    const next: JsonSchema | null | undefined =
      typeof step === "number" ? items : (record.properties?.[step] ?? valuesOf(record));
    node = next == null ? null : variantFor(resolved(root, next), memberOf(value, "kind"));
  }
  return node;
}

/** The record that a value may be, the first that has a member, if one has. */
function recordWith(node: JsonSchema, member: string | number): JsonSchema | null {
  return node.anyOf?.find(({ properties }) => properties?.[member]) ?? recordOf(node);
}

/** The record that a value is, or may be beside a word such as `off`; null = it is none. */
export function recordOf(node: JsonSchema): JsonSchema | null {
  if (node.properties !== undefined) return node;
  return node.anyOf?.find((option) => option.properties !== undefined) ?? null;
}

/** What the values of a map are; null = it is none, or takes anything. */
export function valuesOf({ additionalProperties: values }: JsonSchema): JsonSchema | null {
  return typeof values === "object" ? values : null;
}

/** The kinds of record that a value may be, told apart by `kind`; empty = it has only one. */
export function variantsOf(
  node: JsonSchema,
): readonly { readonly kind: string; readonly node: JsonSchema }[] {
  return (node.oneOf ?? []).flatMap((variant) => {
    const kind = variant.properties?.["kind"]?.const;
    return typeof kind === "string" ? [{ kind, node: variant }] : [];
  });
}

/** The allowed values, as words that follow "must be". */
export function allowedText(node: JsonSchema | null): string {
  if (node === null) return "valid";
  if (node.title !== undefined) return node.title;
  if (node.const !== undefined) return String(node.const);
  if (node.enum !== undefined) return `one of ${node.enum.join(", ")}`;
  if (node.anyOf !== undefined) return [...new Set(node.anyOf.map(allowedText))].join(", or ");
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

function resolved(root: JsonSchema, node: JsonSchema): JsonSchema {
  return node.$ref === undefined
    ? node
    : { ...root.$defs?.[node.$ref.replace(/^.*\//, "")], ...node };
}

/** The node of the record's own `kind`; if that is unknown, a node with nothing but a kind. */
function variantFor(node: JsonSchema, kind: unknown): JsonSchema {
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

function rangeText({ minimum, maximum, exclusiveMinimum }: JsonSchema): string {
  const low = minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum;
  const high = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (exclusiveMinimum !== undefined)
    return ` above ${exclusiveMinimum}${high === undefined ? "" : `, up to ${high}`}`;
  if (low !== undefined && high !== undefined) return ` from ${low} to ${high}`;
  if (low !== undefined) return `, at least ${low}`;
  return high === undefined ? "" : `, at most ${high}`;
}

function lengthText({ minLength, maxLength, pattern }: JsonSchema): string {
  if (maxLength !== undefined)
    return ` of ${minLength === undefined ? "up" : minLength} to ${maxLength} characters`;
  if (pattern !== undefined) return ` that matches ${pattern}`;
  return minLength === undefined ? "" : " that is not empty";
}
