// What a converter makes of an imported file: settings in the names of `svc.yml`, and beside each
// part the notes of what could not be carried over. Knows no format, and no YAML.
import type { Fields } from "../../core/fields.ts";

/** One provider, in the settings of the file. */
export interface DraftProvider {
  readonly settings: Fields & { readonly id: string };
  /** The id of its chain; null = the imported file does not say it. */
  readonly chainId: number | null;
  readonly notes: readonly string[];
}

/** The settings of a profile on one chain. */
export interface DraftSet {
  readonly settings: Fields;
  readonly notes: readonly string[];
}

/** A vendor that serves several chains by one key. */
export interface DraftVendor {
  readonly settings: Fields & { readonly vendor: string };
  /** The ids of the chains that it is wanted for; empty = all that it serves. */
  readonly chainIds: readonly number[];
  readonly notes: readonly string[];
}

export interface DraftProfile {
  readonly slug: string;
  readonly settings: Fields;
  /** By chain id; chains without providers are dropped. */
  readonly sets: ReadonlyMap<number, DraftSet>;
  readonly providers: readonly DraftProvider[];
  readonly vendors: readonly DraftVendor[];
  readonly notes: readonly string[];
}

/** What the imported file says of a chain, beside its id. */
export interface DraftChain {
  readonly name?: string;
  readonly settings: Fields;
  readonly notes: readonly string[];
}

/** A configuration before it is written. */
export interface ConfigDraft {
  readonly settings: Fields;
  readonly chains: ReadonlyMap<number, DraftChain>;
  readonly profiles: readonly DraftProfile[];
  /** Every known chain is served, whether the file names it or not. */
  readonly servesAll: boolean;
  /** What belongs to no part of the file. */
  readonly notes: readonly string[];
}

/** The members that have a value; an empty record where none has. */
export function given(settings: Fields): Fields {
  return Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== null && value !== undefined),
  );
}

/** Settings under one name, where there are any. */
export function section(name: string, settings: Fields): Fields {
  const held = given(settings);
  return Object.keys(held).length === 0 ? {} : { [name]: held };
}

/** An id or slug that `svc.yml` accepts, made of any text. */
export function wordOf(text: string, fallback: string): string {
  const word = text
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, MAX_WORD);
  return word === "" ? fallback : word;
}

const MAX_WORD = 60;

/** The id, or where it is taken the id with a number. */
export function uniqueId(id: string, taken: Set<string>): string {
  let free = id;
  for (let count = 2; taken.has(free); count++) free = `${id}-${count}`;
  taken.add(free);
  return free;
}

/** The name of a provider where the file gives none: the part of its host that names its owner. */
export function idOfUrl(url: string, fallback: string): string {
  const host = /^[a-z]+:\/\/(?:[^/?#@]*@)?([^/?#:]+)/i.exec(url)?.[1] ?? "";
  const labels = host.split(".").filter((label) => /^[a-z][a-z0-9-]*$/i.test(label));
  const named = labels.length > 1 ? labels.at(-2) : labels[0];
  return wordOf(named ?? "", fallback);
}
