// Rules that span several settings: uniqueness, references, exclusions. Works on data that has not
// been validated, so that it also reports where single settings are wrong. Knows no positions in
// the file, only paths, and never puts a value into a message.
import { isRecord } from "../core/fields.ts";
import { DEVNET_CHAIN } from "../core/provider/chain.ts";
import { DEFAULT_HEDGE } from "../core/routing/hedge.ts";
import { STRATEGIES, spellingsOf } from "../core/routing/strategy.ts";
import { MAX_ADDED_METHODS, mayBeConfigured, methodOf } from "../core/rpc/method.ts";
import { RESERVED_CHAIN_NAMES } from "./schema.ts";
import { splitCredentials } from "./url-credentials.ts";

/** A broken rule. `at` says whether the key or the value of the last path step is meant. */
export interface Breach {
  readonly path: readonly (string | number)[];
  readonly at: "key" | "value";
  readonly message: string;
}

/** Every broken rule of a configuration file. */
export function brokenRules(data: unknown, production: boolean): readonly Breach[] {
  const chains = entriesOf(member(data, "chains"));
  const devnet = member(data, "devnet") === true;
  return [
    ...serviceRules(data, chains.length, devnet, production),
    ...chainRules(chains),
    ...methodRules(entriesOf(member(data, "methods"))),
    ...(devnet ? devnetRules(chains) : []),
    ...entriesOf(member(data, "profiles")).flatMap(([slug, profile]) =>
      profileRules(["profiles", slug], profile, chains, devnet),
    ),
    ...regionRules(data),
    ...cacheRules(data),
    ...hedgeRules(["hedge"], member(data, "hedge")),
    ...entriesOf(member(data, "profiles")).flatMap(([slug, profile]) =>
      hedgeRules(["profiles", slug, "hedge"], member(profile, "hedge")),
    ),
  ];
}

/** Methods whose answers could be kept, and profiles that there are. */
function cacheRules(data: unknown): readonly Breach[] {
  const methods = entriesOf(member(member(data, "cache"), "methods"));
  const profiles = entriesOf(member(data, "profiles"));
  const slugs = new Set(profiles.map(([slug]) => slug));
  const shares = profiles.flatMap(([slug, profile]) => {
    const shareWith = member(member(profile, "cache"), "share_with");
    return (Array.isArray(shareWith) ? shareWith : []).map((other: unknown, index) => ({
      path: ["profiles", slug, "cache", "share_with", index],
      isKnown: typeof other !== "string" || (slugs.has(other) && other !== slug),
    }));
  });
  return [
    ...methods
      .filter(([name]) => methodOf(name).cache === null)
      .map(([name]) =>
        breach(["cache", "methods", name], "must be a method whose answers can be kept"),
      ),
    ...shares
      .filter(({ isKnown }) => !isKnown)
      .map(({ path }) => breach(path, "must be the slug of another profile of this file")),
  ];
}

function hedgeRules(path: Breach["path"], hedge: unknown): readonly Breach[] {
  const floorMs = member(hedge, "floor_ms") ?? DEFAULT_HEDGE.floorMs;
  const ceilingMs = member(hedge, "ceiling_ms") ?? DEFAULT_HEDGE.ceilingMs;
  if (typeof floorMs !== "number" || typeof ceilingMs !== "number" || floorMs <= ceilingMs)
    return [];
  return [
    breach(path, `must have a floor_ms (${floorMs}) not above its ceiling_ms (${ceilingMs})`),
  ];
}

