// The transactions of callers that providers have accepted lately, so that callers read their own
// writes: by hash, and by sender and nonce. Of one process, with what others tell of. Bounded in
// number and bytes, in all and for one caller. Asks nobody.
import { z } from "zod";
import type { CallerIdentity } from "../../../core/provider/silence.ts";
import { pendingTransaction, readTransaction } from "../../../core/rpc/signed-transaction.ts";
import type { TransactionCall } from "../../../core/rpc/transaction-call.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Tracker } from "../../health/tracker.ts";
import { hashOfTransaction, TransactionSenders } from "./transaction-identity.ts";

/** Longest transaction whose bytes are kept. */
const MAX_RAW_BYTES = 131_072;
/** Providers that are remembered to have one. */
const MAX_PROVIDERS = 16;
const text = z.string().max(512);
const height = z.int().nonnegative();

/** The block, sender or transaction that a process tells of. */
export const HINT_FIELDS = {
  /** Profile id and chain name. */
  set: text,
  chainId: height,
  number: height,
  hash: z.string().regex(/^0x[0-9a-f]{64}$/),
};

/** An accepted transaction as one process tells it to other processes, with `raw` in base64. */
export const ACCEPTED = z.object({
  set: HINT_FIELDS.set,
  chainId: HINT_FIELDS.chainId,
  hash: HINT_FIELDS.hash,
  /** Without the blobs that it may have travelled with; null = too long to be told. */
  raw: z
    .base64()
    .transform((base64): Buffer => Buffer.from(base64, "base64"))
    .refine(({ length }) => length <= MAX_RAW_BYTES)
    .nullable(),
  /** Null = its type is not known, or it was not read yet. */
  sender: z
    .string()
    .regex(/^0x[0-9a-f]{40}$/)
    .nullable(),
  nonce: height.nullable(),
  /** What the key belongs to that handed it in. */
  account: text,
  isPrivate: z.boolean(),
  /** Providers that have it. */
  providers: z.array(text).max(MAX_PROVIDERS).readonly(),
  /** The key that handed it in, or the caller where there is none. */
  caller: text,
  /** How long ago it was accepted. */
  ageMs: z.number().nonnegative(),
});

export type AcceptedMessage = Readonly<z.infer<typeof ACCEPTED>>;

/** The same as this process remembers it. */
export interface AcceptedTransaction
  extends Omit<AcceptedMessage, "providers" | "caller" | "ageMs"> {
  sender: string | null;
  nonce: number | null;
  isPrivate: boolean;
  /** The nonce counts for everybody, since this transaction or one that it replaced is public. */
  isNoncePublic: boolean;
  /** Providers that have it. */
  readonly providers: Set<string>;
  readonly callers: Set<string>;
  readonly acceptedAtMs: number;
  readonly forgottenAtMs: number;
  /** When providers were last asked in vain, by what for. */
  readonly missed: { receipt: TipMoment | null; transaction: TipMoment | null };
  /** Whether its nonce was used when that was last looked at. */
  nonceUsed: (TipMoment & { readonly isUsed: boolean }) | null;
}

/** What this service knows of the transactions that a call is about. */
export type OwnTransactions =
  | Extract<TransactionCall, { readonly kind: "write" | "nonce" }>
  | {
      readonly kind: "lookup";
      readonly transaction: AcceptedTransaction;
      readonly isReceipt: boolean;
    }
  /** Another process may know it, and may not have told of it yet. */
  | { readonly kind: "awaited"; readonly hash: string };

/** The newest block at some time; null = none was in force. */
export interface TipMoment {
  readonly tip: number | null;
  readonly atMs: number;
}

/** A transaction is told as pending for so long, and its nonce counts. */
const PENDING_MS = 600_000;
/** Blocks for which it is remembered, if that is longer. */
const REMEMBERED_BLOCKS = 128;
const LONGEST_MS = 3_600_000;
/** Bounds of one process. */
const MAX_TRANSACTIONS = 16_384;
const MAX_BYTES = 67_108_864;
/** One caller has at most this part of each. */
const PART_OF_CALLER = 8;
/** Callers that one transaction is told to as pending. */
const MAX_CALLERS = 8;
/** What a transaction takes beside its bytes. */
const OVERHEAD_BYTES = 1_024;

/** Who may be told of what a caller handed in: its key, where it has one. */
export function callerOf({ key, keyId = null }: CallerIdentity): string {
  return keyId === null ? key : `key ${keyId}`;
}

/** The accepted transactions of one process. */
export class AcceptedTransactions {
  readonly senders = new TransactionSenders();
  readonly #runtime: Pick<Runtime, "now">;
  /** By set and hash, oldest first. */
  readonly #byHash = new Map<string, AcceptedTransaction>();
  /** By set and sender, and by nonce. */
  readonly #bySender = new Map<string, Map<number, AcceptedTransaction>>();
  readonly #ofAccounts = new Map<string, Held>();
  readonly #listeners = new Set<(message: AcceptedMessage) => void>();
  bytes = 0;

