// The URL grammar of the RPC surface, one row of a table per form. Resolves path, query and headers
// to the target of a call.

import type { LegacyFormName } from "../../core/faults/legacy-form.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { type Chain, isDevelopmentChain } from "../../core/provider/chain.ts";
import {
  type Profile,
  type Provider,
  profileId,
  publicLabel,
} from "../../core/provider/profile.ts";
import {
  DEFAULT_STRATEGY,
  isOperatorOnly,
  STRATEGY_NAMES,
  STRATEGY_SPELLINGS,
  type Strategy,
} from "../../core/routing/strategy.ts";
import type { AccountState } from "../../hosted/keys/key-context.ts";
import type { Observer } from "../../observe/observer.ts";
import type { Series } from "../../observe/series.ts";
import type { Tracker } from "../../upstream/health/tracker.ts";
import type { ProfileRegistry, ServedProfile } from "../../upstream/registry/profile-registry.ts";

/** How evidence is attached to answers. */
export type MetaMode = "none" | "body" | "headers";

/** Everything that a URL and its headers decide about a call. */
export interface Target {
  readonly kind: "target";
  /** The input that it was resolved from. */
  readonly input: TargetInput;
  /**
   * Slug of the requested profile. Another profile may serve it: `public` serves `premium` if that
   * is not configured, and both stand in for a Custom profile without access.
   */
  readonly named: string;
  readonly profile: Profile;
  readonly chain: Chain;
  readonly tracker: Tracker;
  readonly series: Series;
  readonly strategy: Strategy;
  readonly pin: Provider | null;
  readonly meta: MetaMode;
  /** Path of the same target for WebSockets. */
  readonly socketPath: string;
  /** Legacy forms used by the request; null = none. */
  readonly legacyForms: readonly LegacyFormName[] | null;
  /** True = pay-per-call: the call needs no key. */
  readonly payPerCall: boolean;
}

/** The parts of a request that decide its target. */
export interface TargetInput {
  /** Path and query as requested, without a key. */
  readonly url: string;
  /** Profile of URLs that name none; null = the default of the instance. */
  readonly defaultProfile: string | null;
  /** Profile that serves instead of the one in the URL; null = the one in the URL. */
  readonly within: string | null;
  /** `X-Svc-Provider`. */
  readonly provider: string | undefined;
  /** `X-Svc-Strategy`: the request-level assignment. */
  readonly strategy: string | undefined;
  /** Legacy forms that the URL no longer shows; absent = none. */
  readonly legacyForms?: readonly LegacyFormName[] | undefined;
}

/**
 * Every URL form. `{strategy}` matches strategy names only; the first matching row wins. With a key
 * in the path, `/rpc/k/{key}/…` continues as `/rpc/…`.
 */
export const URL_FORMS: readonly string[] = [
  "/rpc/session/{strategy}/{chain}",
  "/rpc/provider/{provider}/{chain}",
  "/rpc/profile/{profile}/provider/{provider}/{chain}",
  "/rpc/profile/{profile}/{strategy}/{chain}",
  "/rpc/profile/{profile}/{chain}/{provider}",
  "/rpc/profile/{profile}/{chain}",
  "/profile/{profile}/{strategy}/{chain}",
  "/profile/{profile}/{chain}",
  "/rpc/{strategy}/{chain}",
  "/rpc/{chain}/{provider}",
  "/rpc/{chain}",
];

const SESSIONS = "/rpc/session/";

/** Opens chains that are known, and not configured, when they are called. */
export interface ChainOpener {
  /** Whether any chain is opened that no configuration names. */
  readonly isOn: boolean;
  /** The chain that a text in a URL means, if a profile may serve it on demand; null = none. */
  known(text: string, profile: Profile): Pick<Chain, "chainId" | "chainName"> | null;
  /** Whether a served chain was opened, and no provider of it has answered yet. */
  isOpening(chain: Chain): boolean;
  /**
   * Opens a chain for a caller, and waits until a provider has answered. Calls back once: null = it
   * is served. The returned function cancels.
   */
  prepare(chainName: string, caller: string, done: (why: Fault | null) => void): () => void;
}

/** The parts of an account that decide the targets of its calls. */
export type TargetAccount = Pick<AccountState, "id" | "own">;

const REMEMBERED = 1_024;
const LONGEST_URL_CHARS = 4_096;

