// Which methods a provider is asked for: those that its kind or the operator lists, and nothing
// else, whatever becomes of a call. Made once per provider; a provider for everything has no scope.

/** What a provider is for. */
export const PROVIDER_KINDS = ["node", "bundler", "relay", "logs"] as const;

/** One of them. */
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** What a provider with a purpose of its own is asked for. */
export interface MethodScope {
  /** Null = every method. */
  readonly only: ReadonlySet<string> | null;
  /** What the profile sends to its relays alone, unless a call pins it; null = nothing. */
  readonly never: ReadonlySet<string> | null;
  /** Only calls that pin it reach it. */
  readonly pinnedOnly: boolean;
  /** Which of its calls it is given before others of the same health. */
  readonly first: "all" | "logs" | "none";
}

/** Transactions and bundles as they are handed in, and the undoing of those. */
const RELAYED: ReadonlySet<string> = new Set(
  (
    "eth_sendRawTransaction eth_sendRawTransactionSync realtime_sendRawTransaction " +
    "eth_sendRawTransactionConditional eth_sendPrivateTransaction eth_sendPrivateRawTransaction " +
    "eth_sendBundle eth_sendEndOfBlockBundle eth_sendMegabundle mev_sendBundle " +
    "eth_cancelPrivateTransaction eth_cancelBundle"
  ).split(" "),
);

/** What the kinds are asked for where nothing else is listed; null = everything. */
const METHODS_OF_KIND: Readonly<Record<ProviderKind, ReadonlySet<string> | null>> = {
  node: null,
  bundler: new Set(
    (
      "eth_sendUserOperation eth_estimateUserOperationGas eth_getUserOperationByHash " +
      "eth_getUserOperationReceipt eth_supportedEntryPoints"
    ).split(" "),
  ),
  relay: RELAYED,
  logs: new Set(
    (
      "eth_getLogs eth_blockNumber eth_getBlockByNumber eth_getBlockByHash " +
      "eth_getBlockReceipts"
    ).split(" "),
  ),
};

/** How a profile sees a provider. */
export interface ScopeSettings {
  readonly kind: ProviderKind;
  /** The methods that are listed; null = those of its kind. */
  readonly methods: readonly string[] | null;
  /** The profile hands transactions to its relays alone. */
  readonly usesRelays: boolean;
}

/** What a provider is asked for; null = everything. */
export function scopeOf({ kind, methods, usesRelays }: ScopeSettings): MethodScope | null {
  const only = methods === null ? METHODS_OF_KIND[kind] : new Set(methods);
  const never = usesRelays && kind !== "relay" ? RELAYED : null;
  if (only === null && never === null) return null;
  const pinnedOnly = kind === "relay" && !usesRelays;
  return { only, never, pinnedOnly, first: FIRST.get(kind) ?? "none" };
}

const FIRST: ReadonlyMap<ProviderKind, MethodScope["first"]> = new Map([
  ["bundler", "all"],
  ["logs", "logs"],
]);

/** Whether a provider with this scope is asked for a method; every one is for its chain id. */
function isInScope(
  { only, never, pinnedOnly }: MethodScope,
  methodName: string,
  isPinned: boolean,
): boolean {
  if (!isPinned && (pinnedOnly || never?.has(methodName) === true)) return false;
  return only === null || only.has(methodName) || methodName === "eth_chainId";
}

/** A provider, as far as its scope; absent or null = it is asked for everything. */
interface Scoped {
  readonly scope?: MethodScope | null;
}

/** Whether a provider is asked for a method. */
export function isAskedFor(
  { scope = null }: Scoped,
  methodName: string,
  isPinned = false,
): boolean {
  return scope === null || isInScope(scope, methodName, isPinned);
}

/** The providers that make a chain usable: those for every method, else all. */
export function generalOf<Each>(
  all: readonly Each[],
  providerOf: (each: Each) => Scoped,
): readonly Each[] {
  const general = all.filter((each) => (providerOf(each).scope?.only ?? null) === null);
  return general.length === 0 ? all : general;
}
