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

/** The columns of usage that are added up. */
export const USED_COLUMNS = ["calls", "cu", "charge_n", "cached_calls", "cached_cu"] as const;

/** Keys that a wallet keeps counters for; keys come and go. */
const MAX_KEYS = 1_000;
/**
 * Rows of hours gone by that wait for the store; beyond, an hour's calls count for the next one.
 */
const MAX_PAST_ROWS = 500_000;
const HOUR_MS = 3_600_000;

const COUNTS = ["calls", "cu", "chargeN", "cachedCalls", "cachedCu"] as const;

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
  readonly #pastUsage = new Map<string, UsageCounter & { readonly hour: number }>();
  readonly #pastFree = new Map<string, AllowanceMonthTable>();

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
    if (this.#pastUsage.size < MAX_PAST_ROWS) this.#roll();
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
    return { usage: drained(this.#pastUsage).map(rowOf), free: drained(this.#pastFree) };
  }

  #roll(): void {
    const hour = this.#hour;
    for (const counter of this.#counters) {
      const { accountId, keyId, method } = counter;
      const key = `${accountId} ${hour} ${keyId} ${method}`;
      const past = this.#pastUsage.get(key) ?? { ...zeroUsage(accountId, keyId, method), hour };
      this.#pastUsage.set(key, past);
      for (const count of COUNTS) {
        past[count] += counter[count];
        counter[count] = 0;
      }
    }
    for (const wallet of this.#free) {
      const month = BigInt(this.#month);
      const key = `${wallet.accountId} ${month}`;
      const used_cu = (this.#pastFree.get(key)?.used_cu ?? 0n) + BigInt(wallet.freeNewCu);
      this.#pastFree.set(key, { account_id: wallet.accountId, month, used_cu });
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

function rowOf({ hour, ...counter }: UsageCounter & { readonly hour: number }): UsageHourRow {
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

/** Takes rows out, in the order in which every node writes, so that no two wait for each other. */
function drained<Row>(rows: Map<string, Row>): readonly Row[] {
  const sorted = [...rows].sort(([left], [right]) => (left < right ? -1 : 1));
  rows.clear();
  return sorted.map(([, row]) => row);
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
