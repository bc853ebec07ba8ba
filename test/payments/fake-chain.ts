// A payment chain of the test's own: blocks, a pool of transactions, a token with authorizations
// that are used once, reorgs, and everything that has moved. Those who ask it go through
// `fake-rail.ts`; here nothing fails by itself.
import { createHash } from "node:crypto";

/** An authorization of a payer's, to be carried out by anybody, once. */
export interface Authorization {
  readonly from: string;
  readonly nonce: string;
  readonly units: string;
  readonly validBeforeMs: number;
}

/**
 * A transaction: of our wallet, of somebody who carries an authorization out, or of a payer's own.
 */
export type FakeTx =
  | {
      readonly kind: "wallet";
      readonly nonce: string;
      readonly fee: number;
      readonly authorization: Authorization;
    }
  | { readonly kind: "stranger"; readonly authorization: Authorization; readonly salt: number }
  | {
      readonly kind: "payer";
      readonly from: string;
      readonly units: string;
      readonly memo: string;
      readonly validBeforeMs: number;
    };

/** Money that has moved to us. */
export interface Moved {
  readonly txHash: string;
  readonly block: number;
  readonly logIndex: number;
  readonly from: string;
  readonly units: bigint;
  /** Nonce of the authorization, or memo. */
  readonly marker: string;
}

interface State {
  readonly walletNonce: bigint;
  readonly used: ReadonlyMap<string, Moved>;
  readonly balances: ReadonlyMap<string, bigint>;
  readonly moved: readonly Moved[];
  readonly receipts: ReadonlyMap<string, { readonly block: number; readonly ok: boolean }>;
}

interface Block {
  readonly timeMs: number;
  readonly txs: readonly FakeTx[];
  readonly after: State;
}

/** The chain. */
export class FakeChain {
  readonly #now: () => number;
  #blocks: Block[];
  readonly #pool = new Map<string, FakeTx>();
  #genesis: string;
  /** Below this a transaction stays in the pool. */
  baseFee = 10;
  /** Taken into a block at most. */
  perBlock = 100;

  constructor(now: () => number, genesis: string) {
    this.#now = now;
    this.#genesis = genesis;
    this.#blocks = [this.#first()];
  }

  get network(): string {
    return this.#genesis;
  }

  get head(): number {
    return this.#blocks.length - 1;
  }

  /** As of a block that many below the head. */
  at(depth: number): { readonly timeMs: number; readonly state: State; readonly number: number } {
    const number = Math.max(0, this.head - depth);
    const block = this.#blocks[number];
    if (block === undefined) throw new Error("no such block");
    return { timeMs: block.timeMs, state: block.after, number };
  }

  /** Gives a payer money. */
  fund(from: string, units: bigint): void {
    const last = this.#blocks.at(-1);
    if (last === undefined) throw new Error("no block");
    const balances = new Map(last.after.balances).set(
      from,
      (last.after.balances.get(from) ?? 0n) + units,
    );
    this.#blocks[this.#blocks.length - 1] = { ...last, after: { ...last.after, balances } };
  }

  /** Takes a transaction into the pool, as a node does. */
  send(tx: FakeTx): string {
    const hash = hashOf(tx);
    if (this.at(0).state.receipts.has(hash)) return hash;
    if (tx.kind === "wallet") {
      if (BigInt(tx.nonce) < this.at(0).state.walletNonce) return hash;
      for (const [other, it] of this.#pool) {
        if (it.kind !== "wallet" || it.nonce !== tx.nonce || other === hash) continue;
        if (it.fee * 1.125 > tx.fee) return hash;
        this.#pool.delete(other);
      }
    }
    this.#pool.set(hash, tx);
    return hash;
  }

  knows(hash: string): boolean {
    return this.#pool.has(hash) || this.at(0).state.receipts.has(hash);
  }

