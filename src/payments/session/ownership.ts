// Which process takes the calls of a channel. One process alone holds amounts in its memory; when
// another one needs the channel, the first writes down what its calls hold, and from then on every
// call is written before it is made, until one process has been alone for some seconds. Ownership
// only decides what is accepted: charges are decided by the channel's row.
import { recordChange } from "../../cluster/change-log.ts";
import type { Epoch, Presence } from "../../cluster/node-rows.ts";
import type { Tx } from "../../ledger/ledger.ts";
import type { Runtime } from "../../runtime.ts";
import type { Store } from "../../store/store.ts";
import { type CallKey, isCharged } from "./call-record.ts";
import { requiredFor } from "./channel.ts";
import type { ChannelRecord, SessionChannel } from "./channel-record.ts";
import type { Hex } from "./descriptor.ts";
import { type HeldCall, heldOf, type LiveChannel, type LiveChannels } from "./live-channels.ts";
import {
  type ChannelOwner,
  deleteHold,
  deleteHoldsOf,
  forgetHolds,
  insertHolds,
  type OwnerRead,
  type ProcessSeen,
  type RecordedHold,
  readHolds,
  readOwner,
  wantedOf,
  writeOwner,
} from "./ownership-record.ts";
import { pause } from "./pause.ts";

/** A call that is to be accepted. */
export interface EnteringCall<T> {
  /** Null = a voucher without a call. */
  readonly key: Omit<CallKey, "channelId"> | null;
  /** What the call is known by in `underWay`. */
  readonly underWayKey: string;
  /** Its price, and what its voucher promises. */
  readonly units: bigint;
  readonly promised: bigint;
  /** Decides, and holds the price in memory. */
  readonly accept: () => T;
}

/**
 * What came of a call: `own` = this process alone takes the calls now; `repeated` = the same
 * request has begun or ended meanwhile; `busy` = another process did not let go of the channel in
 * time.
 */
export type Entered<T> =
  | { readonly kind: "own" | "repeated" | "busy" }
  | { readonly kind: "accepted"; readonly value: T };

/** Which channels are this process's own. */
export interface Ownership {
  /** Whether calls may be accepted from memory. No I/O. */
  isOwn(live: LiveChannel): boolean;
  /** Makes a channel this process's own, or accepts a call under its lock in the store. */
  enter<T>(live: LiveChannel, call: EnteringCall<T>): Promise<Entered<T>>;
  /** Whether no other process has calls of a channel under way; if it may, it is asked to tell. */
  isQuiet(channelId: Hex): Promise<boolean>;
  /** A call has ended whose hold was written, and was not removed with its charge. */
  ended(live: LiveChannel, held: HeldCall): void;
  /** Another process may wait for a channel. */
  wanted(channelId: Hex): void;
  close(): Promise<void>;
}

export interface OwnershipParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly channels: ChannelRecord;
  readonly live: LiveChannels;
  /** How long a call waits for another process. */
  readonly waitMs: number;
  /** Null = this process is not among the living right now. */
  readonly presence: () => Presence | null;
  /** Between two signs of life of a process. */
  readonly heartbeatMs: number;
  /** Another process has something to hear. */
  readonly onWritten: () => void;
}

/** Ownership where no other process can have the store. */
export const ONLY_PROCESS: Ownership = {
  isOwn: () => true,
  enter: async () => ({ kind: "own" }),
  isQuiet: async () => true,
  ended: () => {},
  wanted: () => {},
  close: async () => {},
};

/** A process that was alone for this long owns a channel. */
const ALONE_MS = 5_000;
/** How often channels that others wait for are looked for, besides being told. */
const TICK_MS = 1_000;
const FORGET_MS = 600_000;
const FORGOTTEN_AFTER_MS = 86_400_000;
/** Calls of one channel that wait for each other in this process. */
const MAX_QUEUED = 256;
const FIRST_PAUSE_MS = 10;
const LAST_PAUSE_MS = 250;
/** Processes whose signs of life are remembered. */
const MAX_SEEN = 1_000;
/** Signs of life in which a process owns what is its own, and after which it counts as ended. */
const FRESH_BEATS = 3;
const LEAST_FRESH_MS = 3_000;
const GONE_BEATS = 5;
const LEAST_GONE_MS = 5_000;

/** Ownership among processes on one store. */
export function createOwnership(parts: OwnershipParts): Ownership {
  return new SharedOwnership(parts);
}

/** A process that may take a call. */
export interface AccessInput {
  readonly me: Epoch;
  /** Whether its signs of life are written in time. */
  readonly isFresh: boolean;
  /** Calls of other processes under way. */
  readonly holds: number;
}

/**
 * How a process may take a call, by what the store says: `own` = from memory, `shared` = under the
 * lock of the channel, `wait` = not before another process has let go.
 */
