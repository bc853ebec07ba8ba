// Rules of vendors' entries: that vendor, plan, key and chains are known, and that ids stay unique.
// Works on data that has not been validated; messages show no values but names of vendors, plans
// and chains.
import { isRecord } from "../core/fields.ts";
import { knownChain } from "../presets/chains.ts";
import type { Vendor } from "../presets/vendor.ts";
import { VENDORS, vendorProviders } from "../presets/vendors.ts";
import { chainWords, namedChains, servesAll } from "./chains.ts";
import type { ReportFault, RuleInput, RulePath } from "./rule.ts";

/** A chain of the file, and the words that lead to it, in lower case. */
interface FileChain {
  readonly name: string;
  readonly chainId: number;
  readonly words: readonly string[];
}

/** Every chain that the file serves. */
interface FileChains {
  readonly chains: readonly FileChain[];
  /** All known chains are served beside them. */
  readonly isAll: boolean;
}

/** An entry, where it stands. */
interface PlacedEntry {
  readonly path: RulePath;
  readonly entry: Readonly<Record<string, unknown>> & { readonly vendor: string };
  /** The chain in whose own list it stands; null = it is an entry of the profile. */
  readonly chain: string | null;
}

/** Reports what is wrong with the entries of vendors. */
export function vendorRules(report: ReportFault, { data }: Pick<RuleInput, "data">): void {
  const all: FileChains = { chains: chainsOf(data), isAll: servesAll(data) };
  for (const [slug, profile] of entriesAt(data, "profiles")) {
    const placed = placedEntries(["profiles", slug], profile);
    for (const each of placed) entryRules(report, each, all);
    idRules(report, profile, { placed, chains: all.chains });
  }
}

function placedEntries(at: RulePath, profile: unknown): readonly PlacedEntry[] {
  const joining = listAt(profile, "providers").flatMap((entry, index) =>
    isVendorEntry(entry) ? [{ path: [...at, "providers", index], entry, chain: null }] : [],
  );
  const own = entriesAt(profile, "chains").flatMap(([chain, set]) =>
    listAt(set, "providers").flatMap((entry, index) => {
      const path = [...at, "chains", chain, "providers", index];
      return isVendorEntry(entry) ? [{ path, entry, chain }] : [];
    }),
  );
  return [...own, ...joining];
}

/** Whether an item of a list of providers names a vendor. */
export function isVendorEntry(item: unknown): item is PlacedEntry["entry"] {
  return isRecord(item) && typeof item["vendor"] === "string";
}

function entryRules(
  report: ReportFault,
  { path, entry, chain }: PlacedEntry,
  chains: FileChains,
): void {
  const vendor = VENDORS.get(entry.vendor);
  if (vendor === undefined)
    return report([...path, "vendor"], `must be one of ${[...VENDORS.keys()].join(", ")}`);
  const { name, sunset } = vendor;
  if (typeof vendor.chains === "object" && vendor.chains.size === 0)
    return report([...path, "vendor"], `must be another one: ${name} closed on ${sunset}`);
  keyRules(report, { path, entry, vendor });
  planRule(report, { path, entry, vendor });
  const hasOwn = isAddressed(entry);
  const named = strings(entry["chains"]);
  if (chain !== null) {
    for (const setting of ["chains", "endpoints"])
      if (entry[setting] !== undefined)
        report([...path, setting], "must not stand here: the entry is for this chain alone");
  } else if (hasOwn && named.length !== 1)
    report(path, "must name one chain under `chains` where it has `url` or `ws_url`");
  if (chain === null) endpointRules(report, { path, entry, vendor }, chains);
  const found = chain === null ? named.entries() : [[null, chain] as const];
  for (const [index, word] of found) {
    const at = index === null ? path : [...path, "chains", index];
    const known = chainOfWord(chains, word);
    if (known === undefined) {
      if (index !== null)
        report(at, `must be the name of a chain under \`chains\`: ${listed(chains)}`);
    } else if (vendorProviders({ ...entry, endpoint: endpointFor(entry, known) }, known) === null)
      report(at, missing(vendor, known.name));
  }
}

interface CheckedEntry extends Pick<PlacedEntry, "path" | "entry"> {
  readonly vendor: Vendor;
}

function keyRules(report: ReportFault, { path, entry, vendor }: CheckedEntry): void {
  const hasKey = entry["key"] !== undefined;
  if (vendor.key === "required" && !hasKey && !isAddressed(entry))
    report(path, `must have \`key\`: that of your account at ${vendor.name}`);
  if (vendor.key === "none" && hasKey)
    report([...path, "key"], `must not be set: ${vendor.name} is not asked with a key of its own`);
}

