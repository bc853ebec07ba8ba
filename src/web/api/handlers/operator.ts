// Handlers of what the operator of a hosted service reads of accounts, usage and money, and gives
// to accounts; and the audit of the books.
import { nanoOf } from "../../../core/billing/payment.ts";
import { parseUsd, usdText } from "../../../core/billing/price.ts";
import { apiFault } from "../../../core/faults/api-fault.ts";
import { accountById, creditAccountOnce } from "../../../hosted/accounts/accounts.ts";
import {
  daysBetween,
  type HourRange,
  lastDays,
  lastHours,
  MAX_RANGE_DAYS,
  rangeView,
} from "../../../hosted/accounts/hour-range.ts";
import { usageReport } from "../../../hosted/accounts/usage.ts";
import type { AuditFindings } from "../../../hosted/audit/audit.ts";
import { type AuditResult, lastAudit, parseProblems } from "../../../hosted/audit/audit-results.ts";
import {
  listAccountKeys,
  listAccounts,
  parseAccountCursor,
} from "../../../hosted/operator/account-list.ts";
import { revenueByDay } from "../../../hosted/operator/revenue.ts";
import { chainHours } from "../../../hosted/operator/stored-history.ts";
import { grantCustomAccess } from "../../../hosted/profiles/custom-access.ts";
import { CALL_ROW, parseHourCounts } from "../../../observe/history/history-row.ts";
import type { WalletReport } from "../../../payments/payments.ts";
import { allPurchases } from "../../../payments/purchase/all-purchases.ts";
import { newId } from "../../../secrets/secret.ts";
import type { OPERATOR_OPERATIONS } from "../../contract/operator.ts";
import type { StoreHandlers } from "../parts.ts";
import { purchaseBody } from "./purchases.ts";
import { instant, ok } from "./views.ts";

const MAX_DIFFERENCES = 100;
/** Of history. */
const KEPT_HOURS = 90 * 24;
/** What history calls all profiles of accounts. */
const CUSTOM = "custom";
/** The suggested delay before the next try to read an audit. */
const RETRY_MS = 5_000;

