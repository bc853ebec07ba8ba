// The wallet of one account on this node: credit that is available, held for calls in flight, or
// spent and not written yet. Pure arithmetic on one record: no clock, no store.
import type { PendingRun } from "../../runtime.ts";
import type { LeaseGrant, LeaseRequest } from "./lease.ts";

/** Usage of one method by one key since the last batch. */
export interface UsageCounter {
  readonly accountId: string;
  readonly keyId: string;
  readonly method: string;
  calls: number;
  cu: number;
  chargeN: number;
  /** Of the calls those that were answered from the cache, and their compute units. */
  cachedCalls: number;
  cachedCu: number;
}

/** A counter at zero. */
export function zeroUsage(accountId: string, keyId: string, method: string): UsageCounter {
  return { accountId, keyId, method, calls: 0, cu: 0, chargeN: 0, cachedCalls: 0, cachedCu: 0 };
}

/**
 * Money of one account that this node may spend without the store; nano-USD as safe integers. Only
 * this folder changes it.
 */
export class Wallet {
  readonly accountId: string;
  /** The store's last answer. */
  state: "unknown" | "open" | "empty" | "unreachable" = "unknown";
  /**
   * Since when no credit of the account is left anywhere, by the last answer, on the wall clock;
   * null = some was left.
   */
  exhaustedAtMs: number | null = null;
  /** False if there were too many wallets to keep this one: it leases nothing. */
  readonly isKept: boolean;
  availableN = 0;
  heldN = 0;
  /** Held by calls of an epoch that is over: when they end, nothing is returned. */
  orphanN = 0;
  /** Spent since the last batch. */
  spentN = 0;
  /** Total granted on its lease; 0 = there is no lease. */
  grantedN = 0;
  /** Balance in the store after the last answer; -1 = unknown. */
  storeN = -1;
  /** Below this amount a refill is requested ahead of need. */
  lowWaterN = 0;
  /** What it should have by its rate at the last refill. */
  wantedN = 0;
  /**
   * The amount available after the last grant, and its time: from both follows how fast it is
   * spent.
   */
  topN = 0;
  grantedAtMs = 0;
  usedAtMs: number;
  /**
   * The price of calls that found too little since the last request: their sum, and the largest.
   */
  shortN = 0;
  needN = 0;
  /**
   * The store has been told that the remaining credit is too little for a call, since the last time
   * that there was enough.
   */
  isShortReported = false;
  /** When an empty wallet may request a refill again. */
  retryAtMs = 0;
  isRefilling = false;
  /** A request failed: there may be a lease, or more of it, that this node does not know of. */
  isUncertain = false;
  isSpending = false;
  /** Its lease is being returned: nothing may be leased meanwhile. */
  isClosing = false;
  /** Free compute units used in the month `freeMonth`. */
  freeMonth = -1;
  freeCu = 0;
  /** Of these, since the last batch. */
  freeNewCu = 0;
  /** Free compute units held for calls under way. */
  freeHeldCu = 0;
  /** Callbacks for the next answer of the store. */
  waiters: PendingRun[] | null = null;
  /** Credit of the account at other nodes was recalled, and calls wait for it. */
  isRecalling = false;
  recalledAtMs = Number.NEGATIVE_INFINITY;
  /** When a part of it was last returned for another node. */
  returnedAtMs = Number.NEGATIVE_INFINITY;
  /** By key and method. */
  counters: Map<string, Map<string, UsageCounter>> | null = null;
  lastCounter: UsageCounter | null = null;

  constructor(
    accountId: string,
    { nowMs, isKept }: { readonly nowMs: number; readonly isKept: boolean },
  ) {
    this.accountId = accountId;
    this.usedAtMs = nowMs;
    this.isKept = isKept;
    if (!isKept) this.state = "unreachable";
  }

  /** The store does not answer now, and by its last answer it had nothing left for this account. */
  get wasEmpty(): boolean {
    return this.state === "unreachable" && this.storeN === 0;
  }
}

