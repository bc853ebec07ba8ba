// The periodic work of a node on the store: writes what was spent, and joins again after it was
// declared dead. Beside that, and never in its way, returns idle leases and detects dead nodes.
// Knows nothing of calls.

import { chunks } from "../../shared/ledger/ledger.ts";
import { DeadNodeWatch } from "../../shared/nodes/dead-nodes.ts";
import { type Epoch, join, leave } from "../../shared/nodes/node-rows.ts";
import { urgently } from "../../shared/store/store.ts";
import { type CreditContext, closeEnded } from "./credit-store.ts";
import type { FlushBatch } from "./node.ts";
import type { RefillBatcher } from "./refill-batcher.ts";
import { forgetCounters, type UsageBuffer } from "./usage-buffer.ts";
import { mayHaveRunOut, orphan, type Wallet } from "./wallet.ts";

/** What the loop writes, beside what all of credit works with. */
export interface FlushLoopParts extends CreditContext {
  readonly wallets: Map<string, Wallet>;
  readonly usage: UsageBuffer;
  readonly refills: RefillBatcher;
}

/** How this node joined. */
export interface FlushLoopStart {
  readonly epoch: Epoch;
  readonly startedAtMs: number;
}

/**
 * A batch that is being written: never changed after its first try, so that a repetition with a
 * lost answer is known to have written the same.
 */
interface PendingBatch extends FlushBatch {
  readonly firstTriedAtMs: number;
  /** Whose leases and counters have to stay until it is written. */
  readonly accountIds: ReadonlySet<string>;
}

/** Wallets scanned in one turn, as a share of all, and the least number of them. */
const SCANNED_SHARE = 1 / 20;
const MIN_SCANNED = 200;
/** From this share of the maximum on, wallets count as idle sooner. */
const CROWDED = 0.8;
const CROWDED_SPEEDUP = 10;

const LEASES_MISSING =
  "the store does not have leases from which this node has served: its epoch ends";

const TOO_LONG_SILENT = "the store has not been reached for too long: nothing is leased";

/** The shortest time between two flushes, as a part of the usual one. */
const LEAST_PAUSE = 1 / 4;

/** Every so many checks all ended leases are closed, in case an earlier check missed one. */
const SWEEP_EVERY = 10;

/** The flush loop of one node. */
export class FlushLoop {
  /** The epoch of this node's leases; null = it is over, and the next one has not begun. */
  epoch: Epoch | null;
  /** When the last flush that succeeded began, on the monotonic clock. */
  heardAtMs: number;
  /** When this node stops spending unless a flush has succeeded by then, on the monotonic clock. */
  stopAtMs: number;
  readonly #parts: FlushLoopParts;
  #seq = 0n;
  #pending: PendingBatch | null = null;
  #spending: Wallet[] = [];
  #lostN = 0;
  #running: Promise<void> = Promise.resolve();
  #turning: Promise<void> = Promise.resolve();
  /** The work beside the flushes; null = there is none. */
  #upkeep: Promise<void> | null = null;
  #cancelTimer: () => void = () => undefined;
  #isClosed = false;
  /** A flush that began when nothing could be spent any more has failed; none succeeded since. */
  #isCutOff = false;
  /** The flush after the one under way; null = not requested. */
  #next: Promise<void> | null = null;
  #returning: readonly Wallet[] = [];
  #scan: Iterator<Wallet> | null = null;
  readonly #deadNodes: DeadNodeWatch;
  #checks = 0;