function serviceRules(
  data: unknown,
  chainCount: number,
  devnet: boolean,
  production: boolean,
): readonly Breach[] {
  const breaches: Breach[] = [];
  if (
    member(member(data, "hosted"), "enabled") === true &&
    !devnet &&
    member(member(data, "profiles"), "public") === undefined
  )
    breaches.push(
      breach(
        ["hosted", "enabled"],
        "must be false without profile `public`: it serves accounts that have nothing left to pay with",
      ),
    );
  if (member(member(data, "hosted"), "allow_private_providers") === true && production)
    breaches.push(
      breach(
        ["hosted", "allow_private_providers"],
        "must be false in production (NODE_ENV=production): with it, users reach into your network",
      ),
    );
  if (production && member(member(data, "server"), "public_url") === undefined)
    breaches.push(
      breach(
        ["server"],
        "must have `public_url` in production (NODE_ENV=production): it goes into URLs that " +
          "hold keys, and callers choose `Host`",
      ),
    );
  breaches.push(...spelledTwice(data));
  breaches.push(...clusterRules(data));
  if (devnet && production)
    breaches.push(
      breach(
        ["devnet"],
        "must be false in production (NODE_ENV=production): it starts local test nodes",
      ),
    );
  if (!devnet && chainCount === 0 && !isPresentButBroken(member(data, "chains")))
    breaches.push(
      breach(
        ["chains"],
        "must name at least one chain, or set `devnet: true` to try the service with local nodes",
      ),
    );
  return breaches;
}

/** What `hosted.flush_interval_ms` and `hosted.node_timeout_ms` are without a setting. */
const FLUSH_MS = 1_000;
const NODE_TIMEOUT_MS = 30_000;
/** Heartbeats within the time after which a node counts as dead. */
const HEARTBEATS = 5;

/** A node shows that it lives each time it writes what was used. */
function clusterRules(data: unknown): readonly Breach[] {
  if (member(member(data, "cluster"), "enabled") !== true) return [];
  const hosted = member(data, "hosted");
  const flushMs = member(hosted, "flush_interval_ms") ?? FLUSH_MS;
  const timeoutMs = member(hosted, "node_timeout_ms") ?? NODE_TIMEOUT_MS;
  if (typeof flushMs !== "number" || typeof timeoutMs !== "number") return [];
  if (timeoutMs >= HEARTBEATS * flushMs) return [];
  const isGiven = member(hosted, "node_timeout_ms") !== undefined;
  return [
    breach(
      ["hosted", isGiven ? "node_timeout_ms" : "flush_interval_ms"],
      "must leave room for 5 writes (flush_interval_ms) within the node timeout " +
        "(node_timeout_ms) where cluster.enabled is true: nodes would be taken for dead",
    ),
  ];
}

/** Settings that have two names, of which only one may be given. */
const TWO_NAMES: readonly (readonly [name: Breach["path"], other: Breach["path"]])[] = [
  [
    ["server", "operator_token"],
    ["hosted", "operator_token"],
  ],
  ...STRATEGIES.map(spellingsOf).flatMap((spellings) =>
    spellings.flatMap((name, at) =>
      spellings.slice(at + 1).map((other) => [factorPath(name), factorPath(other)] as const),
    ),
  ),
];

function factorPath(name: string): Breach["path"] {
  return ["hosted", "tariff", "factors", name];
}

function spelledTwice(data: unknown): readonly Breach[] {
  const given = (path: Breach["path"]): boolean =>
    path.reduce<unknown>((value, key) => member(value, String(key)), data) !== undefined;
  return TWO_NAMES.flatMap(([name, other]) =>
    given(name) && given(other)
      ? [breach(other, `must not stand beside \`${name.join(".")}\`: they are one setting`)]
      : [],
  );
}

type Entry = readonly [name: string, value: unknown];

/** A name or alias by which a URL can name a chain. */
interface ChainWord {
  readonly chain: string;
  readonly word: string;
  readonly path: Breach["path"];
  readonly at: Breach["at"];
}

