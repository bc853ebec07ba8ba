// Credit in memory: the amounts that each account may spend on this node, leased from the store
// ahead of need. Methods on the path of a request do no I/O and create no promise. Knows accounts,
// keys and methods by name only.

import type { MeteredCu } from "../../core/billing/charging.ts";
import { chunks } from "../../shared/ledger/ledger.ts";
import { type Epoch, join, type MayReplace, type Presence } from "../../shared/nodes/node-rows.ts";
import { type CreditContext, closeEnded } from "./credit-store.ts";
import { FlushLoop, type FlushLoopStart } from "./flush-loop.ts";
import {
  awaitRecall,
  mayRecall,
  RECALL_MS,
  type ReturnedCredit,
  setAside,
  spareN,
} from "./recall.ts";
import { RefillBatcher, ROUND_MS } from "./refill-batcher.ts";
import { type Counted, UsageBuffer } from "./usage-buffer.ts";
import { leaseRequestOf, receive, takeBack, Wallet } from "./wallet.ts";

export type { Wallet } from "./wallet.ts";

/** The settlement of a hold. */
export interface CreditUse extends Counted {
  /** The held amount, nano-USD. */
  readonly heldN: number;
  /** Compute units held of the month's free allowance; absent = as many as are used. */
  readonly heldFreeCu?: number;
}

/** What credit needs. */
export interface CreditParts extends CreditContext {
  /** A living row under the id of this node that it may take over. */
  readonly replaces: MayReplace;
  /** Whether other nodes may have some of an account idle, and hear when it is called back. */
  readonly recalls: boolean;
  /** Called after a recall or a return was written for the others to read. */
  readonly recorded: () => void;
}

/** Joins the store as a node and starts to lease. */
export async function openCredit(parts: CreditParts): Promise<Credit> {
  const { store, transactions, runtime, node, replaces, processId } = parts;
  const startedAtMs = runtime.now();
  const epoch = await join(store, node, { wallMs: runtime.wallMs(), replaces, processId });
  if (epoch === null) throw new Error(`another process lives as node ${node.id}`);
  await closeEnded(transactions, runtime.wallMs());
  return new Credit(parts, { epoch, startedAtMs });
}

/** The leased credit of this node. */
export class Credit {
  readonly #parts: CreditParts;
  readonly #wallets = new Map<string, Wallet>();
  readonly #usage: UsageBuffer;
  readonly #refills: RefillBatcher;
  readonly #flushLoop: FlushLoop;
  /** Accounts whose idle credit other nodes asked for, and until when these nodes wait. */
  readonly #recalled = new Map<string, number>();
  #returning: Promise<void> | null = null;
  #cancelRecalls: () => void = () => undefined;
  /** Counts returns, so that each has a name of its own. */
  #returns = 0;

