// What the operator of the instance may ask: what was used, and whether the books agree.
import { usdText } from "../../core/price.ts";
import { type Used, usageReport } from "../../hosted/accounts-usage.ts";
import type { Difference } from "../../hosted/audit.ts";
import type { HandlerParts } from "../api/parts.ts";
import type { CONTRACT } from "../contract.ts";
import type { ApiHandlers } from "../contract-types.ts";
import { instant } from "./keys-view.ts";

type OperatorHandlers = Pick<ApiHandlers<typeof CONTRACT>, "getOperatorUsage" | "getOperatorAudit">;

const MAX_DIFFERENCES = 100;

/** Handlers of the operator's endpoints. */
export function operatorHandlers({ world, store, audit }: HandlerParts): OperatorHandlers {
  let running: Promise<readonly Difference[]> | null = null;

  /** One audit at a time: whoever asks meanwhile gets the same one. */
  function findings(): Promise<readonly Difference[]> {
    running ??= audit().finally(() => {
      running = null;
    });
    return running;
  }

  return {
    async getOperatorUsage({ query }) {
      const report = await usageReport(store, { hours: query.hours, accountId: query.account ?? null, nowMs: world.wallMs() });
      const body = {
        from: instant(report.fromMs),
        to: instant(report.toMs),
        totals: usedView(report.byHour.reduce(sum, NOTHING)),
        by_method: report.byMethod.map((it) => ({ method: it.method, ...usedView(it) })),
        by_key: report.byKey.map((it) => ({ key_id: it.keyId, account_id: it.accountId, name: it.name, key_prefix: it.prefix, ...usedView(it) })),
        by_hour: report.byHour.map((it) => ({ hour: instant(it.hourMs), ...usedView(it) })),
      };
      return { kind: "answer", status: 200, body };
    },
    async getOperatorAudit() {
      const found = await findings();
      const differences = found
        .slice(0, MAX_DIFFERENCES)
        .map((it) => ({ check: it.check, id: it.id, is_usd: usdText(it.isN), should_be_usd: usdText(it.shouldN) }));
      return { kind: "answer", status: 200, body: { ok: found.length === 0, checked_at: instant(world.wallMs()), differences } };
    },
  };
}

const NOTHING: Used = { calls: 0, cu: 0, chargeN: 0n };

function sum(a: Used, b: Used): Used {
  return { calls: a.calls + b.calls, cu: a.cu + b.cu, chargeN: a.chargeN + b.chargeN };
}

function usedView({ calls, cu, chargeN }: Used) {
  return { calls, cu, usd: usdText(chargeN) };
}
