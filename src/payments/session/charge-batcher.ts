// Writes charges: calls that end at the same time share one transaction of the store, and each is
// charged only as far as its voucher pays. What is written here decides; the amounts in memory were
// an estimate.
import type { Tx } from "../../ledger/ledger.ts";
import { insertCall, isCharged, type RecordedCall } from "./call-record.ts";
import { type ChannelMoney, type Voucher, withCharge } from "./channel.ts";
import type { SessionChannel } from "./channel-record.ts";
import type { Hex } from "./descriptor.ts";
import type { HeldCall } from "./live-channels.ts";
import { deleteHold } from "./ownership-record.ts";
import type { SessionRail, SettlePolicy } from "./session-rail.ts";

/** A delivered call, and the vouchers that pay for it. */
export interface VoucherCharge {
  readonly channelId: Hex;
  readonly units: bigint;
  /** The voucher that the call came with. */
  readonly promised: Voucher;
  /** The highest voucher of the channel. */
  readonly accepted: Voucher | null;
  readonly fingerprint: string;
  readonly challengeId: string;
  readonly cu: number;
  readonly status: number;
  readonly body: string | null;
  /** What the call holds until it is charged. */
  readonly held: HeldCall;
}

/**
 * The result of a charge: the channel after it, and the recorded call; `call` null = nothing was
 * charged, since the voucher no longer covers it, or another instance has charged the same request.
 */
export interface WrittenCharge {
  readonly channel: SessionChannel;
  readonly call: RecordedCall | null;
  /** True = other processes saw the hold of the call, and see it no more. */
  readonly isHoldRemoved: boolean;
}

/** Writes charges. */
export interface ChargeBatcher {
  /** Rejects if the store fails: then nothing was charged. */
  write(charge: VoucherCharge): Promise<WrittenCharge>;
}

const MAX_AT_ONCE = 64;

interface QueuedCharge {
  readonly charge: VoucherCharge;
  readonly resolve: (charged: WrittenCharge) => void;
  readonly reject: (error: unknown) => void;
}

/** A batcher with an empty queue. */
export function createChargeBatcher(
  parts: Pick<SessionRail, "store" | "channels" | "runtime" | "policy">,
): ChargeBatcher {
  const queue: QueuedCharge[] = [];
  let writing = false;

  async function writeAll(): Promise<void> {
    writing = true;
    while (queue.length > 0) {
      // All calls that have ended by now share one commit.
      await new Promise(setImmediate);
      const group = queue.splice(0, MAX_AT_ONCE);
      const charges = group.map((queued) => queued.charge);
      try {
        const charged = await parts.store.transaction(async (tx) => {
          const all: WrittenCharge[] = [];
          for (const charge of inOrder(charges)) all.push(await chargeIn(parts, tx, charge));
          return all;
        });
        for (const [at, { charge, resolve, reject }] of inOrder(group).entries()) {
          const written = charged[at];
          if (written === undefined)
            reject(new Error(`no charge was written for channel ${charge.channelId}`));
          else {
            charge.held.isRemoved = written.isHoldRemoved;
            resolve(written);
          }
        }
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    writing = false;
  }

  return {
    write(charge) {
      return new Promise((resolve, reject) => {
        queue.push({ charge, resolve, reject });
        if (!writing) void writeAll();
      });
    },
  };
}

/** In the order in which every instance locks channels, so that no two wait for each other. */
function inOrder<T extends VoucherCharge | QueuedCharge>(list: readonly T[]): readonly T[] {
  const idOf = (queued: VoucherCharge | QueuedCharge): string =>
    "charge" in queued ? queued.charge.channelId : queued.channelId;
  const compare = (a: string, b: string): number => {
    if (a === b) return 0;
    return a < b ? -1 : 1;
  };
  return list.toSorted((a, b) => compare(idOf(a), idOf(b)));
}

async function chargeIn(
  { channels, runtime, policy }: Pick<SessionRail, "channels" | "runtime" | "policy">,
  tx: Tx,
  charge: VoucherCharge,
): Promise<WrittenCharge> {
  const channel = await channels.lock(tx, charge.channelId);
  if (channel === null) throw new Error(`channel ${charge.channelId} is gone from the store`);
  const { channelId, held } = charge;
  const isHoldRemoved = held.written !== null;
  if (held.written !== null) await deleteHold(tx, { channelId, ...held.written });
  const money =
    channel.state === "open" ? withCharge(channel, charge.units, vouchersOf(charge)) : null;
  if (money === null || (await isCharged(tx, { ...charge, voucherUnits: charge.promised.units })))
    return { channel, call: null, isHoldRemoved };
  const atMs = runtime.wallMs();
  const change = { ...money, calls: channel.calls + 1n, owedSinceMs: channel.owedSinceMs ?? atMs };
  const next = {
    ...channel,
    ...change,
    lookAtMs: lookAtOf({ ...channel, ...change }, policy, atMs),
  };
  const { spent, vouchers, calls, owedSinceMs, lookAtMs } = next;
  await channels.write(tx, channel.id, { spent, vouchers, calls, owedSinceMs, lookAtMs });
  const call = callOf(charge, next);
  await insertCall(tx, call, atMs);
  return { channel: next, call, isHoldRemoved };
}

function vouchersOf({ promised, accepted }: VoucherCharge): readonly Voucher[] {
  return accepted === null ? [promised] : [promised, accepted];
}

/**
 * When a channel that something was spent of is to be looked at: now if enough is owed, else in
 * time to see that its payer wants the deposit back.
 */
function lookAtOf(
  { lookAtMs, ...money }: ChannelMoney & { readonly lookAtMs: number },
  { settleUnits, watchMs }: SettlePolicy,
  atMs: number,
): number {
  return money.spent - money.settled >= settleUnits
    ? Math.min(lookAtMs, atMs)
    : Math.min(lookAtMs, atMs + watchMs);
}

function callOf(
  { channelId, units, promised, fingerprint, challengeId, cu, status, body }: VoucherCharge,
  { spent, vouchers, calls }: SessionChannel,
): RecordedCall {
  return {
    channelId,
    position: calls,
    voucherUnits: promised.units,
    fingerprint,
    challengeId,
    chargedUnits: units,
    acceptedUnits: vouchers.at(-1)?.units ?? promised.units,
    spentUnits: spent,
    cu,
    status,
    body,
  };
}
