// Handlers of operations that read accounts and agents.

import type { z } from "zod";
import { apiFault } from "../../../core/faults/api-fault.ts";
import { accountById, accountViewOf } from "../../../hosted/accounts/accounts.ts";
import type * as shape from "../../contract/accounts.ts";
import type { Handlers } from "../../contract/contract.ts";
import type { HandlerParts } from "../parts.ts";
import { balanceView, instant, instantOrNull } from "./keys-view.ts";
import { profilesOfAccount } from "./profiles-view.ts";

type AccountHandlers = Handlers<"getCurrentAccount" | "getAccount" | "getCurrentAgent">;

/** Creates the handlers of accounts and agents. */
export function accountHandlers(parts: HandlerParts): AccountHandlers {
  return {
    async getCurrentAccount({ caller }) {
      const { accountId, profiles } = caller.agent;
      return { kind: "answer", status: 200, body: await accountView(parts, accountId, profiles) };
    },
    async getAccount({ params, caller }) {
      const { accountId, profiles } = caller.agent;
      if (params.id !== accountId)
        return apiFault("not_found", "no account that the token may see has this id", {
          nextAction: "GET /api/v1/accounts/current answers for the token's account",
        });
      return { kind: "answer", status: 200, body: await accountView(parts, accountId, profiles) };
    },
    getCurrentAgent({ caller }) {
      const { id, accountId, profiles, readOnly, expiresAtMs } = caller.agent;
      const restrictions = {
        profiles: profiles === null ? null : [...profiles],
        read_only: readOnly,
        expires_at: instantOrNull(expiresAtMs),
      };
      return { kind: "answer", status: 200, body: { id, account_id: accountId, restrictions } };
    },
  };
}

/** An existing account, limited to the profiles that the token may see. */
export async function accountView(
  parts: HandlerParts,
  id: string,
  restriction: readonly string[] | null,
): Promise<z.output<typeof shape.account>> {
  const { runtime, store, settings } = parts;
  const nowMs = runtime.wallMs();
  const account = await accountById(store, id, nowMs);
  if (account === null) throw new Error(`the account of a credential does not exist: ${id}`);
  const { access, fallbackUntilMs, allowanceCu, resetsAtMs } = accountViewOf(
    account,
    settings,
    nowMs,
  );
  const { balance_usd, balance_cu } = balanceView(account.balanceN, settings.tariff);
  return {
    id,
    balance_usd,
    balance_cu,
    managed_access: access,
    fallback: fallbackUntilMs === null ? null : { until: instant(fallbackUntilMs) },
    included_usage: {
      allowance_cu: allowanceCu,
      used_cu: account.usedCu,
      resets_at: instant(resetsAtMs),
    },
    keys: account.keys,
    profiles: (await profilesOfAccount(parts, id)).filter(
      (slug) => restriction === null || restriction.includes(slug),
    ),
    created_at: instant(account.createdAtMs),
  };
}
