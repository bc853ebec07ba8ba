// Kinds of settings that several tables share.
import { z } from "zod";
import type { JsonSchema } from "../core/json-schema.ts";

const DAY_MS = 86_400_000;

/** A whole number within bounds. */
export const count = (min: number, max: number, fallback: number) =>
  whole(min, max).default(fallback);

/** The same, or null = not set. */
export const countOrNull = (min: number, max: number = Number.MAX_SAFE_INTEGER) =>
  whole(min, max).nullable().default(null);

/** A whole number within bounds that has no default. */
export const whole = (min: number, max: number) => z.int().min(min).max(max);

/** A number above 0. */
export const positive = (max: number, fallback: number) =>
  z.number().gt(0).max(max).default(fallback);

/** True or false. */
export const flag = (fallback: boolean) => z.boolean().default(fallback);

/** One of these words. */
export const oneOf = <const Words extends readonly string[]>(
  words: Words,
  fallback: Words[number],
) => z.enum(words).prefault(fallback);

/** Text of so many characters. */
export const text = (min: number, max: number) => z.string().min(min).max(max);

/** Text of this form. */
export const pattern = (form: RegExp) => z.string().regex(form);

/** A list of at most `max` items; none by default. */
export const list = <Item extends z.ZodType>(item: Item, max: number) =>
  z.array(item).max(max).default([]);

/** Values by name; none by default. */
export const byName = <Name extends z.core.$ZodRecordKey, Value extends z.ZodType>(
  name: Name,
  value: Value,
) => z.record(name, value).prefault(parseEmpty);

/** A map with these settings. */
export const settings = z.strictObject;

/** The same; left out, it has all their defaults. */
export const section = <Fields extends z.core.$ZodLooseShape>(fields: Fields) =>
  z.strictObject(fields).prefault(parseEmpty);

/** Either `off`, or a map with these settings. */
export const offOr = <Settings extends z.ZodType>(settings: Settings) =>
  z.union([z.literal("off"), settings]).meta({ title: "`off` or a map" });

/** A time in milliseconds, at most a day unless `max` says otherwise. */
export const intervalMs = (fallback: number, max = DAY_MS) => count(1, max, fallback);

const UNITS: Readonly<Record<string, number>> = { KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 };
const SIZE = /^(\d{1,6})(KiB|MiB|GiB)$/;

/** A number of bytes, also written as `128MiB`. */
export const byteSize = (min: number, max: number, fallback: number) =>
  z
    .union([z.int().min(min).max(max), z.string().regex(SIZE)])
    .refine((value) => bytesOf(value) >= min && bytesOf(value) <= max)
    .meta({ title: `bytes, such as \`128MiB\`, from ${min} to ${max}` })
    .default(fallback);

/** The bytes of a valid size. */
export function bytesOf(size: number | string): number {
  if (typeof size === "number") return size;
  const [, count = "0", unit = ""] = SIZE.exec(size) ?? [];
  return Number(count) * (UNITS[unit] ?? 0);
}

/** The operator's secret; absent = nobody is the operator. */
export const operatorToken = z
  .string()
  .min(24)
  .max(200)
  .optional()
  .meta({ title: "text of 24 to 200 characters" });

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;

/** Settings under the names of the program: `max_bytes` is `maxBytes`. */
export type Named<Settings> = {
  readonly [Name in keyof Settings as Name extends string ? Camel<Name> : Name]: Settings[Name];
};

/** The same settings under the names of the program. */
export function named<Settings extends object>(settings: Settings): Named<Settings> {
  return parseNamed(Object.entries(settings).map(([name, value]) => [camel(name), value]));
}

/** A name of the file as the program writes it. */
export function camel<const Name extends string>(name: Name): Camel<Name> {
  return name.replace(/_(.)/g, (_, first: string) => first.toUpperCase()) as Camel<Name>;
}

function parseNamed<Settings>(entries: readonly (readonly [string, unknown])[]): Named<Settings> {
  return Object.fromEntries(entries) as Named<Settings>;
}

/** The empty map, which is a valid section: every setting in one has a default. */
function parseEmpty<Input>(): Input {
  return {} as Input;
}

/** JSON Schema (draft 2020-12) of the input that a table accepts. */
export function schemaOf(table: z.ZodType): JsonSchema {
  return parseSchema(z.toJSONSchema(table, { io: "input" }));
}

/** zod makes JSON Schemas with the keywords that are read here. */
function parseSchema(schema: object): JsonSchema {
  return schema as JsonSchema;
}
