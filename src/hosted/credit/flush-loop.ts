// What a node does with the store all the time: it writes what was spent, returns what lies idle,
// looks whether the others live, and begins anew when it was taken for dead. Knows nothing of
// calls.

import { chunks } from "../../ledger/ledger.ts";
import type { Runtime } from "../../runtime.ts";
import type { Store } from "../../store/store.ts";
import { closeLeases, type Epoch } from "./lease.ts";
import {
  closeEnded,
  type FlushBatch,
  flush,
  join,
  leave,
  markDead,
  type NodeHeartbeat,
  type NodeIdentity,
  othersAlive,
} from "./node.ts";
import type { RefillBatcher } from "./refill-batcher.ts";
import { forgetCounters, type UsageBuffer } from "./usage-buffer.ts";
import { mayHaveRunOut, type OpenWallet, orphan } from "./wallet.ts";

/** What the cycle works with. */
export interface FlushLoopParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly node: NodeIdentity;
  readonly settings: {
    readonly flushIntervalMs: number;
    readonly nodeTimeoutMs: number;
    readonly idleMs: number;
    readonly maxWallets: number;
    readonly smallestN: number;
  };
  readonly wallets: Map<string, OpenWallet>;
  readonly book: UsageBuffer;
  readonly refills: RefillBatcher;
  readonly onError: (error: unknown) => void;
}

/**
 * A batch that is being written: never changed once it was tried, so that it is clear what a try
 * with a lost answer wrote.
 */
interface Frozen extends FlushBatch {
  readonly firstTriedAtMs: number;
}

interface Seen extends NodeHeartbeat {
  /** How long it has not been heard of, counting only time in which the store was read. */
  readonly silentMs: number;
}

/** Wallets looked at in one cycle, as a part of all of them, and at least. */
const LOOKED_AT = 1 / 20;
const LEAST_LOOKED_AT = 200;
/** Where so large a part of the bound is in use, wallets count as idle sooner. */
const CROWDED = 0.8;
const SOONER = 10;
/** Looks at the others so many times in the time after which they count as dead. */
const LOOKS = 10;
/** One look in so many closes what earlier ones may have missed. */
const THOROUGH = 10;

/** The cycle of one node. */
export class FlushLoop {
  /** The epoch that is leased for; null = it is over, and the next one has not begun. */
  epoch: Epoch | null;
  /** When (monotonic) this node stops spending unless the store has heard of it by then. */
  stopAtMs: number;
  readonly #parts: FlushLoopParts;
  #seq = 0n;
  #frozen: Frozen | null = null;
  #spending: OpenWallet[] = [];
  #lostN = 0;
  #running: Promise<void> = Promise.resolve();
  #turning: Promise<void> = Promise.resolve();
  #cancelTimer: () => void = () => undefined;
  #isClosed = false;
  /** The flush after the one under way; null = nobody asked for it. */
  #next: Promise<void> | null = null;
  #returning: readonly OpenWallet[] = [];
  #look: Iterator<OpenWallet> | null = null;
  #seen: ReadonlyMap<string, Seen> = new Map();
  #lookedAtMs: number;
  #looks = 0;

  constructor(
    parts: FlushLoopParts,
    { epoch, startedAtMs }: { readonly epoch: Epoch; readonly startedAtMs: number },
  ) {
    this.#parts = parts;
    this.epoch = epoch;
    this.stopAtMs = startedAtMs + parts.settings.nodeTimeoutMs / 2;
    this.#lookedAtMs = startedAtMs;
    this.#arm();
  }

  /** A wallet has begun to spend since the last batch. */
  spends(wallet: OpenWallet): void {
    wallet.isSpending = true;
    this.#spending.push(wallet);
  }

  /** Something was served that can no longer be charged. */
  lose(amountN: number): void {
    this.#lostN += amountN;
  }

