// Changes of channels by their calls, under the locks of the channels' rows. Changes requested at
// the same time share a transaction: one statement locks and reads all rows, a second one all
// holds, and the changed rows are written together at the end. Decides nothing.
import { type RawBuilder, sql } from "kysely";
import type { Runtime } from "../../runtime.ts";
import type { Tx } from "../../shared/ledger/ledger.ts";
import { isPostgres } from "../../shared/store/engine.ts";
import type { Store } from "../../shared/store/store.ts";
import {
  type CallKey,
  callInsertion,
  deleteOldCalls,
  findCall,
  isCharged,
  type RecordedCall,
  takeRerun,
} from "./call-record.ts";
import type { ChannelRecord, SessionChannel } from "./channel-record.ts";
import type { Hex } from "./descriptor.ts";
import {
  type CallHold,
  type CallProcesses,
  holdDeletion,
  holdInsertion,
  type ReadHold,
  readHolds,
} from "./holds.ts";
import type { LiveChannels } from "./live-channels.ts";

const MAX_AT_ONCE = 64;

/** What a writer works with. */
export interface ChannelWriterParts {
  readonly runtime: Pick<Runtime, "wallMs">;
  readonly store: Pick<Store, "transaction">;
  readonly channels: ChannelRecord;
  readonly processes: CallProcesses;
  readonly live: LiveChannels;
}

interface QueuedChange {
  readonly id: Hex;
  /** Runs the change, and keeps its result. */
  readonly run: (channel: LockedChannel) => Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Writes changes of channels. */
export class ChannelWriter {
  readonly #parts: ChannelWriterParts;
  readonly #queue: QueuedChange[] = [];
  #isWriting = false;
  /** Own holds whose calls have ended, and whose rows may still be there. */
  readonly #ended = new Set<CallHold>();
  #holds = 0n;

  constructor(parts: ChannelWriterParts) {
    this.#parts = parts;
  }

