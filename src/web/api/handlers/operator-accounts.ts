// Handlers with which the operator grants accounts Custom access, and credit for money received
// outside the service.
import { parseUsd, usdText } from "../../../core/billing/price.ts";
import { accountById } from "../../../hosted/accounts/accounts.ts";
import { creditAccountOnce } from "../../../hosted/accounts/operator-credit.ts";
import { grantCustomAccess } from "../../../hosted/profiles/custom-access.ts";
import type { Handlers } from "../../contract/contract.ts";
import type { HandlerParts } from "../parts.ts";
import { instant } from "./keys-view.ts";

type GiftHandlers = Handlers<"grantCustomAccess" | "creditAccount">;

/** Creates the handlers. */
export function operatorAccountHandlers({ runtime, store, changes }: HandlerParts): GiftHandlers {
  let grants = 0;
  return {
    async grantCustomAccess({ params, body }) {
      const nowMs = runtime.wallMs();
      const unique = `${Math.floor(nowMs).toString(36)}-${(++grants).toString(36)}-${Math.floor(runtime.random() * 36 ** 6).toString(36)}`;
      const source =
        body.reference === undefined ? `operator-once:${unique}` : `operator:${body.reference}`;
      const given = await grantCustomAccess(
        store,
        { accountId: params.id, days: body.days, source },
        nowMs,
      );
      if (given.kind === "api_fault") return given;
      await changes.account(params.id);
      return {
        kind: "answer",
        status: 200,
        body: { account_id: params.id, from: instant(given.fromMs), until: instant(given.untilMs) },
      };
    },
    async creditAccount({ params, body }) {
      const nowMs = runtime.wallMs();
      const posted = await creditAccountOnce(store, {
        accountId: params.id,
        idemKey: `operator:${body.reference}`,
        amountN: parseUsd(body.usd) ?? 0n,
        atMs: nowMs,
      });
      if (typeof posted !== "boolean") return posted;
      // Also for a repeated request: the first attempt may have failed before this step.
      await changes.account(params.id);
      const account = await accountById(store, params.id, nowMs);
      return {
        kind: "answer",
        status: 200,
        body: {
          account_id: params.id,
          credited: posted,
          balance_usd: usdText(account?.balanceN ?? 0n),
        },
      };
    },
  };
}
