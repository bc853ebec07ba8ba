// Handlers of operations that read accounts and agents.
import type { z } from "zod";
import { apiFault } from "../../../core/faults/api-fault.ts";
import { accountById, accountViewOf } from "../../../hosted/accounts/accounts.ts";
import type { Restrictions } from "../../../hosted/accounts/connections.ts";
import { accountUsage } from "../../../hosted/accounts/usage.ts";
import { visibleKeys } from "../../../hosted/keys/keys.ts";
import { ANY_CALL } from "../../../observe/feed/call-filter.ts";
import type { ACCOUNT_OPERATIONS, account } from "../../contract/accounts.ts";
import type { HandlerParts, StoreHandlers } from "../parts.ts";
import { silent } from "./live.ts";
import { profilesOfAccount } from "./profiles-view.ts";
import { balanceView, instant, instantOrNull, ok } from "./views.ts";

/** The handlers of accounts and agents. */
export const ACCOUNT_HANDLERS: StoreHandlers<keyof typeof ACCOUNT_OPERATIONS> = {
  async getCurrentAccount({ caller }, parts) {
    const { accountId, profiles } = caller.agent;
    return ok(await accountView(parts, accountId, profiles));
  },
  async getAccount({ params, caller }, parts) {
    const { accountId, profiles } = caller.agent;
    if (params.id !== accountId)
      return apiFault("not_found", "no account that the token may see has this id", {
        nextAction: "GET /api/v1/accounts/current answers for the token's account",
      });
    return ok(await accountView(parts, accountId, profiles));
  },
  getCurrentAgent({ caller }) {
    const { id, accountId } = caller.agent;
    return ok({ id, account_id: accountId, restrictions: restrictionsView(caller.agent) });
  },
  async listOwnCalls({ query: { key = null, limit, ...filter }, caller }, { store, ownCalls }) {
    const keys = await visibleKeys(store.db, caller.agent, { id: key, limit: MAX_LOGGED_KEYS });
    const calls = await ownCalls({ keys, filter: { ...ANY_CALL, ...filter }, limit });
    return calls === null ? silent() : ok({ calls: calls.slice(0, limit) });
  },
  async getUsage({ query, caller }, { store, runtime }) {
    const nowMs = runtime.wallMs();
    const scope =
      caller.kind === "key"
        ? ({ kind: "key", keyId: caller.key.id } as const)
        : ({ kind: "account", scope: caller.agent } as const);
    const usage = await accountUsage(store, scope, { days: query.days, nowMs });
    const { by_time, by_key, ...sums } = usage;
    return ok({
      ...sums,
      to: instant(nowMs),
      by_day: by_time.map(({ at, ...used }) => ({ day: at.slice(0, DAY_CHARS), ...used })),
      by_key: by_key.map(({ account_id: _, ...key }) => key),
    });
  },
};

/** The newest keys of an account, whose calls are listed together. */
const MAX_LOGGED_KEYS = 1_000;
const DAY_CHARS = "2026-11-23".length;

/** What a management token may do. */
export function restrictionsView({ profiles, readOnly, expiresAtMs }: Restrictions) {
  return {
    profiles: profiles === null ? null : [...profiles],
    read_only: readOnly,
    expires_at: instantOrNull(expiresAtMs),
  };
}

/** An existing account, limited to the profiles that the token may see. */
export async function accountView(
  parts: HandlerParts,
  id: string,
  restriction: readonly string[] | null,
): Promise<z.output<typeof account>> {
  const { runtime, store, settings } = parts;
  const nowMs = runtime.wallMs();
  const found = await accountById(store, id, nowMs);
  if (found === null) throw new Error(`the account of a credential does not exist: ${id}`);
  const { access, fallbackUntilMs, allowanceCu, resetsAtMs } = accountViewOf(
    found,
    settings,
    nowMs,
  );
  const { balance_usd, balance_cu } = balanceView(found.balanceN, settings.tariff);
  return {
    id,
    balance_usd,
    balance_cu,
    managed_access: access,
    fallback: fallbackUntilMs === null ? null : { until: instant(fallbackUntilMs) },
    included_usage: {
      allowance_cu: allowanceCu,
      used_cu: found.usedCu,
      resets_at: instant(resetsAtMs),
    },
    keys: found.keys,
    profiles: (await profilesOfAccount(parts, id)).filter(
      (slug) => restriction === null || restriction.includes(slug),
    ),
    created_at: instant(found.createdAtMs),
  };
}
