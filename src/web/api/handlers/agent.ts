// Handlers of operations that need no account: chains, prices and anonymous keys.

import { usdText } from "../../../core/billing/price.ts";
import { apiFault } from "../../../core/faults/api-fault.ts";
import { STRATEGY_NAMES } from "../../../core/routing/strategy.ts";
import { type Method, UNKNOWN_METHOD } from "../../../core/rpc/method.ts";
import { createAnonymousKey, type NewKey } from "../../../hosted/keys/create.ts";
import { DEFAULT_PROFILE } from "../../../hosted/keys/key-profiles.ts";
import type { Handlers } from "../../contract/contract.ts";
import { pricesOf } from "../../discovery/prices.ts";
import type { HandlerParts } from "../parts.ts";
import { creationRefusal } from "./keys.ts";
import { orderedN } from "./purchases.ts";
import {
  balanceView,
  chainOfManaged,
  created,
  defaultChains,
  keyUrls,
  keyView,
  ok,
} from "./views.ts";

type AgentHandlers = Handlers<"listAgentChains" | "createAgentKey" | "getAgentKey" | "getPricing">;

/** Creates the handlers. */
export function agentHandlers(parts: HandlerParts): AgentHandlers {
  const { settings, methods } = parts;
  return {
    listAgentChains() {
      const strategies = [...STRATEGY_NAMES];
      return ok(
        defaultChains(parts).map((chain) => ({
          name: chain.chainName,
          chain_id: chain.chainId,
          strategies,
        })),
      );
    },
    createAgentKey: keyCreation(parts),
    getAgentKey: ({ caller }) => ok(keyView(caller.key, settings.tariff)),
    getPricing() {
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
}

function keyCreation(parts: HandlerParts): AgentHandlers["createAgentKey"] {
  const { store, runtime, settings, payments } = parts;

  function view(
    { secret, prefix }: Pick<NewKey, "secret" | "prefix">,
    balanceN: bigint,
    baseUrl: string,
  ) {
    const endpoint = keyUrls(baseUrl, secret, chainOfManaged(parts, DEFAULT_PROFILE)).rpc_url;
    return {
      key: secret,
      endpoint,
      profile: DEFAULT_PROFILE,
      key_prefix: prefix,
      ...balanceView(balanceN, settings.tariff),
    };
  }

  return {
    instead: "leave initial_fund_usd out for the free grant",
    free: {
      includes: ({ initial_fund_usd }) => initial_fund_usd === undefined,
      async serve({ body, address, baseUrl, isLocal }) {
        const refusal = await creationRefusal(parts, { address, isLocal });
        if (refusal !== null) return refusal;
        const grantN = BigInt(settings.startingGrantCu) * BigInt(settings.tariff.nanoPerCu);
        const made = await createAnonymousKey(
          store,
          { name: body.name ?? "", grantN },
          runtime.wallMs(),
        );
        return created(view(made, grantN, baseUrl));
      },
    },
    order({ body }) {
      const amountN = orderedN(payments, "initial_fund_usd", body.initial_fund_usd ?? "");
      if (typeof amountN !== "bigint") return amountN;
      return {
        purpose: { kind: "create_key", name: body.name ?? "" },
        amountN,
        description: `A new key with ${usdText(amountN)} USD`,
      };
    },
    answer({ fulfilment, purchase }, { baseUrl }) {
      if (fulfilment.kind !== "create_key")
        throw new Error(`purchase ${purchase.id} bought something else than was asked for`);
      if (fulfilment.secret !== "")
        return created({
          ...view(fulfilment, fulfilment.balanceN, baseUrl),
          purchase_id: purchase.id,
        });
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
  };
}
