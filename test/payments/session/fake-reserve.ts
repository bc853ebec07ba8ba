// A chain of the test's own with channels on it: blocks, a pool of transactions that end, deposits,
// close requests, everything that was paid out. What asks it goes through an `Outside`, where
// questions and answers are lost and processes end; here nothing fails by itself.
import { createHash } from "node:crypto";
import { ChainFailure } from "../../../src/payments/rails/chain.ts";
import type { ClientReader } from "../../../src/payments/session/chain/client-transaction.ts";
import type {
  ChannelEvent,
  Escrow,
  EscrowState,
  SettlementReceipt,
} from "../../../src/payments/session/chain/escrow.ts";
import type { Settler } from "../../../src/payments/session/chain/settlement-wallet.ts";
import type { SignedBytes } from "../../../src/payments/session/chain/transaction-record.ts";
import type { Hex } from "../../../src/payments/session/descriptor.ts";

/** Runs something outside of the process, or not. */
export type Outside = <T>(name: string, act: () => T | Promise<T>) => Promise<T>;

/** What a transaction does. Amounts as text. */
export type ReserveTx = { readonly channel: Hex; readonly validUntilMs: number } & (
  | { readonly kind: "open" | "top_up"; readonly units: string }
  | { readonly kind: "settle"; readonly units: string; readonly signature: string }
  | {
      readonly kind: "close";
      readonly units: string;
      readonly voucher: string;
      readonly signature: string;
    }
  | { readonly kind: "request_close" | "withdraw" }
);

interface Channel {
  deposit: bigint;
  settled: bigint;
  closeRequestedAtMs: number | null;
}

interface Done extends SettlementReceipt {
  readonly hash: Hex;
}

/** How long a payer has to wait for a deposit. */
export const GRACE_MS = 900_000;

/** A signer writes this. */
export function signatureOf(channel: string, units: bigint): Hex {
  return `0x${createHash("sha256").update(`${channel} ${units}`).digest("hex")}`;
}

/** A transaction as bytes. */
export function rawOf(tx: ReserveTx): Hex {
  return `0x${Buffer.from(JSON.stringify(tx)).toString("hex")}`;
}

/** The hash of bytes. */
function hashOf(raw: Hex): Hex {
  return `0x${createHash("sha256").update(raw).digest("hex")}`;
}

/** The chain. */
export class FakeReserve {
  readonly channels = new Map<string, Channel>();
  /** Paid out to us, by channel. */
  readonly paid = new Map<string, bigint>();
  readonly opened = new Set<string>();
  readonly #now: () => number;
  readonly #pool = new Map<Hex, ReserveTx>();
  readonly #done = new Map<Hex, Done>();
  readonly #ends = new Map<string, { readonly block: bigint; readonly units: bigint }>();
  head = 1n;
  #timeMs: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#timeMs = now();
  }

  get timeMs(): number {
    return this.#timeMs;
  }

  send(raw: Hex): void {
    const tx = parseTx(raw);
    if (!this.#done.has(hashOf(raw))) this.#pool.set(hashOf(raw), tx);
  }

  /** Loses what waits. */
  forget(): void {
    this.#pool.clear();
  }

  /** A block with everything that waits and is still valid. */
  mine(): void {
    this.head += 1n;
    this.#timeMs = this.#now();
    for (const [hash, tx] of this.#pool) {
      this.#pool.delete(hash);
      if (tx.validUntilMs <= this.#timeMs) continue;
      const result = this.carryOut(tx, true);
      const isOk = typeof result !== "string";
      this.#done.set(hash, {
        hash,
        ok: isOk,
        block: this.head,
        events: isOk ? [result.event] : [],
        movedUnits: isOk ? result.moved : 0n,
      });
    }
  }

  taken(hash: Hex): SettlementReceipt | null {
    return this.#done.get(hash) ?? null;
  }

  state(id: string): EscrowState {
    const { deposit, settled, closeRequestedAtMs } = this.channels.get(id) ?? {
      deposit: 0n,
      settled: 0n,
      closeRequestedAtMs: null,
    };
    return { deposit, settled, closeRequestedAtMs };
  }

  ended(id: string): { readonly block: bigint; readonly units: bigint } | null {
    return this.#ends.get(id) ?? null;
  }

  /** What a transaction does; a text = why it reverts. */
  carryOut(
    tx: ReserveTx,
    isReal: boolean,
  ): { readonly event: ChannelEvent; readonly moved: bigint } | string {
    const id = tx.channel;
    const channel = this.channels.get(id);
    if (tx.kind === "open") {
      if (this.opened.has(id)) return "exists";
      const deposit = BigInt(tx.units);
      if (isReal) {
        this.opened.add(id);
        this.channels.set(id, { deposit, settled: 0n, closeRequestedAtMs: null });
      }
      return { event: { name: "ChannelOpened", units: deposit }, moved: 0n };
    }
    if (channel === undefined) return "not found";
    switch (tx.kind) {
      case "top_up": {
        const deposit = channel.deposit + BigInt(tx.units);
        if (isReal) Object.assign(channel, { deposit, closeRequestedAtMs: null });
        return { event: { name: "TopUp", units: deposit }, moved: 0n };
      }
      case "request_close":
        if (isReal) channel.closeRequestedAtMs ??= Math.floor(this.#timeMs / 1_000) * 1_000;
        return { event: { name: "TopUp", units: channel.deposit }, moved: 0n };
      case "withdraw":
        if (
          channel.closeRequestedAtMs === null ||
          this.#timeMs < channel.closeRequestedAtMs + GRACE_MS
        )
          return "not ready";
        if (isReal) this.#end(id, channel.settled);
        return { event: { name: "ChannelClosed", units: channel.settled }, moved: 0n };
      case "settle": {
        const units = BigInt(tx.units);
        if (units <= channel.settled) return "not increasing";
        if (units > channel.deposit || tx.signature !== signatureOf(id, units))
          return "wrong voucher";
        const moved = units - channel.settled;
        if (isReal) {
          channel.settled = units;
          this.#pay(id, moved);
        }
        return { event: { name: "Settled", units }, moved };
      }
      case "close": {
        const units = BigInt(tx.units);
        if (units < channel.settled || units > BigInt(tx.voucher) || units > channel.deposit)
          return "wrong amount";
        if (units > channel.settled && tx.signature !== signatureOf(id, BigInt(tx.voucher)))
          return "wrong voucher";
        const moved = units - channel.settled;
        if (isReal) {
          this.#pay(id, moved);
          this.#end(id, units);
        }
        return { event: { name: "ChannelClosed", units }, moved };
      }
    }
  }

  #pay(id: string, units: bigint): void {
    this.paid.set(id, (this.paid.get(id) ?? 0n) + units);
  }

  #end(id: string, units: bigint): void {
    this.channels.delete(id);
    this.#ends.set(id, { block: this.head, units });
  }
}