export function accessOf(
  { owner, nowMs }: OwnerRead,
  { me, isFresh, holds }: AccessInput,
): "own" | "shared" | "wait" {
  const isMine = owner !== null && isSame(owner, me);
  const isTaken = owner !== null && owner.flushSeq !== null && !isMine;
  if (isTaken && owner.isExclusive) return "wait";
  if (!isFresh || holds > 0 || isTaken) return "shared";
  if (!isMine) return "own";
  if (owner.isExclusive) return owner.isWanted ? "shared" : "own";
  // A clock that was set back says nothing.
  return nowMs - owner.sinceMs >= ALONE_MS || nowMs < owner.sinceMs ? "own" : "shared";
}

/** A channel under its lock, and who uses it. */
interface Locked {
  readonly record: SessionChannel;
  readonly read: OwnerRead;
  /** Holds of other processes that live. */
  readonly others: readonly RecordedHold[];
  /** The amount of those among them that may have ended: they were not seen to live yet. */
  readonly doubtful: bigint;
}

/** Signs of life of another process. */
interface Observation {
  readonly flushSeq: bigint;
  /** Since when they are the same. */
  readonly sinceMs: number;
  /** When they were read last. */
  readonly readMs: number;
  /** Whether one came between two readings. */
  readonly isAlive: boolean;
}

type Step<T> = Entered<T> | { readonly kind: "wait" };

interface Removal {
  readonly live: LiveChannel;
  readonly held: HeldCall;
}

class SharedOwnership implements Ownership {
  readonly #parts: OwnershipParts;
  readonly #seen = new Map<string, Observation>();
  /** Holds that could not be removed yet. */
  readonly #removals = new Set<Removal>();
  #holds = 0n;
  #forgetAtMs: number;
  #running: Promise<void> = Promise.resolve();
  #isClosed = false;
  #cancel: () => void;

  constructor(parts: OwnershipParts) {
    this.#parts = parts;
    this.#forgetAtMs = parts.runtime.now() + FORGET_MS;
    this.#cancel = parts.runtime.after(TICK_MS, () => this.#tick());
  }

  isOwn(live: LiveChannel): boolean {
    if (live.own === null) return false;
    const presence = this.#parts.presence();
    return presence !== null && presence.epoch === live.own && this.#isFresh(presence);
  }

