// Writes a draft as the text of a `svc.yml`: every note stands as a comment above the part that it
// belongs to, and what belongs to none at the end.
import { type Document, isMap, isNode, isSeq, stringify, Document as YamlDocument } from "yaml";
import type { Fields } from "../../core/fields.ts";
import { redact } from "../../core/redact/redact.ts";
import {
  type ConfigDraft,
  type DraftProfile,
  type DraftProvider,
  type DraftVendor,
  uniqueId,
} from "./draft.ts";

/** What is known of a chain by its id. */
export interface ChainName {
  /** Its key under `chains`. */
  readonly key: string;
  /** The settings that the file has to give. */
  readonly settings: Fields;
}

/** How the text begins, and what chains are called. */
export interface RenderParts {
  /** Lines at the top. */
  readonly head: readonly string[];
  readonly chainOf: (chainId: number, alias: string | null) => ChainName;
}

type Path = readonly (string | number)[];
type Comments = (readonly [path: Path, notes: readonly string[]])[];

/** The text of the configuration. */
export function rendered(draft: ConfigDraft, { head, chainOf }: RenderParts): string {
  const comments: Comments = [];
  const keys = new Map<number, string>();
  const taken = new Set<string>();
  const chains = usedChains(draft).map((chainId): [string, Fields] => {
    const said = draft.chains.get(chainId);
    const { key, settings } = chainOf(chainId, said?.name ?? null);
    const name = uniqueId(key, taken);
    keys.set(chainId, name);
    comments.push([["chains", name], said?.notes ?? []]);
    return [name, { ...settings, ...said?.settings }];
  });
  const profiles = draft.profiles.map((profile): [string, Fields] => [
    profile.slug,
    profileOf(profile, keys, comments),
  ]);
  const document = new YamlDocument({
    ...draft.settings,
    chains: { ...Object.fromEntries(chains), ...(draft.servesAll ? { all: true } : {}) },
    profiles: Object.fromEntries(profiles),
  });
  for (const [path, notes] of comments) putAbove(document, path, notes);
  for (const name of ["chains", "profiles"]) spaceBefore(document, name);
  document.commentBefore = head.map((line) => ` ${line}`.trimEnd()).join("\n");
  const lost = [...draft.notes, ...unplaced(draft)];
  const end = lost.length === 0 ? "" : `\n${commented(["What differs:", ...lost])}\n`;
  return document.toString({ lineWidth: 0, flowCollectionPadding: true }) + end;
}

function profileOf(
  { slug, settings, sets, providers, vendors, notes }: DraftProfile,
  keys: ReadonlyMap<number, string>,
  comments: Comments,
): Fields {
  const at: Path = ["profiles", slug];
  const lost = [...sets].flatMap(([chainId, set]) =>
    providers.some((provider) => provider.chainId === chainId)
      ? []
      : set.notes.map((note) => `chain ${chainId}: ${note}`),
  );
  comments.push([at, [...notes, ...lost]]);
  for (const [index, vendor] of vendors.entries())
    comments.push([[...at, "providers", index], vendor.notes]);
  const chains = [...keys].flatMap(([chainId, key]): readonly [string, Fields][] => {
    const own = providers.filter((provider) => provider.chainId === chainId);
    const set = sets.get(chainId);
    if (own.length === 0) return [];
    const path = [...at, "chains", key];
    comments.push([path, set?.notes ?? []]);
    for (const [index, provider] of own.entries())
      comments.push([[...path, "providers", index], provider.notes]);
    return [[key, { ...set?.settings, providers: withIds(own) }]];
  });
  return {
    ...settings,
    ...(vendors.length === 0
      ? {}
      : { providers: vendors.map((vendor) => vendorEntry(vendor, keys)) }),
    ...(chains.length === 0 ? {} : { chains: Object.fromEntries(chains) }),
  };
}

/** A vendor's entry, with its chains by the names that the file gives them. */
function vendorEntry(
  { settings, chainIds }: DraftVendor,
  keys: ReadonlyMap<number, string>,
): Fields {
  const names = chainIds.flatMap((chainId) => keys.get(chainId) ?? []);
  return names.length === 0 ? settings : { ...settings, chains: names };
}

/** The ids of chains that have providers; beside vendors, of all that the file names. */
function usedChains({ chains, profiles }: ConfigDraft): readonly number[] {
  const vendors = profiles.flatMap((profile) => profile.vendors);
  const own = profiles.flatMap(({ providers }) =>
    providers.flatMap(({ chainId }) => chainId ?? []),
  );
  const wanted = vendors.flatMap(({ chainIds }) => chainIds);
  return [...new Set([...own, ...wanted, ...(vendors.length > 0 ? chains.keys() : [])])];
}

function withIds(providers: readonly DraftProvider[]): readonly Fields[] {
  const taken = new Set<string>();
  return providers.map(({ settings }) => ({ ...settings, id: uniqueId(settings.id, taken) }));
}

/** Providers whose chain is unknown, as comments that can be moved to their place. */
function unplaced({ profiles }: ConfigDraft): readonly string[] {
  return profiles.flatMap(({ slug, providers }) =>
    providers
      .filter(({ chainId }) => chainId === null)
      .flatMap(({ settings, notes }) => [
        `a provider of profile ${slug}, since its chain is not known: name it by --chain, or put`,
        "  these lines under the chain:",
        ...stringify([settings], { lineWidth: 0 })
          .trimEnd()
          .split("\n")
          .map((line) => `    ${line}`),
        ...notes.map((note) => `  ${note}`),
      ]),
  );
}

function putAbove(document: Document, path: Path, notes: readonly string[]): void {
  if (notes.length === 0) return;
  const parent = document.getIn(path.slice(0, -1), true);
  const last = path.at(-1);
  const pair = isMap(parent) ? parent.items.find(({ key }) => String(key) === last) : undefined;
  const target = isSeq(parent) ? parent.items[Number(last)] : pair?.key;
  if (isNode(target))
    target.commentBefore = commented(["What differs:", ...notes]).replaceAll(/^#/gm, "");
}

function spaceBefore(document: Document, name: string): void {
  const pair = isMap(document.contents)
    ? document.contents.items.find(({ key }) => String(key) === name)
    : undefined;
  if (isNode(pair?.key)) pair.key.spaceBefore = true;
}

const MAX_COLUMNS = 96;

/** Notes as lines of a comment, each broken between words. */
function commented([head = "", ...notes]: readonly string[]): string {
  const lines = notes.flatMap((note) =>
    note.startsWith("  ") ? [note] : broken(redact(`- ${note}`).replace(/\s+/g, " ")),
  );
  return [head, ...lines].map((line) => `# ${line}`).join("\n");
}

function broken(text: string): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length >= MAX_COLUMNS) {
      lines.push(line);
      line = `  ${word}`;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
