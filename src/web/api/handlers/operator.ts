// What the operator of the instance may ask: what was used, and whether the books agree.

import { nanoOf } from "../../../core/billing/payment.ts";
import { usdText } from "../../../core/billing/price.ts";
import { apiFault } from "../../../core/faults/api-fault.ts";
import { type Used, usageReport } from "../../../hosted/accounts/usage.ts";
import type { AuditFindings } from "../../../hosted/audit/audit.ts";
import type { CONTRACT } from "../../contract/contract.ts";
import type { ApiHandlers } from "../../contract/operation.ts";
import type { HandlerParts } from "../parts.ts";
import { instant } from "./keys-view.ts";

type OperatorHandlers = Pick<ApiHandlers<typeof CONTRACT>, "getOperatorUsage" | "getOperatorAudit">;

const MAX_DIFFERENCES = 100;
/** Longest that one request waits for an audit, and when to ask again. */
const WAIT_MS = 20_000;
const RETRY_MS = 5_000;
/** How long an audit is kept that took longer than its requests waited. */
const KEPT_MS = 60_000;

/** Handlers of the operator's endpoints. */
export function operatorHandlers({ runtime, store, audit }: HandlerParts): OperatorHandlers {
  let running: Promise<Finished> | null = null;
  /** The last one that nobody waited for to its end; whoever comes soon after gets it. */
  let finished: Finished | null = null;

  async function run(): Promise<Finished> {
    try {
      finished = { findings: await audit(), atMs: runtime.now(), wallMs: runtime.wallMs() };
      return finished;
    } finally {
      running = null;
    }
  }

  /**
   * One audit at a time: whoever asks meanwhile gets the same one. Null = it takes longer than a
   * request may wait, and goes on.
   */
  function findings(): Promise<Finished | null> {
    if (finished !== null && runtime.now() - finished.atMs < KEPT_MS)
      return Promise.resolve(finished);
    running ??= run();
    const audited = running;
    return new Promise((resolve, reject) => {
      let waits = true;
      const cancel = runtime.after(WAIT_MS, () => {
        waits = false;
        resolve(null);
      });
      audited
        .then((it) => {
          // Told to who waited, it is not kept: the next one is told what is so then.
          if (waits) finished = null;
          resolve(it);
        }, reject)
        .finally(cancel);
    });
  }

  return {
    async getOperatorUsage({ query }) {
      const report = await usageReport(store, {
        hours: query.hours,
        accountId: query.account ?? null,
        nowMs: runtime.wallMs(),
      });
      const body = {
        from: instant(report.fromMs),
        to: instant(report.toMs),
        totals: usedView(report.byHour.reduce(sum, NOTHING)),
        by_method: report.byMethod.map((it) => ({ method: it.method, ...usedView(it) })),
        by_key: report.byKey.map((it) => ({
          key_id: it.keyId,
          account_id: it.accountId,
          name: it.name,
          key_prefix: it.prefix,
          ...usedView(it),
        })),
        by_hour: report.byHour.map((it) => ({ hour: instant(it.hourMs), ...usedView(it) })),
      };
      return { kind: "answer", status: 200, body };
    },
    async getOperatorAudit() {
      const it = await findings();
      if (it === null)
        return apiFault("unavailable", "the audit is still reading the payment chains", {
          retryAfterMs: RETRY_MS,
          nextAction: "ask again",
        });
      const differences = differencesOf(it.findings);
      const unread = it.findings.unread.map(({ chainId, reason }) => ({
        chain_id: chainId,
        reason,
      }));
      const ok = differences.length === 0 && unread.length === 0;
      const body = {
        ok,
        checked_at: instant(it.wallMs),
        differences: differences.slice(0, MAX_DIFFERENCES),
        unread_chains: unread,
      };
      return { kind: "answer", status: 200, body };
    },
  };
}

/** An audit that has come to its end. */
interface Finished {
  readonly findings: AuditFindings;
  readonly atMs: number;
  readonly wallMs: number;
}

function differencesOf({ books, money }: AuditFindings) {
  return [
    ...books.map((it) => ({
      check: it.check,
      id: it.id,
      is_usd: usdText(it.isN),
      should_be_usd: usdText(it.shouldN),
    })),
    ...money.map((it) => ({
      check: "chain" as const,
      id: it.txHash,
      is_usd: usdText(nanoOf(it.recordedUnits)),
      should_be_usd: usdText(nanoOf(it.movedUnits)),
    })),
  ];
}

const NOTHING: Used = { calls: 0, cu: 0, chargeN: 0n };

function sum(a: Used, b: Used): Used {
  return { calls: a.calls + b.calls, cu: a.cu + b.cu, chargeN: a.chargeN + b.chargeN };
}

function usedView({ calls, cu, chargeN }: Used) {
  return { calls, cu, usd: usdText(chargeN) };
}