  /** The wallet's next nonce, what waits in the pool counted in. */
  pendingNonce(): bigint {
    let nonce = this.at(0).state.walletNonce;
    const waiting = new Set(
      [...this.#pool.values()].flatMap((it) => (it.kind === "wallet" ? [it.nonce] : [])),
    );
    while (waiting.has(String(nonce))) nonce++;
    return nonce;
  }

  /** Whether an authorization waits in the pool, for everybody to see. */
  waiting({ nonce }: Authorization): boolean {
    return [...this.#pool.values()].some(
      (it) => it.kind !== "payer" && it.authorization.nonce === nonce,
    );
  }

  balance(from: string): bigint {
    return this.at(0).state.balances.get(from) ?? 0n;
  }

  /** Loses what waits in the pool, as a node does that was started anew. */
  forgetPool(): void {
    this.#pool.clear();
  }

  mine(): void {
    const txs: FakeTx[] = [];
    let state = this.at(0).state;
    for (let more = true; more && txs.length < this.perBlock; ) {
      more = false;
      for (const [hash, tx] of [...this.#pool]) {
        if (txs.length >= this.perBlock) break;
        if (
          tx.kind === "wallet" &&
          (tx.fee < this.baseFee || BigInt(tx.nonce) !== state.walletNonce)
        )
          continue;
        this.#pool.delete(hash);
        if (tx.kind === "payer" && tx.validBeforeMs <= this.#now()) continue;
        state = applied(state, tx, {
          number: this.head + 1,
          timeMs: this.#now(),
          index: txs.length,
        });
        txs.push(tx);
        more = true;
      }
    }
    for (const [hash, tx] of this.#pool)
      if (tx.kind === "wallet" && BigInt(tx.nonce) < state.walletNonce) this.#pool.delete(hash);
    this.#blocks.push({ timeMs: this.#now(), txs, after: state });
  }

  /** Takes blocks away; what was in them is in the pool again, or lost. */
  reorg(depth: number, isLost: boolean): void {
    for (let blocks = 0; blocks < depth && this.#blocks.length > 1; blocks++) {
      const block = this.#blocks.pop();
      if (!isLost) for (const tx of block?.txs ?? []) this.#pool.set(hashOf(tx), tx);
    }
  }

  /** Another chain with the same number. */
  restart(): void {
    this.#genesis += "'";
    this.#pool.clear();
    const balances = this.at(0).state.balances;
    this.#blocks = [this.#first()];
    for (const [from, units] of balances) this.fund(from, units);
  }

  /** Everything that has moved to us. */
  received(): bigint {
    return this.at(0).state.moved.reduce((sum, it) => sum + it.units, 0n);
  }

  #first(): Block {
    const after = {
      walletNonce: 0n,
      used: new Map(),
      balances: new Map(),
      moved: [],
      receipts: new Map(),
    };
    return { timeMs: this.#now(), txs: [], after };
  }
}

/** Names a transaction. */
export function hashOf(tx: FakeTx): string {
  return `0x${createHash("sha256").update(JSON.stringify(tx)).digest("hex")}`;
}

function applied(
  state: State,
  tx: FakeTx,
  at: { readonly number: number; readonly timeMs: number; readonly index: number },
): State {
  const hash = hashOf(tx);
  const given =
    tx.kind === "payer"
      ? { from: tx.from, units: BigInt(tx.units), marker: tx.memo }
      : moneyOf(tx.authorization);
  const balance = state.balances.get(given.from) ?? 0n;
  const isDone =
    tx.kind !== "payer" &&
    (state.used.has(`${given.from}:${given.marker}`) ||
      tx.authorization.validBeforeMs <= at.timeMs);
  const ok = !isDone && balance >= given.units;
  const receipts = new Map(state.receipts).set(hash, { block: at.number, ok });
  const next = {
    ...state,
    receipts,
    walletNonce: tx.kind === "wallet" ? state.walletNonce + 1n : state.walletNonce,
  };
  if (!ok) return next;
  const moved: Moved = { txHash: hash, block: at.number, logIndex: at.index, ...given };
  return {
    ...next,
    used: new Map(state.used).set(`${given.from}:${given.marker}`, moved),
    balances: new Map(state.balances).set(given.from, balance - given.units),
    moved: [...state.moved, moved],
  };
}

function moneyOf({ from, units, nonce }: Authorization) {
  return { from, units: BigInt(units), marker: nonce };
}