/** Takes back a hold of which a part was charged; returns what was charged in this epoch. */
export function takeBack(wallet: Wallet, heldN: number, chargeN: number): number {
  let ownN = heldN;
  if (wallet.orphanN > 0) {
    ownN = Math.max(0, heldN - wallet.orphanN);
    wallet.orphanN -= heldN - ownN;
  }
  if (ownN > wallet.heldN || chargeN > heldN)
    throw new RangeError(`a call of ${wallet.accountId} gives back or costs more than it held`);
  const chargedN = Math.min(chargeN, ownN);
  wallet.heldN -= ownN;
  wallet.availableN += ownN - chargedN;
  wallet.spentN += chargedN;
  return chargedN;
}

/** Below this share of what it should have, a refill is requested. */
const LOW_WATER = 3 / 4;
/** The largest growth from one request to the next: a short burst says little. */
const MAX_GROWTH = 8;
const SHORTEST_MS = 20;

/** How much a wallet should have. */
export interface LeaseSize {
  /** For how long at its present rate. */
  readonly leasedMs: number;
  /** At least, nano-USD. */
  readonly minSliceN: number;
}

/** The wallet's request to the store; its unmet demand is part of it from now on. */
export function leaseRequestOf(
  wallet: Wallet,
  nowMs: number,
  { leasedMs, minSliceN }: LeaseSize,
): LeaseRequest {
  const { accountId, shortN, needN, grantedN } = wallet;
  if (wallet.grantedAtMs > 0) {
    const usedN = Math.max(0, wallet.topN - wallet.availableN);
    const rateN = usedN / Math.max(SHORTEST_MS, nowMs - wallet.grantedAtMs);
    wallet.wantedN = Math.ceil(
      Math.min(rateN * leasedMs, Math.max(minSliceN, wallet.wantedN) * MAX_GROWTH),
    );
  }
  const needsMoney = shortN > 0 || wallet.availableN < wallet.lowWaterN;
  wallet.shortN = 0;
  wallet.needN = 0;
  return {
    accountId,
    shortN,
    needN,
    wantedN: needsMoney ? Math.max(minSliceN, wallet.wantedN - wallet.availableN) : 0,
    hereN: wallet.availableN + wallet.heldN,
    grantedN,
  };
}

/** Applies the store's answer to a wallet. */
export function receive(
  wallet: Wallet,
  answer: LeaseGrant,
  { nowMs, month }: { readonly nowMs: number; readonly month: number },
): void {
  const receivedN = answer.grantedN - wallet.grantedN;
  wallet.grantedN = answer.grantedN;
  wallet.isUncertain = false;
  wallet.availableN += receivedN;
  wallet.storeN = answer.leftN;
  wallet.exhaustedAtMs = answer.exhaustedAtMs;
  wallet.state = answer.leftN > 0 ? "open" : "empty";
  if (receivedN > 0) {
    wallet.isShortReported = false;
    wallet.topN = wallet.availableN;
    wallet.grantedAtMs = nowMs;
  }
  wallet.lowWaterN =
    answer.leftN > 0
      ? Math.floor(Math.min(Math.max(wallet.wantedN, receivedN), wallet.availableN) * LOW_WATER)
      : 0;
  wallet.freeCu =
    wallet.freeMonth === month
      ? Math.max(wallet.freeCu, answer.usedCu)
      : answer.usedCu + wallet.freeNewCu;
  wallet.freeMonth = month;
}

/**
 * Whether less than the cheapest call costs is left here, and was left in the store at its last
 * answer: then the account may have run out.
 */
export function mayHaveRunOut({ availableN, heldN, storeN }: Wallet, smallestN: number): boolean {
  return availableN + heldN < smallestN && storeN < smallestN;
}

/** Empties a wallet whose epoch is over; returns what was spent and never written. */
export function orphan(wallet: Wallet): number {
  const lostN = wallet.spentN;
  wallet.orphanN += wallet.heldN;
  wallet.heldN = 0;
  wallet.availableN = 0;
  wallet.spentN = 0;
  wallet.grantedN = 0;
  wallet.storeN = -1;
  wallet.lowWaterN = 0;
  wallet.isSpending = false;
  wallet.isClosing = false;
  wallet.isUncertain = false;
  if (wallet.isKept) wallet.state = "unknown";
  return lostN;
}