/** Resolves targets, and caches those without headers of their own. */
export class TargetResolver {
  readonly #registry: ProfileRegistry;
  readonly #observer: Observer;
  /** Null = no other chains than the configured ones are served. */
  readonly #opener: ChainOpener | null;
  // By default profile, then by URL.
  readonly #homes = new Map<string | null, Map<string, Target>>();
  readonly #withins = new Map<string | null, Map<string, Target>>();
  #size = 0;
  #revision: number;

  /** A resolver over the chains and profiles of `registry`. */
  constructor(registry: ProfileRegistry, observer: Observer, opener: ChainOpener | null = null) {
    this.#registry = registry;
    this.#observer = observer;
    this.#opener = opener;
    this.#revision = registry.revision;
  }

  /**
   * Changes whenever an input may resolve to another target. Code that keeps a target compares it
   * and resolves again.
   */
  get revision(): number {
    return this.#registry.revision;
  }

  /**
   * `account` = the caller's account, which determines its Custom profiles; null = a caller without
   * a key.
   */
  resolve(input: TargetInput, account: TargetAccount | null): Target | Fault {
    const plain =
      input.provider === undefined &&
      input.strategy === undefined &&
      input.legacyForms === undefined;
    if (this.#revision !== this.#registry.revision) this.#forget();
    // Only targets that are the same for every caller are cached.
    if (!plain || (account !== null && account.own !== null)) return this.#resolve(input, account);
    const group = input.within === null ? this.#homes : this.#withins;
    const slug = input.within ?? input.defaultProfile;
    const remembered = group.get(slug)?.get(input.url);
    if (remembered !== undefined) return remembered;
    const target = this.#resolve(input, null);
    if (target.kind === "fault") return target;
    if (this.#size >= REMEMBERED) this.#forget();
    this.#size++;
    const known = group.get(slug) ?? new Map<string, Target>();
    group.set(slug, known.set(input.url, target));
    return target;
  }

  #resolve(input: TargetInput, account: TargetAccount | null): Target | Fault {
    const mark = input.url.indexOf("?");
    const path = mark === -1 ? input.url : input.url.slice(0, mark);
    const query = new URLSearchParams(mark === -1 ? "" : input.url.slice(mark + 1));
    const segments = input.url.length > LONGEST_URL_CHARS ? null : segmentsOf(path);
    if (segments === null)
      return fault("invalid_request", "the URL is too long or not valid", { status: 400 });
    const parts = partsOf(segments);
    if (!parts)
      return fault("not_found", "no RPC endpoint has this path", { details: { forms: URL_FORMS } });
    const named = parts.profile ?? input.defaultProfile ?? undefined;
    const isKeyed = input.defaultProfile !== null;
    const served = this.#profileOf(input.within ?? named, isKeyed, account);
    if ("kind" in served) return served;
    const chain = this.#chainOf(parts.chain ?? "", served.profile);
    if (chain?.kind === "fault") return chain;
    const tracker = chain === undefined ? undefined : served.trackers.get(chain.chainName);
    if (chain === undefined || tracker === undefined) return this.#unknownChain(served, parts);
    const { defaultStrategy } = served.profile;
    const choices = [parts.strategy, query.get("strategy"), input.strategy, defaultStrategy];
    const strategy = strategyOf(served.profile, choices);
    if (typeof strategy !== "string") return strategy;
    const wanted = isElsewhere(account, named)
      ? undefined
      : (parts.provider ?? query.get("provider") ?? input.provider);
    const pin = wanted === undefined ? onlyNode(tracker) : pinOf(wanted, served.profile, tracker);
    if (pin !== null && "kind" in pin) return pin;
    const meta = query.get("include_meta") ?? "none";
    if (meta !== "none" && meta !== "body" && meta !== "headers") {
      return fault("invalid_field", "include_meta is not known", {
        nextAction: "use include_meta=body or include_meta=headers",
      });
    }
    const forms = [...oldPathForms(parts), ...(input.legacyForms ?? [])];
    const legacyForms = forms.length === 0 ? null : forms;
    const series = this.#observer.series(publicLabel(profileId(served.profile)), chain.chainName);
    const { profile } = served;
    const payPerCall = parts.form?.startsWith(SESSIONS) === true;
    const socketPath = `/ws${payPerCall ? path.replace(SESSIONS, "/rpc/") : path}`;
    return {
      kind: "target",
      input,
      named: named ?? profile.slug,
      profile,
      chain,
      tracker,
      series,
      strategy,
      pin,
      meta,
      socketPath,
      legacyForms,
      payPerCall,
    };
  }

  /** `isKeyed`: the caller has a key. */
  #profileOf(
    slug: string | undefined,
    isKeyed: boolean,
    account: TargetAccount | null,
  ): ServedProfile | Fault {
    const services = slug === undefined ? undefined : account?.own?.servicesOf(slug)?.[0];
    const isCustom = services?.access === "custom";
    if (!isCustom) return this.#sharedProfile(services?.profile ?? slug, isKeyed, account);
    const served = this.#registry.served(profileId({ owner: account?.id ?? "", slug: slug ?? "" }));
    return (
      served ?? fault("not_prepared", "the profile is being loaded", { details: { profile: slug } })
    );
  }

