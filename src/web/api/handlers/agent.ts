// Handlers of operations that need no account: chains, prices and anonymous keys.

import { usdText } from "../../../core/billing/price.ts";
import { apiFault } from "../../../core/faults/api-fault.ts";
import { STRATEGY_NAMES } from "../../../core/routing/strategy.ts";
import { type Method, UNKNOWN_METHOD } from "../../../core/rpc/method.ts";
import { createAnonymousKey, type NewKey } from "../../../hosted/keys/create.ts";
import { DEFAULT_PROFILE } from "../../../hosted/keys/key-profiles.ts";
import type { AGENT_OPERATIONS } from "../../contract/agent.ts";
import { pricesOf } from "../../discovery/prices.ts";
import type { HandlerParts, StoreHandlers } from "../parts.ts";
import { creationRefusal } from "./keys.ts";
import { orderedN, otherThanAsked } from "./purchases.ts";
import {
  balanceView,
  chainOfManaged,
  created,
  keyUrls,
  keyView,
  managedChains,
  ok,
} from "./views.ts";

/** The handlers. */
export const AGENT_HANDLERS: StoreHandlers<keyof typeof AGENT_OPERATIONS> = {
  listAgentChains(_, parts) {
    const strategies = [...STRATEGY_NAMES];
    return ok(
      managedChains(parts, DEFAULT_PROFILE).map((chain) => ({
        name: chain.chainName,
        chain_id: chain.chainId,
        strategies,
      })),
    );
  },
  createAgentKey: {
    instead: "leave initial_fund_usd out for the free grant",
    free: {
      includes: ({ initial_fund_usd }) => initial_fund_usd === undefined,
      async serve({ body, address, baseUrl, isLocal }, parts) {
        const { store, runtime, settings } = parts;
        const refusal = await creationRefusal(parts, { address, isLocal });
        if (refusal !== null) return refusal;
        const grantN = BigInt(settings.startingGrantCu) * BigInt(settings.tariff.nanoPerCu);
        const wanted = { name: body.name ?? "", grantN };
        const made = await createAnonymousKey(store, wanted, runtime.wallMs());
        return created(keyOf(parts, { ...made, balanceN: grantN }, baseUrl));
      },
    },
    order({ body }, { payments }) {
      const amountN = orderedN(payments, "initial_fund_usd", body.initial_fund_usd ?? "");
      if (typeof amountN !== "bigint") return amountN;
      return {
        purpose: { kind: "create_key", name: body.name ?? "" },
        amountN,
        description: `A new key with ${usdText(amountN)} USD`,
      };
    },
    answer(paid, { baseUrl }, parts) {
      const { fulfilment, purchase } = paid;
      if (fulfilment.kind !== "create_key") throw otherThanAsked(paid);
      if (fulfilment.secret !== "")
        return created({ ...keyOf(parts, fulfilment, baseUrl), purchase_id: purchase.id });
      return apiFault(
        "payment_conflict",
        `this payment bought the key ${fulfilment.prefix}… more than 7 days ago, and it is not ` +
          "shown any more",
        {
          nextAction:
            "use the key as it was shown then; for another one, repeat without payment for a " +
            "fresh challenge",
        },
      );
    },
  },
  getAgentKey: ({ caller }, { settings }) => ok(keyView(caller.key, settings.tariff)),
  getPricing(_, { settings, methods }) {
    const table = methods();
    const prices = pricesOf(settings.tariff, table);
    const priceOf = (method: Method) => {
      const by_strategy = prices.of(method);
      const { cu } = by_strategy["load-balanced"];
      return { method: method.name, category: method.category, cu, by_strategy };
    };
    const { notification } = prices;
    return ok({
      cu_per_usd: prices.cuPerUsd,
      starting_grant_cu: settings.startingGrantCu,
      free_cu_per_month: settings.freeCuPerMonth,
      cache_price: prices.cacheShare,
      ranges: prices.ranges,
      methods: table.rows
        .filter((method) => method !== UNKNOWN_METHOD && method.handling !== "blocked")
        .map(priceOf),
      default: priceOf(UNKNOWN_METHOD),
      notification: { cu: notification["load-balanced"].cu, by_strategy: notification },
    });
  },
};

interface MadeKey extends Pick<NewKey, "secret" | "prefix"> {
  readonly balanceN: bigint;
}

function keyOf(parts: HandlerParts, { secret, prefix, balanceN }: MadeKey, baseUrl: string) {
  return {
    key: secret,
    endpoint: keyUrls(baseUrl, secret, chainOfManaged(parts, DEFAULT_PROFILE)).rpc_url,
    profile: DEFAULT_PROFILE,
    key_prefix: prefix,
    ...balanceView(balanceN, parts.settings.tariff),
  };
}
