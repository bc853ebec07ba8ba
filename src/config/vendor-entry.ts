// The settings of an entry that names a vendor: its own, and those of a provider, none of which has
// a default, so that what the vendor's row says holds wherever the entry says nothing.
import { z } from "zod";
import { pattern, settings, text } from "./kinds.ts";

/** An entry of a file that names a vendor. Secret. */
export interface VendorSettings {
  readonly vendor: string;
  readonly key?: string | undefined;
  readonly plan?: string | undefined;
  readonly chains?: readonly string[] | undefined;
  readonly endpoints?: Readonly<Record<string, string>> | undefined;
  readonly [setting: string]: unknown;
}

/** The schema of such an entry, made from the settings of a provider and what an address is. */
export function vendorEntryOf(
  provider: Readonly<Record<string, z.ZodType>>,
  address: z.ZodType<string>,
): z.ZodType<VendorSettings> {
  const overrides = Object.entries(provider).map(([name, setting]) => [
    name,
    undefaulted(name === "id" ? setting.optional() : setting),
  ]);
  const chainWord = text(1, 64);
  const entry = settings({
    vendor: text(1, 64).describe("The vendor's name, as in docs/vendors.md."),
    key: pattern(/^[!-~]{1,1000}$/)
      .meta({ title: "1 to 1000 characters of ASCII without spaces" })
      .optional()
      .describe("The account's key. Secret. Needed where the vendor's addresses hold one."),
    plan: text(1, 64)
      .optional()
      .describe("The account's plan: its limits hold then. Default: none are known."),
    chains: z
      .array(chainWord)
      .min(1)
      .max(1_000)
      .optional()
      .describe("The chains that it joins. Default: all of the file that the vendor serves."),
    endpoints: z
      .record(chainWord, address)
      .optional()
      .describe(
        "Addresses by chain, of vendors whose addresses hold names that no rule tells. Secret.",
      ),
    ...parseShape(Object.fromEntries(overrides)),
  });
  return entry.describe(
    "A vendor. Every setting of a provider may stand here as well, and goes before what is known " +
      "of the vendor.",
  );
}

/** The same setting without a default, nor any within it. */
function undefaulted(schema: z.ZodType): z.ZodType {
  const meta = schema.meta();
  const plain = undefaultedValue(schema);
  return meta === undefined ? plain : plain.meta({ ...plain.meta(), ...meta });
}

function undefaultedValue(schema: z.ZodType): z.ZodType {
  if (
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional
  )
    return undefaulted(parseInner(schema.unwrap())).optional();
  if (!(schema instanceof z.ZodObject)) return schema;
  const fields = Object.entries(schema.shape).map(([name, field]) => [
    name,
    undefaulted(parseInner(field)),
  ]);
  return settings(Object.fromEntries(fields));
}

/** Types without the overrides, which are read as they are. */
function parseShape(
  overrides: Readonly<Record<string, z.ZodType>>,
): Readonly<Record<never, never>> {
  return overrides;
}

/** zod types what it wraps as its inner form. */
function parseInner(schema: unknown): z.ZodType {
  return schema as z.ZodType;
}
