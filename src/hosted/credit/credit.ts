// Credit in memory: the amounts that each account may spend on this node, leased from the store
// ahead of need. Methods on the path of a request do no I/O and create no promise. Knows accounts,
// keys and methods by name only.

import type { MeteredCu } from "../../core/billing/charging.ts";
import type { Runtime } from "../../runtime.ts";
import { chunks } from "../../shared/ledger/ledger.ts";
import type { NodeIdentity } from "../../shared/nodes/identity.ts";
import {
  type Epoch,
  join,
  type MayReplace,
  newProcessId,
  type Presence,
} from "../../shared/nodes/node-rows.ts";
import type { Store } from "../../shared/store/store.ts";
import { type CreditStore, closeEnded, creditOn } from "./credit-store.ts";
import { FlushLoop, type FlushLoopStart } from "./flush-loop.ts";
import type { LeaseGrant, LeaseRequest } from "./lease.ts";
import {
  awaitRecall,
  type DryWallet,
  isDryHere,
  mayRecall,
  RECALL_MS,
  type ReturnedCredit,
  setAside,
  spareN,
} from "./recall.ts";
import { RefillBatcher, ROUND_MS } from "./refill-batcher.ts";
import { type Counted, UsageBuffer } from "./usage-buffer.ts";
import {
  leaseRequestOf,
  OpenWallet,
  parseWallet,
  receive,
  takeBack,
  type Wallet,
} from "./wallet.ts";

export type { Wallet } from "./wallet.ts";

/** The settlement of a hold. */
export interface CreditUse extends Counted {
  /** The held amount, nano-USD. */
  readonly heldN: number;
  /** Compute units held of the month's free allowance; absent = as many as are used. */
  readonly heldFreeCu?: number;
}

/** Times, slices and bounds of the credit. */
export interface CreditSettings {
  readonly flushIntervalMs: number;
  readonly nodeTimeoutMs: number;
  /** The smallest lease, nano-USD. */
  readonly minSliceN: number;
  /** The price of the cheapest call, nano-USD: an account with less has run out. */
  readonly smallestN: number;
  /** A wallet unused for this long is returned. */
  readonly idleMs: number;
  /** Wallets in memory; beyond, accounts read "unreachable" until some wallets are returned. */
  readonly maxWallets: number;
}

/** What credit needs. */
export interface CreditParts {
  readonly store: Store;
  /** Runs the transactions of credit; absent = they are run on the store from here. */
  readonly transactions?: CreditStore;
  readonly runtime: Runtime;
  readonly node: NodeIdentity;
  /** A living row under the id of this node that it may take over; all unless given. */
  readonly replaces?: MayReplace;
  /** What the row of this node has of this process; made up unless given. */
  readonly processId?: string;
  readonly settings: Pick<CreditSettings, "flushIntervalMs" | "nodeTimeoutMs" | "minSliceN"> &
    Partial<CreditSettings>;
  /** The clock that nodes agree on, in milliseconds since the epoch; absent = that of `runtime`. */
  readonly agreedMs?: () => number;
  /** Whether other nodes may have some of an account idle, and hear when it is called back. */
  readonly recalls?: boolean;
  /** Called after a recall or a return was written for the others to read. */
  readonly recorded?: () => void;
  /** Receives failures in the background, and reports of lost usage. */
  readonly onError: (error: unknown) => void;
}

/** The bounds unless the settings name others. */
const DEFAULT_BOUNDS: Pick<CreditSettings, "idleMs" | "maxWallets" | "smallestN"> = {
  idleMs: 60_000,
  maxWallets: 100_000,
  smallestN: 1,
};

/** Joins the store as a node and starts to lease. */
export async function openCredit(parts: CreditParts): Promise<Credit> {
  const { store, runtime, node, replaces = "any", transactions = creditOn(store) } = parts;
  const startedAtMs = runtime.now();
  const { processId = newProcessId(runtime) } = parts;
  const epoch = await join(store, node, { wallMs: runtime.wallMs(), replaces, processId });
  if (epoch === null) throw new Error(`another process lives as node ${node.id}`);
  await closeEnded(transactions, runtime.wallMs());
  return new Credit(parts, { epoch, startedAtMs, processId });
}

/** The leased credit of this node. */
export class Credit {
  readonly #parts: CreditParts;
  readonly #runtime: Runtime;
  readonly #settings: CreditSettings;
  readonly #transactions: CreditStore;
  readonly #agreedMs: () => number;
  readonly #wallets = new Map<string, OpenWallet>();
  readonly #usage: UsageBuffer;
  readonly #refills: RefillBatcher;
  readonly #flushLoop: FlushLoop;
  /** Accounts whose idle credit other nodes asked for, and until when these nodes wait. */
  readonly #recalled = new Map<string, number>();
  #returning: Promise<void> | null = null;
  #cancelRecalls: () => void = () => undefined;
  /** Counts returns, so that each has a name of its own. */
  #returns = 0;