/** Names, aliases and ids of chains: each must lead to one chain only. */
function chainRules(chains: readonly Entry[]): readonly Breach[] {
  const ids = new Map<number, string>();
  const breaches: Breach[] = [];
  for (const [name, chain] of chains) {
    const id = member(chain, "chain_id");
    if (typeof id !== "number") continue;
    const other = ids.get(id);
    if (other === undefined) ids.set(id, name);
    else
      breaches.push(
        breach(
          ["chains", name, "chain_id"],
          `must be unique: chain ${shown(other)} has the same id`,
        ),
      );
  }
  const chainOfWord = new Map<string, string>();
  for (const chainWord of chainWordsOf(chains)) {
    const message = chainWordFault(chainWord, chainOfWord, ids);
    if (message !== null) breaches.push({ path: chainWord.path, at: chainWord.at, message });
    else chainOfWord.set(chainWord.word.toLowerCase(), chainWord.chain);
  }
  return breaches;
}

/** All names, then all aliases: a name wins over another chain's alias. */
function chainWordsOf(chains: readonly Entry[]): readonly ChainWord[] {
  const names = chains.map(
    ([chain]): ChainWord => ({ chain, word: chain, path: ["chains", chain], at: "key" }),
  );
  const aliases = chains.flatMap(([chain, value]) =>
    listOf(member(value, "aliases")).flatMap((word, index): readonly ChainWord[] =>
      typeof word === "string"
        ? [{ chain, word, path: ["chains", chain, "aliases", index], at: "value" }]
        : [],
    ),
  );
  return [...names, ...aliases];
}

function chainWordFault(
  { chain, word }: ChainWord,
  chainOfWord: ReadonlyMap<string, string>,
  ids: ReadonlyMap<number, string>,
): string | null {
  if (RESERVED_CHAIN_NAMES.has(word.toLowerCase()))
    return (
      `must not be a word of the URL grammar: ${[...RESERVED_CHAIN_NAMES].join(", ")}; ` +
      `rename it, for example to \`${word.slice(0, 64)}-chain\``
    );
  const first = chainOfWord.get(word.toLowerCase());
  if (first === chain) return "is given twice for this chain, letter case ignored";
  if (first !== undefined)
    return `must be unique, letter case ignored: chain ${shown(first)} has the same name or alias`;
  const other = /^\d+$/.test(word) ? ids.get(Number(word)) : undefined;
  return other !== undefined && other !== chain
    ? `must not be the chain id of another chain: ${shown(other)} has it`
    : null;
}

function devnetRules(chains: readonly Entry[]): readonly Breach[] {
  const why =
    `is taken by the local chain that \`devnet: true\` adds (${DEVNET_CHAIN.chainName}, ` +
    `${DEVNET_CHAIN.chainId}); rename it or set \`devnet: false\``;
  return chains.flatMap(([name, chain]) => {
    const breaches: Breach[] = [];
    if (isDevnetName(name)) breaches.push({ path: ["chains", name], at: "key", message: why });
    if (member(chain, "chain_id") === DEVNET_CHAIN.chainId)
      breaches.push(breach(["chains", name, "chain_id"], why));
    for (const [index, alias] of listOf(member(chain, "aliases")).entries())
      if (typeof alias === "string" && isDevnetName(alias))
        breaches.push(breach(["chains", name, "aliases", index], why));
    return breaches;
  });
}

function isDevnetName(name: string): boolean {
  return (
    name.toLowerCase() === DEVNET_CHAIN.chainName ||
    (/^\d+$/.test(name) && Number(name) === DEVNET_CHAIN.chainId)
  );
}

/**
 * Rules of configured methods: a write cannot become a read, and a method answered by the service
 * itself cannot be routed.
 */