  /**
   * Runs a change of a channel. Rejects if the store fails, or if a change in the same transaction
   * throws: then nothing was written. The store may run it again.
   */
  run<T>(id: Hex, change: (channel: LockedChannel) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let result: { readonly value: T } | null = null;
      this.#queue.push({
        id,
        run: async (channel) => {
          result = { value: await change(channel) };
        },
        resolve: () => {
          if (result === null) reject(new Error(`no change of channel ${id} was run`));
          else resolve(result.value);
        },
        reject,
      });
      if (!this.#isWriting) void this.#writeAll();
    });
  }

  /** Removes the hold of a call that has ended; a failure is repeated later. */
  async release(hold: CallHold): Promise<void> {
    this.#ended.add(hold);
    try {
      await this.run(hold.channel_id, async (channel) => channel.removeHold(hold));
      this.#ended.delete(hold);
    } catch {
      // The store fails, which others report.
    }
  }

  /** Repeats removals that have failed. */
  async releaseAgain(): Promise<void> {
    await Promise.all([...this.#ended].map((hold) => this.release(hold)));
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    while (this.#queue.length > 0) {
      // All changes that are asked for by now share one commit.
      await new Promise(setImmediate);
      const group = this.#queue.splice(0, MAX_AT_ONCE);
      try {
        const written = await this.#parts.store.transaction((tx) => this.#write(tx, group));
        for (const { record } of written) this.#parts.live.note(record);
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#isWriting = false;
  }

  async #write(tx: Tx, group: readonly QueuedChange[]): Promise<readonly LockedChannel[]> {
    const { runtime, channels, processes } = this.#parts;
    const ids = [...new Set(group.map(({ id }) => id))];
    const records = await channels.lockAll(tx, ids);
    const holds = Map.groupBy(await readHolds(tx, ids), ({ channel_id }) => channel_id);
    const news = new ChannelNews(tx, channels, runtime.wallMs());
    const locked = new Map(
      records.map((record) => {
        const parts = { record, holds: holds.get(record.id) ?? [], processes, news };
        return [record.id, new LockedChannel(parts, () => ++this.#holds)];
      }),
    );
    for (const { id, run } of group) {
      const channel = locked.get(id);
      if (channel === undefined) throw new Error(`channel ${id} is gone from the store`);
      await run(channel);
    }
    await news.write();
    return [...locked.values()];
  }
}

interface LockedParts {
  readonly record: SessionChannel;
  readonly holds: readonly ReadHold[];
  readonly processes: CallProcesses;
  readonly news: ChannelNews;
}

/** What a call changes of its channel's row. */
type Spending = Partial<
  Pick<SessionChannel, "spent_units" | "vouchers" | "calls" | "owed_since" | "look_at">
>;

/** A channel under the lock of its row, with what calls under way hold of it. */
export class LockedChannel {
  readonly #news: ChannelNews;
  readonly #processes: CallProcesses;
  readonly #nextNumber: () => bigint;
  #record: SessionChannel;
  #holds: readonly CallHold[];
  /** Sum of the holds whose processes may have ended: they were not seen to live yet. */
  readonly doubtfulUnits: bigint;

  /** Removes what processes held that have ended. */
  constructor({ record, holds, processes, news }: LockedParts, nextNumber: () => bigint) {
    this.#news = news;
    this.#processes = processes;
    this.#nextNumber = nextNumber;
    this.#record = record;
    const {
      ended = [],
      doubtful = [],
      lives = [],
    } = Object.groupBy(holds, (hold) => processes.stateOf(hold));
    news.endedHolds.push(...ended);
    this.#holds = [...lives, ...doubtful];
    this.doubtfulUnits = sumOf(doubtful);
  }

  get record(): SessionChannel {
    return this.#record;
  }

  /** The prices of calls under way. */
  get holds(): readonly CallHold[] {
    return this.#holds;
  }

  get heldUnits(): bigint {
    return sumOf(this.#holds);
  }

  change(spending: Spending): void {
    this.#record = { ...this.#record, ...spending };
    this.#news.records.set(this.#record.id, this.#record);
  }

  /** Holds the price of a call; null = others would take this process for ended. */
  addHold(call: CallKey & Pick<CallHold, "units">): CallHold | null {
    const own = this.#processes.ownEpoch;
    if (own === null) return null;
    const { nodeId: node_id, epoch } = own;
    const hold = { ...call, node_id, epoch, number: this.#nextNumber() };
    this.#news.newHolds.push(hold);
    this.#holds = [...this.#holds, hold];
    return hold;
  }

  /** Removes the hold of a call that is charged or has ended. */
  removeHold(hold: CallHold): void {
    this.#news.endedHolds.push(hold);
    this.#holds = this.#holds.filter(
      ({ number, epoch, node_id }) =>
        number !== hold.number || epoch !== hold.epoch || node_id !== hold.node_id,
    );
  }

  addCall(call: RecordedCall): void {
    this.#news.newCalls.push(call);
  }

  /** The newest kept call of a voucher and a request; null = there is none. */
  async findCall(key: CallKey): Promise<RecordedCall | null> {
    return findCall(await this.#news.write(), key);
  }

  /** Whether the very same request was charged. */
  async isCharged(key: CallKey): Promise<boolean> {
    return isCharged(await this.#news.write(), key);
  }

  /** Uses one of a call's free repetitions; false = there is none left. */
  async takeRerun(call: RecordedCall): Promise<boolean> {
    return takeRerun(await this.#news.write(), call);
  }
}

/** What is still to be written of a group of changes. */
class ChannelNews {
  readonly records = new Map<Hex, SessionChannel>();
  readonly newHolds: CallHold[] = [];
  readonly endedHolds: CallHold[] = [];
  readonly newCalls: RecordedCall[] = [];
  readonly #tx: Tx;
  readonly #channels: ChannelRecord;
  readonly #atMs: number;

  constructor(tx: Tx, channels: ChannelRecord, atMs: number) {
    this.#tx = tx;
    this.#channels = channels;
    this.#atMs = atMs;
  }

  /** Writes everything; returns the transaction, which reads it from then on. */
  async write(): Promise<Tx> {
    const tx = this.#tx;
    const records = [...this.records.values()];
    const newHolds = this.newHolds.splice(0);
    const endedHolds = this.endedHolds.splice(0);
    const newCalls = this.newCalls.splice(0);
    this.records.clear();
    await runTogether(tx, [
      ...(newHolds.length > 0 ? [sql`${holdInsertion(tx, newHolds)}`] : []),
      ...(endedHolds.length > 0 ? [holdDeletion(endedHolds)] : []),
      ...(newCalls.length > 0 ? [sql`${callInsertion(tx, newCalls, this.#atMs)}`] : []),
      ...(records.length > 0 ? [this.#channels.spending(records)] : []),
    ]);
    for (const call of newCalls) await deleteOldCalls(tx, call);
    return tx;
  }
}

/** Runs changes of different rows: on a server as one statement. */
async function runTogether(tx: Tx, changes: readonly RawBuilder<unknown>[]): Promise<void> {
  const [last, ...others] = changes.toReversed();
  if (last === undefined) return;
  if (!isPostgres(tx) || others.length === 0) {
    for (const change of changes) await change.execute(tx);
    return;
  }
  const named = others.map((change, at) => sql`${sql.ref(`change_${at}`)} as (${change})`);
  await sql`with ${sql.join(named)} ${last}`.execute(tx);
}

function sumOf(holds: readonly CallHold[]): bigint {
  return holds.reduce((sum, { units }) => sum + units, 0n);
}
