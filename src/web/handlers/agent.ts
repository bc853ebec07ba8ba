// The endpoints for agents without an account: chains, prices, and anonymous keys.
import { apiFault } from "../../core/api-fault.ts";
import type { Strategy } from "../../core/attempt.ts";
import { METHODS, type Method, UNKNOWN_METHOD } from "../../core/method.ts";
import { cuOf, notificationCuOf, type Tariff, usdText } from "../../core/price.ts";
import { createAnonymousKey } from "../../hosted/keys-create.ts";
import { DEFAULT_PROFILE } from "../../hosted/keys-profiles.ts";
import type { HandlerParts } from "../api/parts.ts";
import type { CONTRACT } from "../contract.ts";
import type { ApiHandlers } from "../contract-types.ts";
import { creationRefusal } from "./keys.ts";
import { balanceView, keyUrls, keyView } from "./keys-view.ts";

type AgentHandlers = Pick<ApiHandlers<typeof CONTRACT>, "listAgentChains" | "createAgentKey" | "getAgentKey" | "fundAgentKey" | "getPricing">;

const PAYMENT_RETRY_MS = 3_600_000;
const NANO_PER_USD = 1_000_000_000;

/** Handlers of the endpoints for agents. */
export function agentHandlers(parts: HandlerParts): AgentHandlers {
  const { store, world, settings } = parts;
  const noPayments = (nextAction: string) => apiFault("unavailable", "payments are not open yet", { nextAction, retryAfterMs: PAYMENT_RETRY_MS });
  return {
    listAgentChains() {
      const strategies = Object.keys(settings.tariff.factors);
      return { kind: "answer", status: 200, body: parts.chains.map((it) => ({ name: it.chainName, chain_id: it.chainId, strategies })) };
    },
    async createAgentKey({ body, address, baseUrl }) {
      if (body.initial_fund_usd !== undefined) return noPayments("leave initial_fund_usd out for the free grant");
      const refusal = creationRefusal(parts, address);
      if (refusal !== null) return refusal;
      const grantN = BigInt(settings.startingGrantCu) * BigInt(settings.tariff.nanoPerCu);
      const made = await createAnonymousKey(store, { name: body.name ?? "", grantN }, world.wallMs());
      const endpoint = keyUrls(baseUrl, made.secret, parts.chains).rpc_url;
      const view = { key: made.secret, endpoint, profile: DEFAULT_PROFILE, key_prefix: made.prefix, ...balanceView(grantN, settings.tariff) };
      return { kind: "answer", status: 201, body: view };
    },
    getAgentKey: ({ caller }) => ({ kind: "answer", status: 200, body: keyView(caller.key, settings.tariff) }),
    fundAgentKey: () => noPayments("create another key with POST /api/v1/agent/keys, or try again later"),
    getPricing: () => ({
      kind: "answer",
      status: 200,
      body: {
        cu_per_usd: NANO_PER_USD / settings.tariff.nanoPerCu,
        starting_grant_cu: settings.startingGrantCu,
        free_cu_per_month: settings.freeCuPerMonth,
        methods: METHODS.filter((it) => it !== UNKNOWN_METHOD && it.handling !== "blocked").map((it) => priceOf(settings.tariff, it)),
        default: priceOf(settings.tariff, UNKNOWN_METHOD),
        notification: {
          cu: notificationCuOf(settings.tariff, "load-balanced"),
          by_strategy: byStrategy(settings.tariff, (it) => notificationCuOf(settings.tariff, it)),
        },
      },
    }),
  };
}

function priceOf(tariff: Tariff, method: Method) {
  const by_strategy = byStrategy(tariff, (strategy) => cuOf(tariff, method, strategy));
  return { method: method.name, category: method.category, cu: by_strategy.load_balanced.cu, by_strategy };
}

function byStrategy(tariff: Tariff, cuOfStrategy: (strategy: Strategy) => number) {
  const cost = (strategy: Strategy) => {
    const cu = cuOfStrategy(strategy);
    return { cu, usd: usdText(BigInt(cu) * BigInt(tariff.nanoPerCu)) };
  };
  return { load_balanced: cost("load-balanced"), latency_weighted: cost("latency-weighted"), fastest: cost("fastest"), priority: cost("priority") };
}