function methodRules(methods: readonly Entry[]): readonly Breach[] {
  const breaches: Breach[] = [];
  let added = 0;
  for (const [name, settings] of methods) {
    const { handling, replaySafe } = methodOf(name);
    const isAdded = mayBeConfigured(name);
    const kind = member(settings, "kind");
    if (handling !== "route" && !isAdded)
      breaches.push({
        path: ["methods", name],
        at: "key",
        message: "must not be a method that the service answers or refuses itself",
      });
    else if (!isAdded) {
      if (kind === "read" && !replaySafe)
        breaches.push(
          breach(
            ["methods", name, "kind"],
            "must not be `read`: it changes something, or has state at one node",
          ),
        );
    } else {
      if (kind === undefined)
        breaches.push(
          breach(["methods", name], "must have `kind`: it is not in the built-in table"),
        );
      if (++added === MAX_ADDED_METHODS + 1)
        breaches.push({
          path: ["methods", name],
          at: "key",
          message: `must be one of at most ${MAX_ADDED_METHODS} that are not in the built-in table`,
        });
    }
  }
  return breaches;
}

function profileRules(
  path: readonly string[],
  profile: unknown,
  chains: readonly Entry[],
  devnet: boolean,
): readonly Breach[] {
  const known = chains.map(([name]) => name);
  return entriesOf(member(profile, "chains")).flatMap(([name, set]) => {
    const at = [...path, "chains", name];
    const breaches = providerRules([...at, "providers"], listOf(member(set, "providers")));
    if (known.includes(name)) return breaches;
    const reason =
      devnet && name === DEVNET_CHAIN.chainName
        ? "must not be configured: `devnet: true` adds its providers itself"
        : `must be the name of a chain under \`chains\`: ` +
          `${known.slice(0, 50).map(shown).join(", ") || "none is configured"}`;
    return [{ path: at, at: "key", message: reason }, ...breaches];
  });
}

/** `region_preference: only` says whom to ask, so it needs the region of this node. */
function regionRules(data: unknown): readonly Breach[] {
  if ((member(member(data, "cluster"), "region") ?? "") !== "") return [];
  return entriesOf(member(data, "profiles")).flatMap(([slug, profile]) =>
    entriesOf(member(profile, "chains")).flatMap(([chain, set]) =>
      member(member(set, "selection"), "region_preference") === "only"
        ? [
            breach(
              ["profiles", slug, "chains", chain, "selection", "region_preference"],
              "must not be `only` without `cluster.region`: no provider could be asked",
            ),
          ]
        : [],
    ),
  );
}

function providerRules(path: Breach["path"], providers: readonly unknown[]): readonly Breach[] {
  const breaches: Breach[] = [];
  if (providers.length > 0 && providers.every((provider) => member(provider, "backup") === true))
    breaches.push(
      breach(
        [...path, 0, "backup"],
        "must be false for one provider of the chain at least: backups stand in for others",
      ),
    );
  const ids = new Map<unknown, number>();
  for (const [index, provider] of providers.entries()) {
    const id = member(provider, "id");
    const first = ids.get(id);
    if (first !== undefined)
      breaches.push(
        breach(
          [...path, index, "id"],
          `must be unique per chain and profile: providers[${first}] has the same id`,
        ),
      );
    else if (typeof id === "string") ids.set(id, index);
    if (member(provider, "batch") !== undefined && member(provider, "url") === undefined)
      breaches.push(
        breach(
          [...path, index, "batch"],
          "must not be set without `url`: batches go over HTTP, and sockets need none",
        ),
      );
  }
  const aliases = new Map<unknown, number>();
  for (const [index, provider] of providers.entries()) {
    const alias = member(provider, "alias");
    if (typeof alias === "string") {
      const other = aliases.get(alias) ?? ids.get(alias) ?? index;
      if (other !== index)
        breaches.push(
          breach(
            [...path, index, "alias"],
            `must be unique: providers[${other}] has it as id or alias`,
          ),
        );
      if (!aliases.has(alias)) aliases.set(alias, index);
    }
    if (isRecord(provider)) {
      breaches.push(...endpointRules([...path, index], provider));
      const hasPrice = typeof member(provider, "price") === "number";
      const limits = { limits: member(provider, "limits"), hasPrice };
      breaches.push(...limitRules([...path, index, "limits"], limits));
    }
  }
  return breaches;
}