/** The chain as a process asks it. */
export function escrowOf(chain: FakeReserve, outside: Outside): Pick<Escrow, keyof Escrow> {
  const ask = <T>(name: string, act: () => T): Promise<T> => outside(name, act).catch(asTrouble);
  return {
    network: () => ask("network", () => "0xgenesis"),
    head: () => ask("head", () => ({ number: chain.head, timeMs: chain.timeMs })),
    states: (ids) => ask("states", () => ids.map((id) => chain.state(id))),
    taken: (hash) => ask("taken", () => chain.taken(hash)),
    ended: (id, from, to) =>
      ask("ended", () => {
        const end = chain.ended(id);
        return end !== null && end.block >= from && end.block <= to
          ? { name: "ChannelClosed", units: end.units }
          : null;
      }),
    send: (raw) => ask("send", () => chain.send(raw)),
    graceMs: () => ask("grace", () => GRACE_MS),
    balance: () => ask("balance", () => 1_000_000n),
  };
}

const VALID_MS = 25_000;

/** Our wallet. */
export function settlerOf(
  chain: FakeReserve,
  outside: Outside,
  channelOf: (salt: string) => Hex,
): Pick<Settler, "address" | "sign"> {
  return {
    address: "0x00000000000000000000000000000000000000aa",
    sign: (taking) =>
      outside("sign", () => {
        const channel = channelOf(taking.descriptor.salt);
        const validUntilMs = chain.timeMs + VALID_MS;
        const { voucher } = taking;
        const tx: ReserveTx =
          taking.kind === "settle"
            ? {
                kind: "settle",
                channel,
                units: String(taking.units),
                signature: voucher?.signature ?? "0x",
                validUntilMs,
              }
            : {
                kind: "close",
                channel,
                units: String(taking.units),
                voucher: String(voucher?.units ?? taking.units),
                signature: voucher?.signature ?? "0x",
                validUntilMs,
              };
        const tried = chain.carryOut(tx, false);
        if (typeof tried === "string") return null;
        const raw = rawOf(tx);
        return { hash: hashOf(raw), raw, units: taking.units, validUntilMs };
      }).catch(asTrouble),
  };
}

/** What payers sign, read as it was written. */
export function readerOf(
  chain: FakeReserve,
  outside: Outside,
): Pick<ClientReader, keyof ClientReader> {
  const read = (raw: Hex): SignedBytes => {
    const tx = parseTx(raw);
    return {
      hash: hashOf(raw),
      raw,
      units: "units" in tx ? BigInt(tx.units) : 0n,
      validUntilMs: tx.validUntilMs,
    };
  };
  return {
    opening: ({ transaction }) => read(transaction),
    topUp: ({ transaction }) => read(transaction),
    trial: ({ raw }) =>
      outside("trial", () => {
        const tried = chain.carryOut(parseTx(raw), false);
        return typeof tried === "string"
          ? { kind: "bad_payment" as const, problem: "verification-failed", reason: tried }
          : null;
      }).catch(asTrouble),
  };
}

/** What a lost question or answer is to the asker. */
function asTrouble(error: unknown): never {
  if (error instanceof Lost) throw new ChainFailure(error.message);
  throw error;
}

/** A question or an answer that got lost. */
export class Lost extends Error {}

function parseTx(raw: Hex): ReserveTx {
  return JSON.parse(Buffer.from(raw.slice(2), "hex").toString()) as ReserveTx;
}