function planRule(report: ReportFault, { path, entry, vendor }: CheckedEntry): void {
  const plan = entry["plan"];
  if (typeof plan !== "string" || Object.hasOwn(vendor.plans, plan)) return;
  const plans = Object.keys(vendor.plans);
  report(
    [...path, "plan"],
    plans.length === 0
      ? `must not be set: no plan of ${vendor.name} is known; say its \`limits\` instead`
      : `must be a plan of ${vendor.name}: ${plans.join(", ")}`,
  );
}

function endpointRules(
  report: ReportFault,
  { path, entry, vendor }: CheckedEntry,
  chains: FileChains,
): void {
  const { endpoints } = entry;
  if (vendor.chains !== "endpoints") {
    if (endpoints !== undefined)
      report([...path, "endpoints"], `must not be set: addresses of ${vendor.name} are known`);
    return;
  }
  if (endpoints === undefined && !isAddressed(entry)) report(path, missing(vendor, "each chain"));
  for (const word of Object.keys(isRecord(endpoints) ? endpoints : {}))
    if (chainOfWord(chains, word) === undefined)
      report(
        [...path, "endpoints", word],
        `must be for a chain under \`chains\`: ${listed(chains)}`,
      );
}

/** Why a vendor joins no provider to a chain. */
function missing({ chains, name }: Vendor, chain: string): string {
  return chains === "endpoints"
    ? `must have an address for ${chain} under \`endpoints\`: no rule tells those of ${name}`
    : `must be a chain that ${name} serves: ${chain} is none, as far as is known`;
}

/** Ids of the providers of each chain, with those that join. */
function idRules(
  report: ReportFault,
  profile: unknown,
  {
    placed,
    chains,
  }: { readonly placed: readonly PlacedEntry[]; readonly chains: readonly FileChain[] },
): void {
  for (const chain of chains) {
    const own = entriesAt(profile, "chains").find(([key]) =>
      chain.words.includes(key.toLowerCase()),
    );
    const plain = listAt(own?.[1], "providers").filter((item) => !isVendorEntry(item));
    const ids = new Set<unknown>(plain.map((item) => (isRecord(item) ? item["id"] : undefined)));
    for (const { path, entry, chain: at } of placed) {
      const isHere = at === null ? joins(entry, chain) : chain.words.includes(at.toLowerCase());
      if (!isHere) continue;
      const id = entry["id"] ?? entry.vendor;
      if (ids.has(id))
        report(
          entry["id"] === undefined ? path : [...path, "id"],
          `must be unique per chain and profile: another provider of ${chain.name} has this id; ` +
            "give one of them an `id` of its own",
        );
      ids.add(id);
    }
  }
}

function joins(entry: PlacedEntry["entry"], chain: FileChain): boolean {
  const words = entry["chains"] === undefined ? null : strings(entry["chains"]);
  const isNamed = words === null || words.some((word) => chain.words.includes(word.toLowerCase()));
  return (
    isNamed && vendorProviders({ ...entry, endpoint: endpointFor(entry, chain) }, chain) !== null
  );
}

function endpointFor(
  { endpoints }: PlacedEntry["entry"],
  { words }: FileChain,
): string | undefined {
  if (!isRecord(endpoints)) return undefined;
  const found = Object.entries(endpoints).find(([word]) => words.includes(word.toLowerCase()));
  return typeof found?.[1] === "string" ? found[1] : undefined;
}

function isAddressed(entry: PlacedEntry["entry"]): boolean {
  return entry["url"] !== undefined || entry["ws_url"] !== undefined;
}

function chainsOf(data: unknown): readonly FileChain[] {
  const named = namedChains(data);
  const words = [...chainWords(named)];
  return named.flatMap(({ chainName: name, chainId }) => {
    const own = words.flatMap(([word, chain]) => (chain === name ? [word] : []));
    return chainId === null ? [] : [{ name, chainId, words: own }];
  });
}

/** The chain that a word names: one of the file, or any known one where all are served. */
function chainOfWord({ chains, isAll }: FileChains, word: string): FileChain | undefined {
  const named = chains.find(({ words }) => words.includes(word.toLowerCase()));
  const known = named === undefined && isAll ? knownChain(word) : null;
  if (known === null) return named;
  return { name: known.chainName, chainId: known.chainId, words: [word.toLowerCase()] };
}

const MAX_LISTED = 50;

function listed({ chains }: FileChains): string {
  const names = chains.slice(0, MAX_LISTED).map(({ name }) => name.slice(0, 64));
  return names.join(", ") || "none is configured";
}

function entriesAt(value: unknown, key: string): readonly (readonly [string, unknown])[] {
  const member = isRecord(value) ? value[key] : undefined;
  return isRecord(member) ? Object.entries(member) : [];
}

function listAt(value: unknown, key: string): readonly unknown[] {
  const member = isRecord(value) ? value[key] : undefined;
  return Array.isArray(member) ? member : [];
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