  async enter<T>(live: LiveChannel, call: EnteringCall<T>): Promise<Entered<T>> {
    const { runtime, waitMs, onWritten } = this.#parts;
    const untilMs = runtime.now() + waitMs;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)) {
      if (live.queued >= MAX_QUEUED) return { kind: "busy" };
      const step = await inTurn(live, () => this.#enterOnce(live, call));
      if (step.kind !== "wait") return step;
      if (pauseMs === FIRST_PAUSE_MS) onWritten();
      if (runtime.now() >= untilMs) return { kind: "busy" };
      await pause(runtime, pauseMs);
    }
  }

  async isQuiet(channelId: Hex): Promise<boolean> {
    const presence = this.#parts.presence();
    if (presence === null) return false;
    const { record, isQuiet } = await this.#parts.store.transaction(async (tx) => {
      const locked = await this.#lock(tx, channelId, presence.epoch);
      const { record, read, others } = locked;
      const isTaken = accessOf(read, { me: presence.epoch, isFresh: true, holds: 0 }) === "wait";
      if (isTaken) await want(tx, channelId, read.owner);
      return { record, isQuiet: !isTaken && others.length === 0 };
    });
    this.#parts.live.note(record);
    return isQuiet;
  }

  ended(live: LiveChannel, held: HeldCall): void {
    const removal = { live, held };
    this.#removals.add(removal);
    void this.#remove(removal).catch(() => {});
  }

  wanted(channelId: Hex): void {
    const live = this.#parts.live.peek(channelId);
    if (live !== null && live.own !== null) void this.#letGo(channelId).catch(() => {});
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#running;
  }

  /** Whether this process shows often enough that it lives: nobody takes its channels then. */
  #isFresh({ heardAtMs }: Presence): boolean {
    const { runtime, heartbeatMs } = this.#parts;
    return runtime.now() - heardAtMs < Math.max(LEAST_FRESH_MS, FRESH_BEATS * heartbeatMs);
  }

  async #enterOnce<T>(live: LiveChannel, call: EnteringCall<T>): Promise<Step<T>> {
    const { store, live: channels } = this.#parts;
    const presence = this.#parts.presence();
    if (presence === null) return { kind: "busy" };
    const { id } = live.record;
    const made: { held: HeldCall | null } = { held: null };
    try {
      const { step, record } = await store.transaction(async (tx) => {
        // The store may run this again.
        made.held?.release();
        const locked = await this.#lock(tx, id, presence.epoch);
        const access = await this.#claim(tx, live, { presence, locked });
        if (access !== "shared") return { step: { kind: access }, record: locked.record };
        channels.note(locked.record);
        live.heldElsewhere = sumOf(locked.others);
        const accepted = await acceptIn(tx, live, { call, locked });
        made.held = accepted.held;
        if (made.held !== null) await this.#write(tx, id, [made.held], presence.epoch);
        return { step: accepted.step, record: locked.record };
      });
      channels.note(record);
      if (step.kind === "own") {
        live.own = presence.epoch;
        live.heldElsewhere = 0n;
      }
      return step;
    } catch (error) {
      made.held?.release();
      throw error;
    }
  }

  async #lock(tx: Tx, channelId: Hex, me: Epoch): Promise<Locked> {
    const record = await this.#parts.channels.lock(tx, channelId);
    if (record === null) throw new Error(`channel ${channelId} is gone from the store`);
    const read = await readOwner(tx, channelId);
    const holds = (await readHolds(tx, channelId)).filter((hold) => !isSame(hold, me));
    const ended = holds.filter(({ flushSeq }) => flushSeq === null);
    for (const process of new Map(ended.map((hold) => [keyOf(hold), hold])).values())
      await deleteHoldsOf(tx, channelId, process);
    const owner = read.owner === null ? null : this.#withLife(read.owner);
    const others = holds.filter((hold) => this.#withLife(hold).flushSeq !== null);
    const doubtful = others.filter((hold) => this.#seen.get(keyOf(hold))?.isAlive !== true);
    return { record, read: { ...read, owner }, others, doubtful: sumOf(doubtful) };
  }

  /** A process that has not shown for a while that it lives counts as ended. */
  #withLife<T extends ProcessSeen>(process: T): T {
    const { runtime, heartbeatMs } = this.#parts;
    const { flushSeq } = process;
    if (flushSeq === null) return process;
    const readMs = runtime.now();
    const goneMs = Math.max(LEAST_GONE_MS, GONE_BEATS * heartbeatMs);
    const before = this.#seen.get(keyOf(process));
    const isSilent = before?.flushSeq === flushSeq;
    if (before === undefined && this.#seen.size >= MAX_SEEN) this.#seen.clear();
    this.#seen.set(keyOf(process), {
      flushSeq,
      sinceMs: isSilent ? before.sinceMs : readMs,
      readMs,
      isAlive: isSilent ? before.isAlive : before !== undefined && readMs - before.readMs <= goneMs,
    });
    return isSilent && readMs - before.sinceMs >= goneMs ? { ...process, flushSeq: null } : process;
  }

  /** Writes how this process takes calls from now on. */
  async #claim(
    tx: Tx,
    live: LiveChannel,
    { presence, locked }: { readonly presence: Presence; readonly locked: Locked },
  ): Promise<"own" | "shared" | "wait"> {
    const { epoch: me } = presence;
    const { read, others } = locked;
    const { owner, nowMs } = read;
    const isFresh = this.#isFresh(presence);
    const access = accessOf(read, { me, isFresh, holds: others.length });
    const id = live.record.id;
    const isMine = owner !== null && isSame(owner, me);
    const before = isMine ? owner : null;
    switch (access) {
      case "wait":
        await want(tx, id, owner);
        return access;
      case "own":
        if (before?.isExclusive !== true || before.isWanted)
          await writeOwner(tx, id, {
            ...me,
            isExclusive: true,
            sinceMs: nowMs,
            isWanted: false,
          });
        return access;
      case "shared":
        if (before?.isExclusive === true) await this.#share(tx, live, { me, nowMs });
        else if (before === null) await writeOwner(tx, id, { ...me, ...SHARED, sinceMs: nowMs });
        live.own = null;
        return access;
    }
  }

  /** Ends the time in which this process was alone: what its calls hold is written. */
  async #share(
    tx: Tx,
    live: LiveChannel,
    { me, nowMs }: { readonly me: Epoch; readonly nowMs: number },
  ): Promise<void> {
    // From here on no call is accepted from memory, and those that were are written.
    live.own = null;
    const { id } = live.record;
    await this.#write(tx, id, [...live.underWay.values()], me);
    await writeOwner(tx, id, { ...me, ...SHARED, sinceMs: nowMs });
  }

  async #write(tx: Tx, id: Hex, calls: readonly HeldCall[], me: Epoch): Promise<void> {
    const rows = calls.flatMap((held) => {
      if (held.units === 0n) return [];
      if (held.written?.epoch !== me) held.written = { epoch: me, number: ++this.#holds };
      return [{ ...held.written, units: held.units, call: held.call }];
    });
    await insertHolds(tx, id, rows);
  }

  /** Lets go of a channel if another process waits for it. */
  async #letGo(id: Hex): Promise<void> {
    const live = this.#parts.live.peek(id);
    if (live === null) return this.#letGoOnce(id, null);
    return inTurn(live, () => this.#letGoOnce(id, live));
  }

  async #letGoOnce(id: Hex, live: LiveChannel | null): Promise<void> {
    const presence = this.#parts.presence();
    if (presence === null) return;
    const me = presence.epoch;
    await this.#parts.store.transaction(async (tx) => {
      await this.#parts.channels.lock(tx, id);
      const { owner, nowMs } = await readOwner(tx, id);
      if (owner === null || !isSame(owner, me) || !owner.isExclusive || !owner.isWanted) return;
      if (live !== null) await this.#share(tx, live, { me, nowMs });
      else await writeOwner(tx, id, { ...me, ...SHARED, sinceMs: nowMs });
    });
  }

  async #remove(removal: Removal): Promise<void> {
    const { live, held } = removal;
    const { written } = held;
    // In turn: what writes the hold may not have ended yet.
    if (written !== null)
      await inTurn(live, () =>
        deleteHold(this.#parts.store.db, { channelId: live.record.id, ...written }),
      );
    this.#removals.delete(removal);
  }

  /** A failure is that of the store, which others report: the next look tries again. */
  #tick(): void {
    this.#running = this.#look()
      .catch(() => {})
      .finally(() => {
        if (!this.#isClosed) this.#cancel = this.#parts.runtime.after(TICK_MS, () => this.#tick());
      });
  }

  async #look(): Promise<void> {
    const { store, runtime } = this.#parts;
    const presence = this.#parts.presence();
    if (presence === null) return;
    for (const id of await wantedOf(store, presence.epoch)) await this.#letGo(id);
    for (const removal of this.#removals) await this.#remove(removal);
    if (runtime.now() < this.#forgetAtMs) return;
    this.#forgetAtMs = runtime.now() + FORGET_MS;
    while (!this.#isClosed && (await forgetHolds(store, FORGOTTEN_AFTER_MS)))
      await pause(runtime, 0);
  }
}

const SHARED = { isExclusive: false, isWanted: false };

/** Runs what changes the ownership of a channel, one after the other. */
function inTurn<T>(live: LiveChannel, work: () => Promise<T>): Promise<T> {
  live.queued++;
  const running = live.turn.then(work).finally(() => {
    live.queued--;
  });
  live.turn = running.then(
    () => {},
    () => {},
  );
  return running;
}

/** Asks the process that has a channel to itself to let go of it. */
async function want(tx: Tx, id: Hex, owner: ChannelOwner | null): Promise<void> {
  if (owner === null || owner.isWanted) return;
  await writeOwner(tx, id, { ...owner, isWanted: true });
  await recordChange(tx, { topic: "channel", ref: id });
}

interface SharedCall<T> {
  readonly call: EnteringCall<T>;
  readonly locked: Locked;
}

/** Accepts a call under the lock of its channel; `held` = what it holds from now on. */
async function acceptIn<T>(
  tx: Tx,
  live: LiveChannel,
  { call, locked }: SharedCall<T>,
): Promise<{ readonly step: Step<T>; readonly held: HeldCall | null }> {
  const { key, underWayKey, units, promised } = call;
  if (key !== null) {
    const isMadeElsewhere = locked.others.some((other) => isSameCall(other.call, key));
    // Nobody is asked to promise more for the sake of a call that may have ended with its process.
    const missing = requiredFor(live.record, heldOf(live), units) - promised;
    if (isMadeElsewhere || (missing > 0n && missing <= locked.doubtful))
      return { step: { kind: "wait" }, held: null };
    const isRepeated = await isCharged(tx, { channelId: live.record.id, ...key });
    if (isRepeated || live.underWay.has(underWayKey))
      return { step: { kind: "repeated" }, held: null };
  }
  const value = call.accept();
  const held = key === null ? null : (live.underWay.get(underWayKey) ?? null);
  return { step: { kind: "accepted", value }, held };
}

function isSameCall(a: RecordedHold["call"], b: RecordedHold["call"]): boolean {
  return (
    a.voucherUnits === b.voucherUnits &&
    a.fingerprint === b.fingerprint &&
    a.challengeId === b.challengeId
  );
}

function sumOf(holds: readonly RecordedHold[]): bigint {
  return holds.reduce((sum, { units }) => sum + units, 0n);
}

function isSame(a: Epoch, b: Epoch): boolean {
  return a.nodeId === b.nodeId && a.epoch === b.epoch;
}

function keyOf({ nodeId, epoch }: Epoch): string {
  return `${epoch} ${nodeId}`;
}