  /** Tells of a failure, unless the node is stopping. */
  report(error: unknown): void {
    if (!this.#isClosed) this.#parts.onError(error);
  }

  /**
   * Writes what was used since the last batch; one at a time. Whoever asks while one is under way
   * shares the next one.
   */
  flush(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      const run = this.#flush().finally(() => this.#tellLost());
      this.#running = run.catch(() => undefined);
      return run;
    });
    return this.#next;
  }

  /** Whether a batch has been taken and is not known to be written. */
  get isWriting(): boolean {
    return this.#frozen !== null;
  }

  /** What was served and is not written, nano-USD. */
  unwrittenN(): number {
    let sumN = 0;
    for (const { amountN } of this.#frozen?.spent ?? []) sumN += Number(amountN);
    for (const wallet of this.#spending) sumN += wallet.spentN;
    return sumN;
  }

  /**
   * This epoch is over: whatever it held belongs to others, and what it spent since the last batch
   * is lost.
   */
  fence(epoch: Epoch): void {
    if (this.epoch !== epoch) return;
    this.epoch = null;
    this.stopAtMs = Number.NEGATIVE_INFINITY;
    for (const { amountN } of this.#frozen?.spent ?? []) this.#lostN += Number(amountN);
    for (const wallet of this.#spending) this.#lostN += wallet.spentN;
    for (const wallet of this.#parts.wallets.values()) orphan(wallet);
    this.#parts.book.drain();
    this.#frozen = null;
    this.#spending = [];
    this.#returning = [];
  }

  async close(): Promise<void> {
    this.#cancelTimer();
    this.#isClosed = true;
    const { store, runtime } = this.#parts;
    await this.#turning;
    await this.flush();
    const { epoch } = this;
    this.stopAtMs = Number.NEGATIVE_INFINITY;
    if (epoch === null) return;
    await leave(store, epoch);
    await closeEnded(store, runtime.wallMs());
    for (const wallet of this.#parts.wallets.values()) orphan(wallet);
  }

  #arm(): void {
    const { runtime, settings } = this.#parts;
    this.#cancelTimer = runtime.after(settings.flushIntervalMs, () => {
      this.#turning = this.#turn()
        .catch((error: unknown) => this.report(error))
        .then(() => (this.#isClosed ? undefined : this.#arm()));
    });
  }

  async #turn(): Promise<void> {
    await this.flush();
    await this.#returnIdle();
    await this.#lookAtOthers();
  }

  async #flush(): Promise<void> {
    const { store, runtime, book, settings } = this.#parts;
    book.tick(runtime.wallMs());
    for (let batches = 0; batches < 2; batches++) {
      if (this.epoch === null) await this.#rejoin();
      const { epoch } = this;
      if (epoch === null) return;
      const isRetry = this.#frozen !== null;
      const triedAtMs = runtime.now();
      const batch = this.#frozen ?? this.#freeze(triedAtMs);
      this.#frozen = batch;
      const outcome = await flush(store, epoch, { batch, wallMs: runtime.wallMs() });
      if (this.epoch !== epoch) continue;
      if (outcome === "written") {
        this.#seq = batch.seq;
        this.#frozen = null;
        this.stopAtMs = batch.firstTriedAtMs + settings.nodeTimeoutMs / 2;
        if (!isRetry) return;
      } else {
        this.fence(epoch);
      }
    }
  }

  #freeze(nowMs: number): Frozen {
    const { settings, runtime, book } = this.#parts;
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
    return {
      seq: this.#seq + 1n,
      spent,
      runningOut: { accountIds, smallestN, atMs: runtime.wallMs() },
      ...book.drain(),
      firstTriedAtMs: nowMs,
    };
  }

  #tellLost(): void {
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
    const { store, runtime, node, settings } = this.#parts;
    if (this.#isClosed) return;
    const startedAtMs = runtime.now();
    this.epoch = await join(store, node, runtime.wallMs());
    this.#seq = 0n;
    this.stopAtMs = startedAtMs + settings.nodeTimeoutMs / 2;
  }

  /** Returns the leases of wallets that nobody uses, and forgets them. */
  async #returnIdle(): Promise<void> {
    const { store, runtime, refills } = this.#parts;
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
      await store.transaction((tx) => closeLeases(tx, closing, runtime.wallMs()));
      for (const wallet of part) {
        wallet.isClosing = false;
        wallet.grantedN = 0;
        wallet.isInDoubt = false;
        if (this.#isIdle(wallet)) this.#forget(wallet);
        else refills.ask(wallet);
      }
    }
    this.#returning = [];
  }

  /**
   * The next wallets whose leases are to be returned; those without one are forgotten on the way.
   */
  #idle(): readonly OpenWallet[] {
    const { wallets } = this.#parts;
    const idle: OpenWallet[] = [];
    const count = Math.max(LEAST_LOOKED_AT, Math.ceil(wallets.size * LOOKED_AT));
    this.#look ??= wallets.values();
    for (let looked = 0; looked < count; looked++) {
      const next = this.#look.next();
      if (next.done === true) {
        this.#look = null;
        return idle;
      }
      if (!this.#isIdle(next.value)) continue;
      if (next.value.grantedN === 0 && !next.value.isInDoubt) {
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

  #isIdle(wallet: OpenWallet): boolean {
    const { runtime, settings, wallets } = this.#parts;
    const idleMs =
      wallets.size > settings.maxWallets * CROWDED ? settings.idleMs / SOONER : settings.idleMs;
    const isFree =
      wallet.heldN === 0 &&
      wallet.orphanN === 0 &&
      wallet.spentN === 0 &&
      wallet.freeNewCu === 0 &&
      wallet.freeHeldCu === 0;
    return (
      isFree &&
      !wallet.isAsking &&
      wallet.waiters === null &&
      runtime.now() - wallet.usedAtMs >= idleMs
    );
  }

  #forget(wallet: OpenWallet): void {
    forgetCounters(wallet);
    this.#parts.wallets.delete(wallet.accountId);
  }

  /**
   * Finds nodes that are silent for too long, by what was seen of them here: no clock of another
   * machine counts.
   */
  async #lookAtOthers(): Promise<void> {
    const { store, runtime, node, settings } = this.#parts;
    const everyMs = settings.nodeTimeoutMs / LOOKS;
    const sinceMs = runtime.now() - this.#lookedAtMs;
    if (sinceMs < everyMs) return;
    const alive = await othersAlive(store, node.id);
    this.#lookedAtMs = runtime.now();
    const seen = [...alive].map(
      ([id, now]) =>
        [id, seenAgain(this.#seen.get(id), now, Math.min(sinceMs, 2 * everyMs))] as const,
    );
    this.#seen = new Map(seen);
    const silent = seen.filter(([, { silentMs }]) => silentMs >= settings.nodeTimeoutMs);
    for (const [id, sighting] of silent) await markDead(store, id, sighting);
    this.#looks += 1;
    if (silent.length > 0 || this.#looks % THOROUGH === 0)
      await closeEnded(store, runtime.wallMs());
  }
}

function seenAgain(before: Seen | undefined, now: NodeHeartbeat, sinceMs: number): Seen {
  const isSilent = before?.epoch === now.epoch && before.flushSeq === now.flushSeq;
  return { ...now, silentMs: isSilent ? before.silentMs + sinceMs : 0 };
}