/** The handlers. */
export const OPERATOR_HANDLERS: StoreHandlers<keyof typeof OPERATOR_OPERATIONS> = {
  async grantCustomAccess({ params, body: { days, reference } }, { store, runtime, changes }) {
    const nowMs = runtime.wallMs();
    const accountId = params.id;
    const source =
      reference === undefined ? `operator-once:${newId("act", nowMs)}` : `operator:${reference}`;
    const given = await grantCustomAccess(store, { accountId, days, source }, nowMs);
    if (given.kind === "api_fault") return given;
    await changes.account(accountId);
    const [from, until] = [instant(given.fromMs), instant(given.untilMs)];
    return ok({ account_id: accountId, from, until });
  },
  async creditAccount({ params, body }, { store, runtime, changes }) {
    const nowMs = runtime.wallMs();
    const posted = await creditAccountOnce(store, {
      kind: body.kind,
      accountId: params.id,
      idemKey: `operator:${body.reference}`,
      amountN: parseUsd(body.usd) ?? 0n,
      atMs: nowMs,
    });
    if (typeof posted !== "boolean") return posted;
    // Also for a repeated request: the first attempt may have failed before this step.
    await changes.account(params.id);
    const account = await accountById(store, params.id, nowMs);
    const balance_usd = usdText(account?.balanceN ?? 0n);
    const answer = ok({ account_id: params.id, credited: posted, balance_usd });
    return posted ? answer : { ...answer, noted: REPEATED };
  },
  async getOperatorUsage({ query }, { store, runtime }) {
    const range = rangeOf(query, runtime.wallMs());
    if (range === null) return NO_RANGE;
    const { account: accountId = null } = query;
    const { by_time, by_key, ...sums } = await usageReport(store, { range, accountId });
    return ok({
      ...sums,
      by_key: by_key.map(({ revoked: _, last_used: __, ...key }) => key),
      by_hour: by_time.map(({ at, ...used }) => ({ hour: at, ...used })),
    });
  },
  async listAccounts({ query: { search = null, after = null, ...query } }, { store, runtime }) {
    if (after !== null && parseAccountCursor(after) === null)
      return apiFault("invalid_field", "`after` is no `next` of this list", { details: ["after"] });
    const nowMs = runtime.wallMs();
    const range = rangeOf(query, nowMs);
    if (range === null) return NO_RANGE;
    return ok(await listAccounts(store, { ...query, range, search, after, nowMs }));
  },
  async listAccountKeys({ params: { id }, query: { after = null, ...query } }, parts) {
    const range = rangeOf(query, parts.runtime.wallMs());
    if (range === null) return NO_RANGE;
    const page = await listAccountKeys(parts.store, { ...query, range, after, accountId: id });
    return page === null ? apiFault("not_found", "no account has this id") : ok(page);
  },
  async listAllPurchases({ query }, { store }) {
    const { state = null, account = null, limit, after = null } = query;
    const page = await allPurchases(store, { state, accountId: account, limit, after });
    const purchases = page.purchases.map(({ transactions, ...purchase }) => ({
      ...purchaseBody(purchase),
      transactions,
    }));
    const { counts, next } = page;
    return ok({ purchases, counts, next });
  },
  async listWallets(_, { payments }) {
    const wallets = (payments?.wallets() ?? []).map(({ wallet, chainId, ...rail }) => ({
      ...rail,
      chain_id: chainId,
      wallet: wallet === null ? null : walletView(wallet),
    }));
    return ok({ wallets });
  },
  async getLastAudit(_, { store }) {
    const { books, chains } = await lastAudit(store);
    const isWrong = [books, chains].some((part) => part?.state === "unbalanced");
    const state = books === null ? "never" : "balanced";
    return ok({
      state: isWrong ? "unbalanced" : state,
      books: resultView(books),
      chains: resultView(chains),
    });
  },
  async getRevenue({ query }, { store, runtime }) {
    const range = rangeOf(query, runtime.wallMs());
    return range === null ? NO_RANGE : ok(await revenueByDay(store, range));
  },
  async listChainCalls({ query }, { store, runtime, chains, profiles }) {
    const nowMs = runtime.wallMs();
    const range = rangeOf(query, nowMs);
    if (range === null) return NO_RANGE;
    const kept = lastHours(KEPT_HOURS, nowMs);
    const read = {
      firstHour: Math.max(range.firstHour, kept.firstHour),
      endHour: Math.min(range.endHour, kept.endHour),
    };
    const slugs = [...new Set([...profiles(), CUSTOM])];
    const pairs = chains().flatMap(({ chainName: chain }) =>
      slugs.map((profile) => ({ profile, chain, calls: 0 })),
    );
    const pairOf = new Map(pairs.map((pair) => [`${pair.profile} ${pair.chain}`, pair]));
    for await (const page of chainHours(store, pairs, read))
      for (const { profile, chain, counts } of page) {
        const pair = pairOf.get(`${profile} ${chain}`);
        if (pair !== undefined) pair.calls += parseHourCounts(CALL_ROW, counts)?.[0] ?? 0;
      }
    const asked = pairs.filter(({ calls }) => calls > 0);
    asked.sort((left, right) => right.calls - left.calls);
    return ok({ ...rangeView(range), chains: asked });
  },
  async getOperatorAudit(_, { sharedAudit }) {
    const finished = await sharedAudit.read();
    if (finished === null)
      return apiFault("unavailable", "the audit is still reading the payment chains", {
        retryAfterMs: RETRY_MS,
        nextAction: "ask again",
      });
    const differences = differencesOf(finished.findings);
    const { unread } = finished.findings;
    return ok({
      ok: differences.length === 0 && unread.length === 0,
      checked_at: instant(finished.wallMs),
      differences: differences.slice(0, MAX_DIFFERENCES),
      unread_chains: unread.map(({ chainId, reason }) => ({ chain_id: chainId, reason })),
    });
  },
};

/** A repetition of a credit, as the list of actions tells of it. */
const REPEATED = { detail: "credited before: nothing was added", isDone: true } as const;

type RangeQuery = { readonly from?: string | undefined; readonly to?: string | undefined } & (
  | { readonly hours: number }
  | { readonly days: number }
);

/** The time that a query asks for: days from one to another, or the last ones; null = wrong. */
function rangeOf(query: RangeQuery, nowMs: number): HourRange | null {
  const { from, to } = query;
  if (from !== undefined) return daysBetween(from, to ?? instant(nowMs).slice(0, DAY_CHARS));
  if (to !== undefined) return null;
  return "hours" in query ? lastHours(query.hours, nowMs) : lastDays(query.days, nowMs);
}

const DAY_CHARS = "2026-11-29".length;

const NO_RANGE = apiFault("invalid_field", "`from` and `to` are no range of days", {
  details: ["from", "to"],
  nextAction: `give a first day, and a last one at most ${MAX_RANGE_DAYS} days later`,
});

function resultView(result: AuditResult | null) {
  if (result === null) return null;
  return {
    state: result.state,
    checked_at: instant(Number(result.checked_at)),
    run_by: result.runner,
    node: result.node,
    problem_count: Number(result.problem_count),
    problems: parseProblems(result),
  };
}

function differencesOf({ books, money }: AuditFindings) {
  const ofChains = money.map(({ txHash, recordedUnits, movedUnits }) => ({
    ...{ check: "chain" as const, id: txHash },
    ...{ isN: nanoOf(recordedUnits), shouldN: nanoOf(movedUnits) },
  }));
  return [...books, ...ofChains].map(({ check, id, isN, shouldN }) => ({
    ...{ check, id },
    is_usd: usdText(isN),
    should_be_usd: usdText(shouldN),
  }));
}

function walletView({ balanceWei, ...wallet }: NonNullable<WalletReport["wallet"]>) {
  return { ...wallet, balance_wei: String(balanceWei) };
}
