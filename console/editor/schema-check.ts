// Checks a document against a JSON Schema while it is typed: types, required and unknown fields,
// patterns, lengths and ranges. What it does not know it passes: the service checks everything
// again. Pure and bounded.

/** What is wrong at a place of the document. */
export interface SchemaProblem {
  /** As `chains.ethereum.providers[0].name`; "" = the document itself. */
  readonly path: string;
  readonly message: string;
}

/** A JSON Schema, or a part of one. */
export type Schema = Readonly<Record<string, unknown>>;

interface Check {
  readonly root: Schema;
  readonly problems: SchemaProblem[];
}

const MAX_PROBLEMS = 20;
const MAX_DEPTH = 32;

/** The problems of a document, the first ones. */
export function checkDocument(schema: unknown, document: unknown): readonly SchemaProblem[] {
  if (!isObject(schema)) return [];
  const check: Check = { root: schema, problems: [] };
  checkValue(check, schema, { path: "", value: document, depth: 0 });
  return check.problems.slice(0, MAX_PROBLEMS);
}

interface Place {
  readonly path: string;
  readonly value: unknown;
  readonly depth: number;
}

function checkValue(check: Check, given: unknown, place: Place): void {
  if (place.depth > MAX_DEPTH || check.problems.length >= MAX_PROBLEMS) return;
  const schema = resolved(check.root, given);
  const options = schema["anyOf"];
  if (Array.isArray(options)) return checkOptions(check, options, place);
  const expected = schema["type"];
  if (typeof expected === "string" && !hasType(place.value, expected))
    return void check.problems.push({ path: place.path, message: `must be ${article(expected)}` });
  checkScalar(check, schema, place);
  if (Array.isArray(place.value)) checkItems(check, schema, place, place.value);
  else if (isObject(place.value)) checkFields(check, schema, place, place.value);
}

/** One of several schemas holds; where none does, the problems of the last that is no null. */
function checkOptions(check: Check, options: readonly unknown[], place: Place): void {
  const tried = options.map((option) => {
    const trial: Check = { root: check.root, problems: [] };
    checkValue(trial, option, { ...place, depth: place.depth + 1 });
    return { problems: trial.problems, isNull: isObject(option) && option["type"] === "null" };
  });
  if (tried.some(({ problems }) => problems.length === 0)) return;
  check.problems.push(...(tried.findLast(({ isNull }) => !isNull)?.problems ?? []));
}

function checkScalar({ problems }: Check, schema: Schema, { path, value }: Place): void {
  const say = (message: string): void => void problems.push({ path, message });
  const limit = (name: string, otherwise: number): number =>
    typeof schema[name] === "number" ? schema[name] : otherwise;
  const { enum: allowed, pattern } = schema;
  if (Array.isArray(allowed) && !allowed.includes(value))
    say(`must be one of ${allowed.join(", ")}`);
  if (typeof value === "string") {
    const [least, most] = [limit("minLength", 0), limit("maxLength", Number.POSITIVE_INFINITY)];
    if (typeof pattern === "string" && !new RegExp(pattern, "u").test(value))
      say("has characters that are not allowed");
    if (value.length < least) say(`must have ${least} characters or more`);
    if (value.length > most) say(`must have ${most} characters or fewer`);
  }
  if (typeof value === "number") {
    const least = limit("minimum", Number.NEGATIVE_INFINITY);
    const most = limit("maximum", Number.POSITIVE_INFINITY);
    if (value < least || value > most) say(`must be from ${least} to ${most}`);
  }
}

function checkItems(
  check: Check,
  schema: Schema,
  { path, depth }: Place,
  items: readonly unknown[],
): void {
  const { minItems, maxItems } = schema;
  if (typeof minItems === "number" && items.length < minItems)
    check.problems.push({ path, message: `must have ${minItems} or more` });
  if (typeof maxItems === "number" && items.length > maxItems)
    check.problems.push({ path, message: `must have ${maxItems} or fewer` });
  for (const [at, value] of items.entries())
    checkValue(check, schema["items"], { path: `${path}[${at}]`, value, depth: depth + 1 });
}

function checkFields(
  check: Check,
  schema: Schema,
  { path, depth }: Place,
  value: Readonly<Record<string, unknown>>,
): void {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const others = schema["additionalProperties"];
  const pathOf = (name: string): string => (path === "" ? name : `${path}.${name}`);
  const required = schema["required"];
  for (const name of Array.isArray(required) ? required : [])
    if (typeof name === "string" && !Object.hasOwn(value, name))
      check.problems.push({ path: pathOf(name), message: "is missing" });
  for (const [name, inner] of Object.entries(value)) {
    const place = { path: pathOf(name), value: inner, depth: depth + 1 };
    if (Object.hasOwn(properties, name)) checkValue(check, properties[name], place);
    else if (others === false) check.problems.push({ path: place.path, message: "is not known" });
    else checkValue(check, others, place);
  }
}

/** A schema, or what it refers to. */
export function resolved(root: Schema, given: unknown): Schema {
  if (!isObject(given)) return {};
  const reference = given["$ref"];
  if (typeof reference !== "string") return given;
  const name = /^#\/\$defs\/([\w.-]+)$/.exec(reference)?.[1] ?? "";
  const definitions = root["$defs"];
  const found = isObject(definitions) && Object.hasOwn(definitions, name) ? definitions[name] : {};
  return isObject(found) ? found : {};
}

function hasType(value: unknown, type: string): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "array" || Array.isArray(value)) return type === "array" && Array.isArray(value);
  return type === (value === null ? "null" : typeof value);
}

function article(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

/** Whether a value has fields. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
