// Handler of usage for the holder of a key or of a management token.
import { usdText } from "../../../core/billing/price.ts";
import { accountUsage } from "../../../hosted/accounts/account-usage.ts";
import { NOTHING_USED, sumOf, type Used } from "../../../hosted/accounts/usage.ts";
import type { Handlers } from "../../contract/contract.ts";
import type { HandlerParts } from "../parts.ts";
import { instant } from "./keys-view.ts";

const DAY_CHARS = "2026-11-23".length;

/** Creates the handler. */
export function usageHandlers({ store, runtime }: HandlerParts): Handlers<"getUsage"> {
  return {
    async getUsage({ query, caller }) {
      const nowMs = runtime.wallMs();
      const scope =
        caller.kind === "key"
          ? ({ kind: "key", keyId: caller.key.id } as const)
          : ({ kind: "account", scope: caller.agent } as const);
      const usage = await accountUsage(store, scope, { days: query.days, nowMs });
      const body = {
        from: instant(usage.fromMs),
        to: instant(nowMs),
        totals: usedView(usage.byDay.reduce(sumOf, NOTHING_USED)),
        by_day: usage.byDay.map((row) => ({
          day: instant(row.dayMs).slice(0, DAY_CHARS),
          ...usedView(row),
        })),
        by_method: usage.byMethod.map((row) => ({ method: row.method, ...usedView(row) })),
        by_key: usage.byKey.map((row) => ({
          key_id: row.keyId,
          name: row.name,
          key_prefix: row.prefix,
          revoked: row.isRevoked,
          ...usedView(row),
        })),
      };
      return { kind: "answer", status: 200, body };
    },
  };
}

/** An amount of usage as answers show it. */
export function usedView(used: Used) {
  return { calls: used.calls, cu: used.cu, usd: usdText(used.chargeN), ...cachedView(used) };
}

/** The part of an amount of usage that was answered from the cache. */
export function cachedView({ cachedCalls, cachedCu }: Pick<Used, "cachedCalls" | "cachedCu">) {
  return { cached_calls: cachedCalls, cached_cu: cachedCu };
}
