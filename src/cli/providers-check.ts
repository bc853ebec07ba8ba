// `svc providers check`: which vendors of a configuration close or have closed, which rows of the
// table of vendors are old, and for which chains an entry has no address.
import { type ConfigFault, formatFaults, pathText } from "../config/config-fault.ts";
import type { VendorUse } from "../config/vendor-providers.ts";
import type { Vendor } from "../presets/vendor.ts";
import { VENDORS } from "../presets/vendors.ts";
import type { CommandInput } from "./command.ts";
import { requireConfig } from "./read-config.ts";

const DAY_MS = 86_400_000;
/** A vendor that closes within this time is named. */
const NEAR_DAYS = 90;
/** A row that was looked at longer ago is named. */
const OLD_DAYS = 365;

/** An entry of a vendor, where it stands in the file. */
type PlacedUse = VendorUse & Pick<ConfigFault, "line" | "column">;

/** What is to be said of the vendors of a file. */
interface VendorFindings {
  readonly lines: readonly Pick<ConfigFault, "line" | "column" | "path" | "message">[];
  /** How many entries name a vendor that closes soon, or has closed. */
  readonly closing: number;
}

/** Looks at the entries of vendors at a time (ms), with a table of vendors. */
export function vendorFindings(
  uses: readonly PlacedUse[],
  nowMs: number,
  vendors: ReadonlyMap<string, Vendor> = VENDORS,
): VendorFindings {
  const daysUntil = (day: string): number => Math.ceil((Date.parse(day) - nowMs) / DAY_MS);
  const found = uses.flatMap(({ path, line, column, vendor: word, lacks }) => {
    const vendor = vendors.get(word);
    if (vendor === undefined) return [];
    const { name, sunset, lookedAt, chains } = vendor;
    const left = sunset === undefined ? null : daysUntil(sunset);
    const age = -daysUntil(lookedAt);
    const isClosing = left !== null && left <= NEAR_DAYS;
    const messages = [
      ...(isClosing
        ? [
            left > 0
              ? `${name} closes on ${sunset}, in ${left} days`
              : `${name} closed on ${sunset}`,
          ]
        : []),
      ...(age > OLD_DAYS
        ? [`what is known of ${name} was looked at on ${lookedAt}, ${age} days ago`]
        : []),
      ...(chains === "any" ? [`which chains ${name} serves is not known`] : []),
      ...(chains === "endpoints" && lacks.length > 0
        ? [`has no address at ${name} for ${lacks.join(", ")}`]
        : []),
    ];
    return messages.map((message) => ({ line, column, path: pathText(path), message, isClosing }));
  });
  const closing = new Set(found.filter(({ isClosing }) => isClosing).map(({ path }) => path));
  return { lines: found, closing: closing.size };
}

/** Checks the vendors of a configuration file; exit code 1 where one closes soon or has closed. */
export function checkProviders({ operands: [operand], flags, env }: CommandInput): void {
  const file = operand ?? flags["config"] ?? env["SVC_CONFIG"] ?? "svc.yml";
  const { vendors } = requireConfig({ flags: { config: file }, env });
  const { lines, closing } = vendorFindings(vendors, Date.now());
  for (const line of lines) console.log(formatFaults([{ ...line, file }]));
  console.log(`${file}: ${vendors.length} entries of vendors, ${closing} of them closing`);
  if (closing > 0) process.exitCode = 1;
}