  constructor(parts: FlushLoopParts, { epoch, startedAtMs }: FlushLoopStart) {
    this.#parts = parts;
    this.epoch = epoch;
    this.heardAtMs = startedAtMs;
    this.stopAtMs = startedAtMs + parts.settings.nodeTimeoutMs / 2;
    const { store, runtime, node, settings } = parts;
    const { nodeTimeoutMs } = settings;
    this.#deadNodes = new DeadNodeWatch({
      store: urgently(store),
      runtime,
      nodeId: node.id,
      nodeTimeoutMs,
    });
    this.#arm();
  }

  /** A wallet spends for the first time since the last batch. */
  spends(wallet: Wallet): void {
    wallet.isSpending = true;
    this.#spending.push(wallet);
  }

  /** Counts an amount that was served and can no longer be charged. */
  lose(amountN: number): void {
    this.#lostN += amountN;
  }

  /** Reports a failure, unless the node is stopping. */
  report(error: unknown): void {
    if (!this.#isClosed) this.#parts.onError(error);
  }

  /**
   * Writes the usage since the last batch; one flush at a time. Calls during a flush share the next
   * one.
   */
  flush(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      const run = this.#tryToFlush().finally(() => this.#reportLost());
      this.#running = run.catch(() => undefined);
      return run;
    });
    return this.#next;
  }

  /**
   * Waits until credit may be spent again. If this process stood still, or the store was slow to
   * answer, asks the store first. Throws at once where the store was asked since in vain.
   */
  async resume(): Promise<Epoch> {
    if (!this.maySpend()) {
      if (this.#isCutOff) throw new Error(TOO_LONG_SILENT);
      await this.flush();
    }
    const { epoch } = this;
    if (epoch === null || !this.maySpend()) throw new Error(TOO_LONG_SILENT);
    return epoch;
  }

  /** Whether what is leased may be spent now. */
  maySpend(): boolean {
    return this.epoch !== null && this.#parts.runtime.now() < this.stopAtMs;
  }

  /** Whether a batch is in flight or its result is unknown. */
  get isWriting(): boolean {
    return this.#pending !== null;
  }

  /** The unwritten charges, nano-USD. */
  unwrittenN(): number {
    let sumN = 0;
    for (const { amountN } of this.#pending?.spent ?? []) sumN += Number(amountN);
    for (const wallet of this.#spending) sumN += wallet.spentN;
    return sumN;
  }

  /** Ends an epoch: other nodes close its leases, and spending since the last batch is lost. */
  fence(epoch: Epoch): void {
    if (this.epoch !== epoch) return;
    this.epoch = null;
    this.stopAtMs = Number.NEGATIVE_INFINITY;
    for (const { amountN } of this.#pending?.spent ?? []) this.#lostN += Number(amountN);
    for (const wallet of this.#spending) this.#lostN += wallet.spentN;
    for (const wallet of this.#parts.wallets.values()) orphan(wallet);
    this.#parts.usage.drain();
    this.#pending = null;
    this.#spending = [];
    this.#returning = [];
  }

  async close(): Promise<void> {
    this.#cancelTimer();
    this.#isClosed = true;
    const { store, transactions, runtime } = this.#parts;
    await this.#turning;
    await this.#upkeep;
    await this.flush();
    const { epoch } = this;
    this.stopAtMs = Number.NEGATIVE_INFINITY;
    if (epoch === null) return;
    await leave(store, epoch);
    await closeEnded(transactions, runtime.wallMs());
    for (const wallet of this.#parts.wallets.values()) orphan(wallet);
  }

  #arm(afterMs = this.#parts.settings.flushIntervalMs): void {
    this.#cancelTimer = this.#parts.runtime.after(afterMs, () => {
      this.#turning = this.#turn();
    });
  }

  /** A flush that took long is followed sooner by the next one: it is the sign of life as well. */
  async #turn(): Promise<void> {
    const { runtime, settings } = this.#parts;
    const { flushIntervalMs } = settings;
    const beganAtMs = runtime.now();
    try {
      await this.flush();
      this.#upkeep ??= this.#keepUp();
    } catch (error) {
      this.report(error);
    }
    if (this.#isClosed) return;
    const leftMs = flushIntervalMs - (runtime.now() - beganAtMs);
    this.#arm(Math.max(leftMs, flushIntervalMs * LEAST_PAUSE));
  }

  /** What may take longer than the time between two flushes. */
  async #keepUp(): Promise<void> {
    try {
      await this.#returnIdle();
      await this.#checkOtherNodes();
    } catch (error) {
      this.report(error);
    }
    this.#upkeep = null;
  }

  async #tryToFlush(): Promise<void> {
    const isLastChance = !this.maySpend();
    try {
      await this.#flush();
      this.#isCutOff = false;
      if (isLastChance) this.#parts.refills.heard();
    } catch (error) {
      this.#isCutOff = isLastChance;
      throw error;
    }
  }

  async #flush(): Promise<void> {
    const { transactions, runtime, usage, settings } = this.#parts;
    usage.tick(runtime.wallMs());
    for (let batches = 0; batches < 2; batches++) {
      if (this.epoch === null) await this.#rejoin();
      const { epoch } = this;
      if (epoch === null) return;
      const isRetry = this.#pending !== null;
      const triedAtMs = runtime.now();
      const batch = this.#pending ?? this.#freeze(triedAtMs);
      this.#pending = batch;
      const outcome = await transactions.flush(epoch, { batch, wallMs: runtime.wallMs() });
      if (this.epoch !== epoch) continue;
      if (outcome === "written") {
        this.#seq = batch.seq;
        this.#pending = null;
        this.heardAtMs = batch.firstTriedAtMs;
        this.stopAtMs = batch.firstTriedAtMs + settings.nodeTimeoutMs / 2;
        if (!isRetry) return;
      } else {
        if (outcome === "without leases") this.report(new Error(LEASES_MISSING));
        this.fence(epoch);
      }
    }
  }

  #freeze(nowMs: number): PendingBatch {
    const { settings, usage, agreedMs } = this.#parts;
    const { smallestN } = settings;
    const spent = this.#spending.map(({ accountId, spentN }) => ({
      accountId,
      amountN: BigInt(spentN),
    }));
    const accountIds = this.#spending
      .filter((wallet) => mayHaveRunOut(wallet, smallestN))
      .map((wallet) => wallet.accountId);
    for (const wallet of this.#spending) {
      wallet.spentN = 0;
      wallet.isSpending = false;
    }
    this.#spending = [];
    const used = usage.drain();
    return {
      seq: this.#seq + 1n,
      spent,
      runningOut: { accountIds, smallestN, atMs: agreedMs() },
      ...used,
      firstTriedAtMs: nowMs,
      accountIds: new Set([
        ...spent.map((row) => row.accountId),
        ...used.free.map((row) => row.account_id),
      ]),
    };
  }

  #reportLost(): void {
    const { node, onError } = this.#parts;
    if (this.#lostN > 0)
      onError(
        new Error(
          `node ${node.id} was taken for dead: ${this.#lostN} nano-USD that it served after ` +
            "its last write are not billed",
        ),
      );
    this.#lostN = 0;
  }

  async #rejoin(): Promise<void> {
    const { store, transactions, runtime, node, processId, settings } = this.#parts;
    if (this.#isClosed) return;
    const startedAtMs = runtime.now();
    const epoch = await join(store, node, {
      wallMs: runtime.wallMs(),
      replaces: null,
      processId,
    });
    if (epoch === null)
      throw new Error(
        `another process has taken over as node ${node.id}: this one spends no credit while that ` +
          "one lives. Give each its own cluster.node_id",
      );
    await closeEnded(transactions, runtime.wallMs());
    this.epoch = epoch;
    this.#seq = 0n;
    this.heardAtMs = startedAtMs;
    this.stopAtMs = startedAtMs + settings.nodeTimeoutMs / 2;
  }

  /** Returns the leases of idle wallets, and forgets those wallets. */
  async #returnIdle(): Promise<void> {
    const { transactions, runtime, refills } = this.#parts;
    if (this.#returning.length === 0) this.#returning = this.#idle();
    for (const part of chunks(this.#returning)) {
      const { epoch } = this;
      if (epoch === null) return;
      const closing = {
        kind: "idle",
        epoch,
        accountIds: part.map((wallet) => wallet.accountId),
        seq: this.#seq,
      } as const;
      await transactions.close(closing, runtime.wallMs());
      // Meanwhile the node may have joined anew, and these wallets may have leases of that epoch.
      if (this.epoch !== epoch) return;
      for (const wallet of part) {
        wallet.isClosing = false;
        wallet.grantedN = 0;
        wallet.isUncertain = false;
        if (this.#isIdle(wallet)) this.#forget(wallet);
        else refills.request(wallet);
      }
    }
    this.#returning = [];
  }

  /**
   * The next wallets whose leases are to be returned; idle wallets without a lease are forgotten.
   */
  #idle(): readonly Wallet[] {
    const { wallets } = this.#parts;
    const idle: Wallet[] = [];
    const count = Math.max(MIN_SCANNED, Math.ceil(wallets.size * SCANNED_SHARE));
    this.#scan ??= wallets.values();
    for (let looked = 0; looked < count; looked++) {
      const next = this.#scan.next();
      if (next.done === true) {
        this.#scan = null;
        return idle;
      }
      if (!this.#isIdle(next.value)) continue;
      if (next.value.grantedN === 0 && !next.value.isUncertain) {
        this.#forget(next.value);
      } else {
        next.value.isClosing = true;
        next.value.availableN = 0;
        next.value.lowWaterN = 0;
        idle.push(next.value);
      }
    }
    return idle;
  }

  #isIdle(wallet: Wallet): boolean {
    const { runtime, settings, wallets } = this.#parts;
    const idleMs =
      wallets.size > settings.maxWallets * CROWDED
        ? settings.idleMs / CROWDED_SPEEDUP
        : settings.idleMs;
    const isFree =
      wallet.heldN === 0 &&
      wallet.orphanN === 0 &&
      wallet.spentN === 0 &&
      wallet.freeNewCu === 0 &&
      wallet.freeHeldCu === 0;
    return (
      isFree &&
      this.#pending?.accountIds.has(wallet.accountId) !== true &&
      !wallet.isRefilling &&
      !wallet.isClosing &&
      wallet.waiters === null &&
      runtime.now() - wallet.usedAtMs >= idleMs
    );
  }

  #forget(wallet: Wallet): void {
    forgetCounters(wallet);
    this.#parts.wallets.delete(wallet.accountId);
  }

  /** Finds nodes that died; what they had leased returns. */
  async #checkOtherNodes(): Promise<void> {
    const { transactions, runtime } = this.#parts;
    const died = await this.#deadNodes.check();
    if (died === null) return;
    this.#checks += 1;
    if (died > 0 || this.#checks % SWEEP_EVERY === 0)
      await closeEnded(transactions, runtime.wallMs());
  }
}