  /**
   * A profile that belongs to no account. For callers with a key, this excludes the operator's own
   * profiles.
   */
  #sharedProfile(
    slug: string | undefined,
    isKeyed: boolean,
    account: TargetAccount | null,
  ): ServedProfile | Fault {
    const registry = this.#registry;
    const served = slug === undefined ? registry.defaultProfile : registry.profile(slug);
    if (served !== undefined && (!isKeyed || served.profile.managed)) return served;
    const shared = isKeyed && slug === "premium" ? registry.profile("public") : undefined;
    if (shared !== undefined) return shared;
    const known = isKeyed
      ? ["premium", "public", ...(account?.own?.slugs ?? [])]
      : registry.profiles.map(({ profile }) => profile.slug);
    return fault("unknown_profile", "no profile has this slug", {
      nextAction: `use one of: ${known.join(", ")}`,
      details: { known_profiles: known },
    });
  }

  /** The chain that a text means; undefined = none. */
  #chainOf(
    text: string,
    profile: Profile,
  ): (Chain & { readonly kind?: never }) | Fault | undefined {
    const chain = this.#registry.chain(text);
    const opener = this.#opener;
    if (opener === null) return chain;
    const known = chain === undefined ? opener.known(text, profile) : null;
    const served = known === null ? chain : this.#registry.chain(String(known.chainId));
    const { chainName } = served ?? known ?? {};
    if (chainName === undefined || (served !== undefined && !opener.isOpening(served)))
      return served;
    return fault("not_prepared", OPENING, { details: { chain: chainName } });
  }

  #unknownChain(served: ServedProfile, parts: Parts): Fault {
    const known = this.#registry.chains
      .filter((chain) => served.trackers.has(chain.chainName))
      .map((chain) => chain.chainName);
    const inProfile = parts.profile === undefined ? "" : ` in profile ${served.profile.slug}`;
    return fault("unknown_chain", `no chain has this name or id${inProfile}`, {
      nextAction:
        `use one of: ${known.join(", ")}${this.#opener?.isOn === true ? OR_ANY : ""}; strategies ` +
        `are ${STRATEGY_NAMES.join(", ")}`,
      details: { known_chains: known },
    });
  }

  #forget(): void {
    this.#homes.clear();
    this.#withins.clear();
    this.#size = 0;
    this.#revision = this.#registry.revision;
  }
}

const OR_ANY = " (open now), or the name or decimal id of another public chain";

/** Why a call to a chain that is opened on demand is refused. */
export const OPENING = "the chain is being opened: no provider of it has answered yet";

/** Whether the path belongs to the RPC surface, even if it resolves to no target. */
export function isRpcPath(url: string): boolean {
  return url.startsWith("/rpc/") || url.startsWith("/profile/");
}

/** Whether calls on the path are paid per call. */
export function isSessionPath(url: string): boolean {
  return url.startsWith(SESSIONS);
}

/**
 * Whether the path belongs to the RPC surface for WebSockets, even if it resolves to no target.
 */
export function isSocketPath(url: string): boolean {
  return url.startsWith("/ws/");
}

/** The forms that are not legacy forms. */
export const CURRENT_FORMS: readonly string[] = URL_FORMS.filter(
  (form) => oldPathForms({ form }).length === 0,
);