  constructor(given: CreditParts, start: FlushLoopStart) {
    const { store, runtime, node, settings, onError } = given;
    this.#parts = given;
    this.#runtime = runtime;
    this.#transactions = given.transactions ?? creditOn(store);
    this.#agreedMs = given.agreedMs ?? (() => runtime.wallMs());
    this.#settings = { ...DEFAULT_BOUNDS, ...settings };
    this.#usage = new UsageBuffer(runtime.wallMs());
    this.#refills = new RefillBatcher({
      runtime,
      run: (wallets) => this.#refill(wallets),
      failed: (wallets, error) => this.#refillFailed(wallets, error),
      onError,
    });
    const parts = {
      store,
      transactions: this.#transactions,
      runtime,
      agreedMs: this.#agreedMs,
      node,
      settings: this.#settings,
      wallets: this.#wallets,
      usage: this.#usage,
      refills: this.#refills,
      onError,
    };
    this.#flushLoop = new FlushLoop(parts, start);
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
    return this.#wallets.get(accountId) ?? this.#openWallet(accountId);
  }

  /** Takes a hold; false = not enough is available here now, and a refill was requested. */
  hold(given: Wallet, amountN: number): boolean {
    const wallet = parseWallet(given);
    const nowMs = this.#runtime.now();
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
  holdFree(given: Wallet, cu: number): void {
    const wallet = parseWallet(given);
    wallet.freeHeldCu += cu;
    wallet.usedAtMs = this.#runtime.now();
  }

  /** Releases a hold; `freeCu` = compute units held of the free allowance. */
  release(given: Wallet, amountN: number, freeCu = 0): void {
    const wallet = parseWallet(given);
    wallet.freeHeldCu -= freeCu;
    takeBack(wallet, amountN, 0);
  }

  /**
   * Settles a hold. `chargeN` ≤ `heldN`; 0 = served for free. Of the units held of the
   * month's free allowance `freeCu` are now used.
   */
  settle(given: Wallet, use: CreditUse): void {
    const wallet = parseWallet(given);
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
    return this.#refills.wait(parseWallet(wallet), run);
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
    const untilMs = this.#runtime.now() + RECALL_MS;
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
  estimateN(given: Wallet): number | null {
    const wallet = parseWallet(given);
    return wallet.storeN < 0 ? null : wallet.availableN + wallet.storeN;
  }

  /**
   * Free compute units that the account has used or holds this month, as far as this node knows.
   * Null = not known yet; it was requested.
   */
  freeUsedCu(given: Wallet): number | null {
    const wallet = parseWallet(given);
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

  #openWallet(accountId: string): OpenWallet {
    const isKept = this.#wallets.size < this.#settings.maxWallets;
    const wallet = new OpenWallet(accountId, { nowMs: this.#runtime.now(), isKept });
    if (isKept) this.#wallets.set(accountId, wallet);
    return wallet;
  }

  /** Records an unmet hold for the next refill. */
  #holdNothing(
    wallet: OpenWallet,
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
      this.#cancelRecalls = this.#runtime.after(ROUND_MS, () => this.#answerRecalls());
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
  ): ReadonlyMap<OpenWallet, ReturnedCredit> {
    const nowMs = this.#runtime.now();
    const spared = new Map<OpenWallet, ReturnedCredit>();
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
  async #return(epoch: Epoch, spared: ReadonlyMap<OpenWallet, ReturnedCredit>): Promise<void> {
    if (spared.size === 0) return;
    const given = { returns: [...spared.values()], atMs: this.#runtime.wallMs() };
    const returned = new Set(
      await this.#transactions.returnParts(epoch, given).catch((error: unknown) => {
        this.#flushLoop.report(error);
        return [];
      }),
    );
    if (returned.size > 0) this.#parts.recorded?.();
    if (this.#flushLoop.epoch !== epoch) return;
    for (const wallet of spared.keys()) {
      const isReturned = returned.has(wallet.accountId);
      wallet.isClosing = false;
      if (isReturned && wallet.waiters === null) continue;
      wallet.isUncertain = !isReturned;
      this.#refills.request(wallet);
    }
  }

  /** Wallets that are dry here while other nodes have some. */
  #dryOf(
    wallets: readonly OpenWallet[],
    requests: readonly LeaseRequest[],
    answers: readonly LeaseGrant[],
  ): readonly DryWallet[] {
    if (this.#parts.recalls !== true) return [];
    return wallets.flatMap((wallet, index) => {
      const request = requests[index];
      const answer = answers[index];
      const isDry = request !== undefined && answer !== undefined && isDryHere(request, answer);
      return isDry ? [{ wallet, request }] : [];
    });
  }

  async #refill(wallets: readonly OpenWallet[]): Promise<void> {
    const epoch = await this.#flushLoop.resume();
    const nowMs = this.#runtime.now();
    const { minSliceN, smallestN, nodeTimeoutMs } = this.#settings;
    // Calls of keys are served for so long without the store.
    const leasing = { minSliceN, leasedMs: nodeTimeoutMs / 2 };
    const requests = wallets.map((wallet) => leaseRequestOf(wallet, nowMs, leasing));
    const terms = { minSliceN, smallestN, atMs: this.#agreedMs(), month: this.#usage.month };
    const recallable =
      this.#parts.recalls === true
        ? wallets.filter((wallet) => mayRecall(wallet, nowMs)).map(({ accountId }) => accountId)
        : [];
    const answers = await this.#transactions.refill(epoch, { requests, terms, recallable });
    const dry = this.#dryOf(wallets, requests, answers ?? []);
    if (dry.length > 0) this.#parts.recorded?.();
    if (answers === null) this.#flushLoop.fence(epoch);
    if (answers === null || this.#flushLoop.epoch !== epoch)
      throw new Error("this node's epoch is over: it joins again");
    const at = { nowMs: this.#runtime.now(), month: terms.month };
    for (const [index, wallet] of wallets.entries()) {
      const answer = answers[index];
      if (answer !== undefined) receive(wallet, answer, at);
      wallet.retryAtMs = at.nowMs + this.#settings.flushIntervalMs;
    }
    for (const each of dry) awaitRecall(each, nowMs);
  }

  #refillFailed(wallets: readonly OpenWallet[], error: unknown): void {
    for (const wallet of wallets) {
      wallet.state = "unreachable";
      wallet.isUncertain = true;
    }
    this.#flushLoop.report(error);
  }
}