  constructor(runtime: Pick<Runtime, "now">) {
    this.#runtime = runtime;
  }

  get count(): number {
    return this.#byHash.size;
  }

  /** Whether other processes are told of transactions, and so tell of theirs. */
  get isShared(): boolean {
    return this.#listeners.size > 0;
  }

  /** One that the providers of a set have accepted; null = it is not known here. */
  get(tracker: Tracker, hash: string): AcceptedTransaction | null {
    const transaction = this.#byHash.get(keyOf(placeOf(tracker), hash));
    return transaction === undefined || transaction.forgottenAtMs <= this.#runtime.now()
      ? null
      : transaction;
  }

  /** Hears of each transaction that was accepted here, once its sender is known. */
  onAccepted(listener: (message: AcceptedMessage) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** A provider has accepted a transaction of a caller. Its sender is looked for by `settle`. */
  accept(
    tracker: Tracker,
    {
      raw,
      caller,
      ...accepted
    }: Pick<AcceptedMessage, "hash" | "providers" | "isPrivate"> & {
      readonly raw: Buffer;
      readonly caller: CallerIdentity;
    },
  ): AcceptedTransaction {
    const message = {
      ...placeOf(tracker),
      ...accepted,
      raw: raw.length > MAX_RAW_BYTES ? null : Buffer.from(raw),
      sender: null,
      nonce: null,
      caller: callerOf(caller),
      account: caller.key,
      ageMs: 0,
    };
    return this.#add(message, tracker.set.chain.blockTimeMs);
  }

  /** Finds out who sent it, and tells of it. */
  settle(transaction: AcceptedTransaction): void {
    const { raw } = transaction;
    const signed = raw === null || transaction.sender !== null ? null : readTransaction(raw);
    const sender = signed === null ? null : this.senders.senderOf(signed);
    if (signed !== null && sender !== null) {
      Object.assign(transaction, { sender, nonce: signed.nonce });
      if (this.#byHash.get(keyOf(transaction, transaction.hash)) === transaction)
        this.#index(transaction);
    }
    const message = messageOf(transaction, this.#runtime.now());
    for (const listener of [...this.#listeners]) listener(message);
  }

  /** The newest transactions, for a process that has just begun. */
  newest(count: number): readonly AcceptedMessage[] {
    const nowMs = this.#runtime.now();
    const known = [...this.#byHash.values()].filter(({ sender }) => sender !== null);
    return known.slice(-count).map((transaction) => messageOf(transaction, nowMs));
  }

  /** Another process of the service tells of a transaction. */
  hear(message: AcceptedMessage, blockTimeMs: number): void {
    const { raw, hash } = message;
    if (raw !== null && hashOfTransaction(raw) !== hash) return;
    this.#add(message, blockTimeMs);
  }

  /** The pending transactions of a sender that count for a caller, by nonce. */
  pendingOf(
    tracker: Tracker,
    sender: string,
    caller: CallerIdentity,
  ): ReadonlyMap<number, AcceptedTransaction> {
    const nonces = this.#bySender.get(keyOf(placeOf(tracker), sender)) ?? [];
    const fromMs = this.#runtime.now() - PENDING_MS;
    return new Map(
      [...nonces].filter(
        ([, { isNoncePublic, callers, acceptedAtMs }]) =>
          acceptedAtMs > fromMs && (isNoncePublic || callers.has(callerOf(caller))),
      ),
    );
  }

  /** A transaction as a node tells it while it is pending; null = it cannot be told. */
  pendingText({ raw, hash, sender, acceptedAtMs }: AcceptedTransaction): string | null {
    if (raw === null || sender === null) return null;
    if (this.#runtime.now() - acceptedAtMs >= PENDING_MS) return null;
    const signed = readTransaction(raw);
    return signed === null ? null : pendingTransaction(signed, { hash, sender });
  }

  #add(message: AcceptedMessage, blockTimeMs: number): AcceptedTransaction {
    const nowMs = this.#runtime.now();
    const key = keyOf(message, message.hash);
    const before = this.#byHash.get(key);
    if (before !== undefined && before.forgottenAtMs > nowMs) {
      join(before, message);
      return before;
    }
    if (before !== undefined) this.#remove(before);
    const transaction = newTransaction(message, blockTimeMs, nowMs);
    const { account } = transaction;
    const bytes = sizeOf(transaction);
    const held = this.#ofAccounts.get(account) ?? { transactions: new Set(), bytes: 0 };
    this.#byHash.set(key, transaction);
    this.#ofAccounts.set(account, held);
    held.transactions.add(transaction);
    held.bytes += bytes;
    this.bytes += bytes;
    this.#index(transaction);
    this.#makeRoom(held);
    return transaction;
  }

  /** The oldest go first: those of a caller with too many, then those of all. */
  #makeRoom(held: Held): void {
    for (const oldest of held.transactions) {
      const isCallerFull =
        held.transactions.size > MAX_TRANSACTIONS / PART_OF_CALLER ||
        held.bytes > MAX_BYTES / PART_OF_CALLER;
      if (!isCallerFull) break;
      this.#remove(oldest);
    }
    const nowMs = this.#runtime.now();
    for (const oldest of this.#byHash.values()) {
      const isFull = this.#byHash.size > MAX_TRANSACTIONS || this.bytes > MAX_BYTES;
      if (!isFull && oldest.forgottenAtMs > nowMs) break;
      this.#remove(oldest);
    }
  }

  #remove(transaction: AcceptedTransaction): void {
    const { hash, account, sender, nonce } = transaction;
    const bytes = sizeOf(transaction);
    this.#byHash.delete(keyOf(transaction, hash));
    this.bytes -= bytes;
    const held = this.#ofAccounts.get(account);
    held?.transactions.delete(transaction);
    if (held !== undefined) held.bytes -= bytes;
    if (held?.transactions.size === 0) this.#ofAccounts.delete(account);
    if (sender === null || nonce === null) return;
    const nonces = this.#bySender.get(keyOf(transaction, sender));
    if (nonces?.get(nonce) === transaction) nonces.delete(nonce);
    if (nonces?.size === 0) this.#bySender.delete(keyOf(transaction, sender));
  }

  /** It takes the place of one with the same sender and nonce. */
  #index(transaction: AcceptedTransaction): void {
    const { sender, nonce } = transaction;
    if (sender === null || nonce === null) return;
    const key = keyOf(transaction, sender);
    const before = this.#bySender.get(key)?.get(nonce);
    if (before !== undefined) {
      transaction.isNoncePublic ||= before.isNoncePublic;
      this.#remove(before);
    }
    const nonces = this.#bySender.get(key) ?? new Map<number, AcceptedTransaction>();
    this.#bySender.set(key, nonces.set(nonce, transaction));
  }
}

/** What one account has here. */
interface Held {
  readonly transactions: Set<AcceptedTransaction>;
  bytes: number;
}

type Place = Pick<AcceptedMessage, "set" | "chainId">;

function placeOf({ key, set: { chain } }: Tracker): Place {
  return { set: key, chainId: chain.chainId };
}

/** A hash or a sender in a set; a set may get another chain. */
function keyOf({ set, chainId }: Place, what: string): string {
  return `${set} ${chainId} ${what}`;
}

function sizeOf({ raw }: AcceptedTransaction): number {
  return OVERHEAD_BYTES + (raw?.length ?? 0);
}

function messageOf(transaction: AcceptedTransaction, nowMs: number): AcceptedMessage {
  const { set, chainId, hash, raw, sender, nonce, account, isPrivate } = transaction;
  return {
    ...{ set, chainId, hash, raw, sender, nonce, account, isPrivate },
    caller: [...transaction.callers].at(-1) ?? account,
    providers: [...transaction.providers],
    ageMs: Math.max(0, nowMs - transaction.acceptedAtMs),
  };
}

function newTransaction(
  { providers, caller, ageMs, ...facts }: AcceptedMessage,
  blockTimeMs: number,
  nowMs: number,
): AcceptedTransaction {
  const lastsMs = Math.max(PENDING_MS, REMEMBERED_BLOCKS * blockTimeMs);
  const acceptedAtMs = nowMs - ageMs;
  return {
    ...facts,
    isNoncePublic: !facts.isPrivate,
    providers: new Set(providers.slice(0, MAX_PROVIDERS)),
    callers: new Set([caller]),
    acceptedAtMs,
    forgottenAtMs: acceptedAtMs + Math.min(LONGEST_MS, lastsMs),
    missed: { receipt: null, transaction: null },
    nonceUsed: null,
  };
}

/** It was accepted once more, or elsewhere. */
function join(transaction: AcceptedTransaction, message: AcceptedMessage): void {
  for (const provider of message.providers) addProvider(transaction, provider);
  if (transaction.callers.size < MAX_CALLERS) transaction.callers.add(message.caller);
  transaction.isPrivate &&= message.isPrivate;
  transaction.isNoncePublic ||= !message.isPrivate;
}

/** A provider has it. */
export function addProvider({ providers }: AcceptedTransaction, id: string): void {
  if (providers.size < MAX_PROVIDERS) providers.add(id);
}