/** Limits of a provider that contradict each other, or count nothing. */
function limitRules(
  path: Breach["path"],
  { limits, hasPrice }: { readonly limits: unknown; readonly hasPrice: boolean },
): readonly Breach[] {
  const breaches: Breach[] = [];
  const [daily, monthly] = [member(limits, "daily") ?? null, member(limits, "monthly") ?? null];
  if (typeof daily === "number" && typeof monthly === "number" && daily > monthly)
    breaches.push(
      breach([...path, "daily"], "must not be above `monthly`, which would end within a day"),
    );
  if (monthly === null && member(limits, "resets_on") !== undefined)
    breaches.push(
      breach([...path, "resets_on"], "must stand beside `monthly`: nothing else begins on a day"),
    );
  const least = [daily, monthly].filter((limit) => typeof limit === "number");
  const prices = entriesOf(member(limits, "credits"));
  if (least.length === 0 && !hasPrice && prices.length > 0)
    breaches.push(
      breach(
        [...path, "credits"],
        "must stand beside `daily`, `monthly` or `price`: nothing else counts credits",
      ),
    );
  for (const [method, price] of prices)
    if (least.some((limit) => typeof price === "number" && price > limit))
      breaches.push(
        breach(
          [...path, "credits", method],
          "must not be above `daily` or `monthly`: it could never be asked",
        ),
      );
  return breaches;
}

function endpointRules(path: Breach["path"], provider: unknown): readonly Breach[] {
  const breaches: Breach[] = [];
  const urls = ["url", "ws_url"].map((key) => ({ key, value: member(provider, key) }));
  if (urls.every(({ value }) => value === undefined))
    breaches.push(breach(path, "must have `url` (http, https), `ws_url` (ws, wss) or both"));
  const given = entriesOf(member(provider, "headers")).filter(
    ([name]) => name.toLowerCase() === "authorization",
  ).length;
  const found = new Set<string>();
  for (const { key, value } of urls) {
    const split = typeof value === "string" ? splitCredentials(value) : null;
    if (split === null || split.authorization === null) continue;
    found.add(split.authorization);
    if (given > 0)
      breaches.push(
        breach(
          [...path, key],
          "must not carry credentials when `headers` has `Authorization`; keep one of them",
        ),
      );
    else if (found.size > 1)
      breaches.push(
        breach(
          [...path, key],
          "must carry the same credentials as `url`; use two providers otherwise",
        ),
      );
  }
  const names = new Set<string>();
  for (const [name] of entriesOf(member(provider, "headers"))) {
    if (names.has(name.toLowerCase()))
      breaches.push({
        path: [...path, "headers", name],
        at: "key",
        message: "is given twice, letter case ignored",
      });
    names.add(name.toLowerCase());
  }
  for (const [index, rule] of listOf(
    member(member(provider, "capabilities"), "error_rules"),
  ).entries())
    if (
      isRecord(rule) &&
      (member(rule, "code") ?? null) === null &&
      !hasItems(member(rule, "message_contains"))
    )
      breaches.push(
        breach(
          [...path, "capabilities", "error_rules", index],
          "must have `code`, `message_contains` or both",
        ),
      );
  return breaches;
}

function breach(path: Breach["path"], message: string): Breach {
  return { path, at: "value", message };
}

/** A key as shown in a message; keys never come from variables. */
function shown(key: string): string {
  return `\`${key.slice(0, 64)}\``;
}

function isPresentButBroken(value: unknown): boolean {
  return value !== undefined && !isRecord(value);
}

function hasItems(value: unknown): boolean {
  return value !== undefined && (!Array.isArray(value) || value.length > 0);
}

function member(value: unknown, key: string): unknown {
  return isRecord(value) && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}

function entriesOf(value: unknown): readonly Entry[] {
  return isRecord(value) ? Object.entries(value) : [];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
