// What was used since the last batch: counters by key, method and hour, and free compute units by
// month. Counts; knows no price and no store.
import type { MeteredCu } from "../../core/billing/charging.ts";
import type { AllowanceMonthTable, UsageHourRow } from "../../shared/store/tables.ts";
import { type UsageCounter, type Wallet, zeroUsage } from "./wallet.ts";

/** One call, as it is counted. */
export interface Counted {
  readonly keyId: string;
  readonly method: string;
  readonly cu: number;
  /** Whether it was answered from the cache; absent = it was not. */
  readonly isCached?: boolean;
  readonly chargeN: number;
  readonly freeCu: number;
}

/** Rows to write. */
export interface UsageRows {
  readonly usage: readonly UsageHourRow[];
  readonly free: readonly AllowanceMonthTable[];
}

/** Keys that a wallet keeps counters for; keys come and go. */
const MAX_KEYS = 1_000;
/**
 * Rows of hours gone by that wait for the store; beyond, an hour's calls count for the next one.
 */
const MAX_PAST_ROWS = 500_000;
const HOUR_MS = 3_600_000;

/** The counters of a node. */
export class UsageBuffer {
  /** Hours since the epoch, UTC. */
  #hour: number;
  /** Months since January 1970, UTC. */
  #month: number;
  /** Those that do not stand at zero. */
  #counters: UsageCounter[] = [];
  #free: Wallet[] = [];
  #fullCu = 0;
  #cachedCu = 0;
  /** What was counted under an hour or a month that is over. */
  #pastUsage: UsageHourRow[] = [];
  #pastFree: AllowanceMonthTable[] = [];

  constructor(wallMs: number) {
    this.#hour = hourOf(wallMs);
    this.#month = monthOf(wallMs);
  }

  /** The month that is counted under. */
  get month(): number {
    return this.#month;
  }

  get metered(): MeteredCu {
    return { full: this.#fullCu, cached: this.#cachedCu };
  }

  /** Sets the hour and month that is counted under. */
  tick(wallMs: number): void {
    const hour = hourOf(wallMs);
    if (hour === this.#hour) return;
    if (this.#pastUsage.length < MAX_PAST_ROWS) this.#roll();
    this.#hour = hour;
    this.#month = monthOf(wallMs);
  }

  /** Counts a call of a wallet's account, of which so much was charged. */
  count(wallet: Wallet, call: Counted, chargedN: number): void {
    const last = wallet.lastCounter;
    const counter =
      last !== null && last.keyId === call.keyId && last.method === call.method
        ? last
        : counterOf(wallet, call);
    if (counter.calls === 0) this.#counters.push(counter);
    counter.calls += 1;
    counter.cu += call.cu;
    counter.chargeN += chargedN;
    if (call.isCached === true) {
      counter.cachedCalls += 1;
      counter.cachedCu += call.cu;
      this.#cachedCu += call.cu;
    } else this.#fullCu += call.cu;
    if (call.freeCu > 0) {
      if (wallet.freeNewCu === 0) this.#free.push(wallet);
      wallet.freeNewCu += call.freeCu;
      wallet.freeCu += call.freeCu;
    }
  }

  /** Returns everything counted as sorted rows, and starts at zero. */
  drain(): UsageRows {
    this.#roll();
    const usage = merged(this.#pastUsage.sort(usageOrder), usageOrder, addUsage);
    const free = merged(this.#pastFree.sort(freeOrder), freeOrder, addFree);
    this.#pastUsage = [];
    this.#pastFree = [];
    return { usage, free };
  }

  #roll(): void {
    for (const counter of this.#counters) {
      this.#pastUsage.push(rowOf(counter, this.#hour));
      counter.calls = 0;
      counter.cu = 0;
      counter.chargeN = 0;
      counter.cachedCalls = 0;
      counter.cachedCu = 0;
    }
    for (const wallet of this.#free) {
      this.#pastFree.push({
        account_id: wallet.accountId,
        month: BigInt(this.#month),
        used_cu: BigInt(wallet.freeNewCu),
      });
      wallet.freeNewCu = 0;
    }
    this.#counters = [];
    this.#free = [];
  }
}

/** Drops the counters of a wallet; those that do not stand at zero are still written. */
export function forgetCounters(wallet: Wallet): void {
  wallet.counters = null;
  wallet.lastCounter = null;
}

function counterOf(wallet: Wallet, { keyId, method }: Counted): UsageCounter {
  if (wallet.counters !== null && wallet.counters.size >= MAX_KEYS) wallet.counters = null;
  wallet.counters ??= new Map();
  let ofKey = wallet.counters.get(keyId);
  if (ofKey === undefined) {
    ofKey = new Map();
    wallet.counters.set(keyId, ofKey);
  }
  let counter = ofKey.get(method);
  if (counter === undefined) {
    counter = zeroUsage(wallet.accountId, keyId, method);
    ofKey.set(method, counter);
  }
  wallet.lastCounter = counter;
  return counter;
}

function rowOf(counter: UsageCounter, hour: number): UsageHourRow {
  return {
    account_id: counter.accountId,
    key_id: counter.keyId,
    method: counter.method,
    hour: BigInt(hour),
    calls: BigInt(counter.calls),
    cu: BigInt(counter.cu),
    charge_n: BigInt(counter.chargeN),
    cached_calls: BigInt(counter.cachedCalls),
    cached_cu: BigInt(counter.cachedCu),
  };
}

/** Adds up neighbours that are the same row: no row stands twice in a batch. */
function merged<Row>(
  rows: readonly Row[],
  order: (a: Row, b: Row) => number,
  add: (a: Row, b: Row) => Row,
): readonly Row[] {
  const out: Row[] = [];
  for (const row of rows) {
    const last = out.at(-1);
    if (last !== undefined && order(last, row) === 0) out[out.length - 1] = add(last, row);
    else out.push(row);
  }
  return out;
}

/** The order in which every node writes, so that no two wait for each other. */
function usageOrder(a: UsageHourRow, b: UsageHourRow): number {
  return (
    compare(a.account_id, b.account_id) ||
    compare(a.hour, b.hour) ||
    compare(a.key_id, b.key_id) ||
    compare(a.method, b.method)
  );
}

function addUsage(a: UsageHourRow, b: UsageHourRow): UsageHourRow {
  return {
    ...a,
    calls: a.calls + b.calls,
    cu: a.cu + b.cu,
    charge_n: a.charge_n + b.charge_n,
    cached_calls: a.cached_calls + b.cached_calls,
    cached_cu: a.cached_cu + b.cached_cu,
  };
}

function freeOrder(a: AllowanceMonthTable, b: AllowanceMonthTable): number {
  return compare(a.account_id, b.account_id) || compare(a.month, b.month);
}

function addFree(a: AllowanceMonthTable, b: AllowanceMonthTable): AllowanceMonthTable {
  return { ...a, used_cu: a.used_cu + b.used_cu };
}

function compare<T extends string | bigint>(a: T, b: T): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function hourOf(wallMs: number): number {
  return Math.floor(wallMs / HOUR_MS);
}

const FIRST_YEAR = 1970;
const MONTHS = 12;

/** Months since January 1970, UTC. */
export function monthOf(wallMs: number): number {
  const date = new Date(wallMs);
  return (date.getUTCFullYear() - FIRST_YEAR) * MONTHS + date.getUTCMonth();
}

/** When a month begins. */
export function monthStartMs(month: number): number {
  return Date.UTC(FIRST_YEAR, month);
}