  constructor(parts: CreditParts, start: FlushLoopStart) {
    const { runtime, onError } = parts;
    this.#parts = parts;
    this.#usage = new UsageBuffer(runtime.wallMs());
    this.#refills = new RefillBatcher({
      runtime,
      run: (wallets) => this.#refill(wallets),
      failed: (wallets, error) => this.#refillFailed(wallets, error),
      onError,
    });
    const own = { wallets: this.#wallets, usage: this.#usage, refills: this.#refills };
    this.#flushLoop = new FlushLoop({ ...this.#parts, ...own }, start);
  }

  /** Wallets in memory. */
  get size(): number {
    return this.#wallets.size;
  }

  /**
   * The wallet of an account; no I/O. Get it anew for each call: an unused wallet is returned to
   * the store and forgotten.
   */
  wallet(accountId: string): Wallet {
    return this.#wallets.get(accountId) ?? this.#begin(accountId);
  }

  /** Takes a hold; false = not enough is available here now, and a refill was requested. */
  hold(wallet: Wallet, amountN: number): boolean {
    const nowMs = this.#parts.runtime.now();
    wallet.usedAtMs = nowMs;
    if (wallet.availableN < amountN || nowMs >= this.#flushLoop.stopAtMs)
      return this.#holdNothing(wallet, { amountN, nowMs });
    wallet.availableN -= amountN;
    wallet.heldN += amountN;
    if (wallet.availableN < wallet.lowWaterN && !wallet.isRefilling) this.#refills.request(wallet);
    return true;
  }

  /**
   * Holds compute units of the month's free allowance; the caller has compared `freeUsedCu` with
   * it.
   */
  holdFree(wallet: Wallet, cu: number): void {
    wallet.freeHeldCu += cu;
    wallet.usedAtMs = this.#parts.runtime.now();
  }

  /** Releases a hold; `freeCu` = compute units held of the free allowance. */
  release(wallet: Wallet, amountN: number, freeCu = 0): void {
    wallet.freeHeldCu -= freeCu;
    takeBack(wallet, amountN, 0);
  }

  /**
   * Settles a hold. `chargeN` ≤ `heldN`; 0 = served for free. Of the units held of the
   * month's free allowance `freeCu` are now used.
   */
  settle(wallet: Wallet, use: CreditUse): void {
    wallet.freeHeldCu -= use.heldFreeCu ?? use.freeCu;
    const chargedN = takeBack(wallet, use.heldN, use.chargeN);
    if (chargedN > 0 && !wallet.isSpending) this.#flushLoop.spends(wallet);
    if (chargedN < use.chargeN) this.#flushLoop.lose(use.chargeN - chargedN);
    this.#usage.count(wallet, use, chargedN);
  }

  /**
   * Calls back once when the wallet's next refill has ended, or after 2 s; the returned function
   * cancels.
   */
  refilled(wallet: Wallet, run: () => void): () => void {
    return this.#refills.wait(wallet, run);
  }

  /** An account was credited: its empty wallet requests a refill. */
  refresh(accountId: string): void {
    const wallet = this.#wallets.get(accountId);
    if (wallet === undefined) return;
    if (wallet.state !== "empty" && !wallet.isRefilling && !wallet.isRecalling) return;
    wallet.isRecalling = false;
    wallet.state = "unknown";
    wallet.storeN = -1;
    wallet.shortN = Math.max(wallet.shortN, 1);
    // A round in flight may have read the balance before: then another one follows.
    wallet.waiters ??= [];
    this.#refills.request(wallet);
  }

  /**
   * A node returned some of the account: calls that wait for it ask again. Others ask with their
   * next call: it is not for the node that returned it.
   */
  returned(accountId: string): void {
    const wallet = this.#wallets.get(accountId);
    if (wallet === undefined) return;
    wallet.retryAtMs = 0;
    if (!wallet.isRecalling) return;
    wallet.isRecalling = false;
    this.#refills.request(wallet);
  }

  /**
   * Other nodes have too little of these accounts: returns what this one can spare, many in one
   * transaction.
   */
  recall(accountIds: Iterable<string>): void {
    const untilMs = this.#parts.runtime.now() + RECALL_MS;
    for (const accountId of accountIds)
      if (this.#wallets.has(accountId)) this.#recalled.set(accountId, untilMs);
    this.#answerRecalls();
  }

  /** An account has no callers any more: its lease is returned with the next flush. */
  evict(accountId: string): void {
    const wallet = this.#wallets.get(accountId);
    if (wallet !== undefined) wallet.usedAtMs = Number.NEGATIVE_INFINITY;
  }

  /**
   * Estimate of the account's remaining credit: available here, and leased to no node. Null =
   * unknown.
   */
  estimateN(wallet: Wallet): number | null {
    return wallet.storeN < 0 ? null : wallet.availableN + wallet.storeN;
  }

  /**
   * Free compute units that the account has used or holds this month, as far as this node knows.
   * Null = not known yet; it was requested.
   */
  freeUsedCu(wallet: Wallet): number | null {
    if (wallet.freeMonth === this.#usage.month) return wallet.freeCu + wallet.freeHeldCu;
    this.#refills.request(wallet);
    return null;
  }

  /** This process as others see it; null = its epoch is over, and the next one has not begun. */
  presence(): Presence | null {
    const { epoch, heardAtMs } = this.#flushLoop;
    return epoch === null ? null : { epoch, heardAtMs };
  }

  /**
   * Writes usage. Throws if the store cannot be written; the next flush writes it then, and nothing
   * twice.
   */
  flush(): Promise<void> {
    return this.#flushLoop.flush();
  }

  /** Whether an account (null = any) has usage that is not written yet. */
  isUnwritten(accountId: string | null): boolean {
    if (accountId === null || this.#flushLoop.isWriting) return true;
    const wallet = this.#wallets.get(accountId);
    return wallet !== undefined && (wallet.spentN > 0 || wallet.freeNewCu > 0);
  }

  /** The unwritten charges, nano-USD. */
  unwrittenN(): number {
    return this.#flushLoop.unwrittenN();
  }

  /** Whether what is leased may be spent now: not while the store is away for too long. */
  maySpend(): boolean {
    return this.#flushLoop.maySpend();
  }

  /** Compute units that were counted by this process. */
  metered(): MeteredCu {
    return this.#usage.metered;
  }

  /** Writes usage and returns every lease. Throws if the store cannot be written. */
  async close(): Promise<void> {
    this.#recalled.clear();
    await this.#returning;
    this.#cancelRecalls();
    await this.#refills.close();
    await this.#flushLoop.close();
  }

  #begin(accountId: string): Wallet {
    const isKept = this.#wallets.size < this.#parts.settings.maxWallets;
    const wallet = new Wallet(accountId, { nowMs: this.#parts.runtime.now(), isKept });
    if (isKept) this.#wallets.set(accountId, wallet);
    return wallet;
  }

  /** Records an unmet hold for the next refill. */
  #holdNothing(
    wallet: Wallet,
    { amountN, nowMs }: { readonly amountN: number; readonly nowMs: number },
  ): false {
    wallet.needN = Math.max(wallet.needN, amountN);
    if (nowMs >= this.#flushLoop.stopAtMs) {
      wallet.state = "unreachable";
      // Many may come before something is leased again: they do not add up.
      wallet.shortN = Math.max(wallet.shortN, amountN);
      return false;
    }
    wallet.shortN += amountN;
    if (wallet.state === "empty" && wallet.isShortReported && nowMs < wallet.retryAtMs)
      return false;
    // The first call that finds too little is told at once: from then on its account counts as run
    // out, whether or not another call follows.
    wallet.isShortReported = !wallet.isRefilling;
    this.#refills.request(wallet);
    return false;
  }

  #answerRecalls(): void {
    this.#cancelRecalls();
    if (this.#returning !== null || this.#recalled.size === 0) return;
    this.#returning = this.#returnRecalled().finally(() => {
      this.#returning = null;
      this.#cancelRecalls = this.#parts.runtime.after(ROUND_MS, () => this.#answerRecalls());
    });
  }

  /** One transaction after the other, so that recalls of many accounts hold nothing else up. */
  async #returnRecalled(): Promise<void> {
    for (const part of chunks([...this.#recalled])) {
      const { epoch } = this.#flushLoop;
      // Leases of an epoch that is over are closed by others.
      if (epoch === null) return this.#recalled.clear();
      await this.#return(epoch, this.#sparedOf(epoch, part));
    }
  }

  /** Sets aside what the wallets of accounts can spare; those that cannot yet are asked again. */
  #sparedOf(
    { nodeId, epoch }: Epoch,
    recalled: readonly (readonly [string, number])[],
  ): ReadonlyMap<Wallet, ReturnedCredit> {
    const nowMs = this.#parts.runtime.now();
    const spared = new Map<Wallet, ReturnedCredit>();
    for (const [accountId, untilMs] of recalled) {
      const wallet = this.#wallets.get(accountId);
      const amountN = wallet === undefined ? 0 : spareN(wallet, nowMs);
      if (amountN !== null || nowMs >= untilMs) this.#recalled.delete(accountId);
      if (wallet === undefined || amountN === null || amountN === 0) continue;
      setAside(wallet, amountN, nowMs);
      const name = `return:${accountId}:${nodeId}:${epoch}:${++this.#returns}`;
      spared.set(wallet, { accountId, amountN, name });
    }
    return spared;
  }

  /** Returns parts of wallets; what became of them, the next refill learns. */
  async #return(epoch: Epoch, spared: ReadonlyMap<Wallet, ReturnedCredit>): Promise<void> {
    if (spared.size === 0) return;
    const given = { returns: [...spared.values()], atMs: this.#parts.runtime.wallMs() };
    const returned = new Set(
      await this.#parts.transactions.returnParts(epoch, given).catch((error: unknown) => {
        this.#flushLoop.report(error);
        return [];
      }),
    );
    if (returned.size > 0) this.#parts.recorded();
    if (this.#flushLoop.epoch !== epoch) return;
    for (const wallet of spared.keys()) {
      const isReturned = returned.has(wallet.accountId);
      wallet.isClosing = false;
      if (isReturned && wallet.waiters === null) continue;
      wallet.isUncertain = !isReturned;
      this.#refills.request(wallet);
    }
  }

  async #refill(wallets: readonly Wallet[]): Promise<void> {
    const epoch = await this.#flushLoop.resume();
    const nowMs = this.#parts.runtime.now();
    const { minSliceN, smallestN, nodeTimeoutMs } = this.#parts.settings;
    // Calls of keys are served for so long without the store.
    const leasing = { minSliceN, leasedMs: nodeTimeoutMs / 2 };
    const requests = wallets.map((wallet) => leaseRequestOf(wallet, nowMs, leasing));
    const terms = { minSliceN, smallestN, atMs: this.#parts.agreedMs(), month: this.#usage.month };
    const { recalls } = this.#parts;
    const recallable = wallets
      .filter((wallet) => recalls && mayRecall(wallet, nowMs))
      .map(({ accountId }) => accountId);
    const answers = await this.#parts.transactions.refill(epoch, { requests, terms, recallable });
    if (recalls && answers?.some(({ isDry }) => isDry) === true) this.#parts.recorded();
    if (answers === null) this.#flushLoop.fence(epoch);
    if (answers === null || this.#flushLoop.epoch !== epoch)
      throw new Error("this node's epoch is over: it joins again");
    const at = { nowMs: this.#parts.runtime.now(), month: terms.month };
    for (const [index, wallet] of wallets.entries()) {
      const [answer, request] = [answers[index], requests[index]];
      if (answer !== undefined) receive(wallet, answer, at);
      wallet.retryAtMs = at.nowMs + this.#parts.settings.flushIntervalMs;
      if (recalls && answer?.isDry === true && request !== undefined)
        awaitRecall(wallet, request, nowMs);
    }
  }

  #refillFailed(wallets: readonly Wallet[], error: unknown): void {
    for (const wallet of wallets) {
      wallet.state = "unreachable";
      wallet.isUncertain = true;
    }
    this.#flushLoop.report(error);
  }
}
