// Vendors by name, and the settings of a provider that follow from a vendor's row for a chain, in
// the words of `svc.yml`. What the entry of a file says goes before what the row says.
import { isRecord } from "../core/fields.ts";
import type { Vendor } from "./vendor.ts";
import { NODE_VENDORS } from "./vendor-nodes.ts";
import { SERVICE_VENDORS } from "./vendor-services.ts";

/** Settings in the words of `svc.yml`. */
type RawSettings = Readonly<Record<string, unknown>>;

/** An entry of a file that names a vendor; all other settings are those of a provider. */
export interface VendorEntry {
  readonly vendor: string;
  /** Secret. */
  readonly key?: string | undefined;
  readonly plan?: string | undefined;
  /** Secret: the vendor's address for the chain, where it holds a name that no rule tells. */
  readonly endpoint?: string | undefined;
  readonly [setting: string]: unknown;
}

/** Every vendor, by the word that `vendor:` names it with. */
export const VENDORS: ReadonlyMap<string, Vendor> = new Map(
  Object.entries({ ...NODE_VENDORS, ...SERVICE_VENDORS }).sort(([a], [b]) => (a < b ? -1 : 1)),
);

/** The settings of an entry that are not settings of a provider. */
const OWN_SETTINGS: ReadonlySet<string> = new Set(
  "vendor key plan chains endpoint endpoints".split(" "),
);

/**
 * The settings of the provider that a vendor's entry stands for on a chain; null = the vendor does
 * not serve it, or its address there is not known.
 */
export function vendorProviders(
  entry: VendorEntry,
  { chainId }: { readonly chainId: number },
): RawSettings | null {
  const vendor = VENDORS.get(entry.vendor);
  if (vendor === undefined) return null;
  const addresses = addressesOf(vendor, entry, chainId);
  if (addresses === null) return null;
  const own = Object.entries(entry).filter(([setting]) => !OWN_SETTINGS.has(setting));
  const row = { ...rowSettings(vendor, entry, chainId), ...headersOf(vendor, entry) };
  const operator = entry.vendor;
  const settings = { id: entry.vendor, operator, ...row };
  // Addresses go last: they hold those that the entry says.
  return priced({ ...merged(settings, Object.fromEntries(own)), ...addresses });
}

/** The addresses for a chain; null = none are known. */
function addressesOf(
  { chains, http, ws, keyless, httpOnly = [] }: Vendor,
  { key, endpoint, url, ws_url }: VendorEntry,
  chainId: number,
): RawSettings | null {
  const isNamed = chains === "endpoints";
  const named = isNamed ? (endpoint ?? textOf(url)) : undefined;
  const said = given({ url: isNamed ? undefined : url, ws_url });
  const word = typeof chains === "string" ? "" : chains.get(chainId);
  if (Object.keys(said).length > 0 && named === undefined) return said;
  if (word === undefined || (isNamed && named === undefined)) return null;
  const isWhole = word.includes("{key}");
  const fill = (text: string): string =>
    text
      .replace("{endpoint}", () => (named ?? "").replace(/\/+$/, ""))
      .replace("{slug}", word)
      .replace("{id}", String(chainId))
      .replace("{key}", () => encodeURIComponent(key ?? ""));
  const hasSocket = ws !== undefined && !isWhole && !httpOnly.includes(chainId);
  const form = key === undefined ? (keyless ?? http) : http;
  const own = fill(isWhole ? `https://${word}` : form);
  if (/^wss?:/i.test(own)) return { ws_url: own, ...said };
  return {
    url: own,
    ...(hasSocket ? { ws_url: fill(ws).replace(/^http/i, "ws") } : {}),
    ...said,
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The headers that carry the key. */
function headersOf({ headers }: Vendor, { key }: VendorEntry): RawSettings {
  if (headers === undefined || key === undefined) return {};
  const filled = Object.entries(headers).map(([name, value]) => [
    name,
    value.replace("{key}", () => key),
  ]);
  return { headers: Object.fromEntries(filled) };
}

/** What a row says beside addresses: of its plan, of prices, and of what it serves. */
function rowSettings(vendor: Vendor, { plan }: VendorEntry, chainId: number): RawSettings {
  const { rps, daily, monthly, price, blocks } = vendor.plans[plan ?? ""] ?? {};
  const { kind, methods, archival, credits, otherCredits } = vendor;
  const most = typeof blocks === "object" ? blocks[chainId in blocks ? chainId : "other"] : blocks;
  return given({
    name: vendor.name,
    kind,
    methods,
    archival,
    price,
    limits: given({ rps, daily, monthly, credits, default_credits: otherCredits }),
    // Documents count blocks; a range is the last block minus the first.
    capabilities: most == null ? undefined : { limits: { max_block_range: most - 1 } },
  });
}

/** The settings that have a value. */
function given(settings: RawSettings): RawSettings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}

/** The settings of both; where both have one, that of `own`, and maps are merged. */
function merged(settings: RawSettings, own: RawSettings): RawSettings {
  const changed = Object.entries(own).map(([name, value]) => {
    const before = settings[name];
    return [name, isRecord(before) && isRecord(value) ? merged(before, value) : value];
  });
  return { ...settings, ...Object.fromEntries(changed) };
}

/** Without the prices of methods where nothing counts credits, and without limits that are none. */
function priced(settings: RawSettings): RawSettings {
  const { limits, ...rest } = settings;
  if (!isRecord(limits)) return settings;
  const counts = [limits["daily"], limits["monthly"], rest["price"]].some((value) => value != null);
  const { credits, default_credits, ...others } = limits;
  const kept = counts ? given({ ...others, credits, default_credits }) : others;
  return Object.keys(kept).length === 0 ? rest : { ...rest, limits: kept };
}
