// How far back a provider has what calls read, with what its refusals taught and what it does not
// serve at all: for pages, and for what the service reports of itself. Plans read the parts.
import { byResource, type KnownHistory, NOTHING } from "../../core/provider/history.ts";
import type { Provider, ProviderSet } from "../../core/provider/profile.ts";
import { methodOf, type Resource } from "../../core/rpc/method.ts";
import type { ProviderState } from "./provider-state.ts";

/** What is known now of a provider; a provider without a state is not served any more. */
export function historyNow(
  state: ProviderState | null,
  { archivalThreshold }: Pick<ProviderSet, "archivalThreshold">,
  nowMs: number,
): KnownHistory {
  return byResource((resource) => {
    if (state === null) return null;
    const { provider, history } = state;
    if (!isServed(provider, resource)) return { ...NOTHING, source: "declared" };
    const bound = history[resource];
    const left = oldestLeft(state, resource, nowMs);
    if (left === null) return bound;
    const { oldest = 0, window = Number.POSITIVE_INFINITY } = bound ?? {};
    return left === Number.POSITIVE_INFINITY
      ? { oldest, window: Math.min(window, archivalThreshold), source: "learned" }
      : { oldest: Math.max(oldest, left), window, source: "learned" };
  });
}

/** What the refusals over both transports left; null = there was none. */
function oldestLeft({ http, ws }: ProviderState, resource: Resource, nowMs: number): number | null {
  const known = [http, ws].flatMap((health) => health?.facts?.oldestLeft(resource, nowMs) ?? []);
  return known.length === 0 ? null : Math.max(...known);
}

/** A method that needs little but the resource. */
const USUAL_METHODS: Readonly<Record<Resource, string>> = {
  state: "eth_getBalance",
  transactions: "eth_getTransactionByHash",
  receipts: "eth_getTransactionReceipt",
  logs: "eth_getLogs",
  blocks: "eth_getBlockByNumber",
  proofs: "eth_getProof",
  traces: "debug_traceTransaction",
};

function isServed(provider: Provider, resource: Resource): boolean {
  const name = USUAL_METHODS[resource];
  const { unsupportedMethods, unsupportedCategories } = provider;
  return !unsupportedMethods.has(name) && !unsupportedCategories.has(methodOf(name).category);
}