type Parts = Partial<Record<"form" | "profile" | "strategy" | "chain" | "provider", string>>;
const FORMS = URL_FORMS.map((form) => ({ form, segments: form.slice(1).split("/") }));

/** The decoded segments of a path; null = it cannot be decoded. One trailing slash is ignored. */
function segmentsOf(path: string): readonly string[] | null {
  try {
    return path.replace(/^\//, "").replace(/\/$/, "").split("/").map(decodeURIComponent);
  } catch {
    return null;
  }
}

/** The legacy forms of a URL, even if it resolves to no target. */
export function legacyFormsOf(url: string): readonly LegacyFormName[] {
  const segments = url.length > LONGEST_URL_CHARS ? null : segmentsOf(url.split("?", 1)[0] ?? "");
  const parts = segments === null ? undefined : partsOf(segments);
  return parts === undefined ? [] : oldPathForms(parts);
}

function oldPathForms({ form, strategy }: Parts): readonly LegacyFormName[] {
  const forms: LegacyFormName[] = [];
  if (form?.startsWith("/profile/") === true) forms.push("profile-prefix");
  if (form?.endsWith("{chain}/{provider}") === true) forms.push("chain-provider");
  if (strategy === "round-robin" || strategy === "round_robin") forms.push("round-robin");
  return forms;
}

function partsOf(given: readonly string[]): Parts | undefined {
  for (const { form, segments } of FORMS) {
    const parts = match(segments, given);
    if (parts !== null) return { ...parts, form };
  }
  return undefined;
}

function match(form: readonly string[], segments: readonly string[]): Parts | null {
  if (form.length !== segments.length) return null;
  const parts: Parts = {};
  for (const [i, expected] of form.entries()) {
    const segment = segments[i] ?? "";
    if (expected === "{profile}") parts.profile = segment;
    else if (expected === "{chain}") parts.chain = segment;
    else if (expected === "{provider}") parts.provider = segment;
    else if (expected === "{strategy}" && STRATEGY_SPELLINGS.has(segment)) parts.strategy = segment;
    else if (expected !== segment) return null;
  }
  return parts;
}

/**
 * Whether another profile serves a Custom profile for now: providers of the Custom profile cannot
 * be pinned then.
 */
function isElsewhere(account: TargetAccount | null, named: string | undefined): boolean {
  const service = named === undefined ? undefined : account?.own?.servicesOf(named)?.[0];
  return service !== undefined && service.access !== "custom";
}

/** The strategy: the path wins over the query, the header and the default of the profile. */
function strategyOf(
  { owner }: Pick<Profile, "owner">,
  choices: readonly (string | null | undefined)[],
): Strategy | Fault {
  const chosen = choices.find((choice) => choice !== null && choice !== undefined);
  const strategy = STRATEGY_SPELLINGS.get(chosen ?? DEFAULT_STRATEGY);
  const isForOwner = strategy === undefined || owner === null || !isOperatorOnly(strategy);
  if (strategy !== undefined && isForOwner) return strategy;
  const names = STRATEGY_NAMES.filter((name) => owner === null || !isOperatorOnly(name));
  return fault(
    "invalid_field",
    strategy === undefined ? "no strategy has this name" : "Custom profiles have no such strategy",
    { nextAction: `use ${names.slice(0, -1).join(", ")} or ${names.at(-1)}` },
  );
}

/**
 * The one node of a development chain. On a development chain callers change state and undo blocks,
 * so calls are sent as written: nothing that an earlier answer said holds for the next one.
 */
function onlyNode({ set }: Tracker): Provider | null {
  const [only, ...others] = set.providers;
  return only !== undefined && others.length === 0 && isDevelopmentChain(set.chain) ? only : null;
}

/** The pinned provider, by its id or alias. */
function pinOf(name: string, profile: Profile, tracker: Tracker): Provider | Fault {
  const { providers } = tracker.set;
  const provider =
    providers.find(({ id }) => id === name) ?? providers.find(({ alias }) => alias === name);
  if (provider !== undefined) return provider;
  const known = providers.map(({ id, alias }) => (profile.managed ? alias : id));
  return fault("invalid_field", `no provider of ${tracker.set.chain.chainName} has this id`, {
    nextAction: `pin one of: ${known.join(", ")}, or leave the pin out`,
    details: { known_providers: known },
  });
}
