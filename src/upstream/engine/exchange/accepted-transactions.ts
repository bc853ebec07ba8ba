// The transactions of callers that providers have accepted lately, so that callers read their own
// writes: by hash, and by sender and nonce. Of one process, with what others tell of. Bounded in
// number and bytes, in all and for one caller. Asks nobody.
import type { CallerIdentity } from "../../../core/provider/silence.ts";
import { pendingTransaction, readTransaction } from "../../../core/rpc/signed-transaction.ts";
import type { TransactionCall } from "../../../core/rpc/transaction-call.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Tracker } from "../../health/tracker.ts";
import { hashOfTransaction, TransactionSenders } from "./transaction-identity.ts";

/** A transaction that a provider has accepted, as one process tells it to others. */
export interface AcceptedMessage {
  /** Profile id and chain name. */
  readonly set: string;
  readonly chainId: number;
  readonly hash: string;
  /** Without the blobs that it may have travelled with; null = too long to be told. */
  readonly raw: Buffer | null;
  /** Null = its type is not known. */
  readonly sender: string | null;
  readonly nonce: number | null;
  /** Providers that have it. */
  readonly providers: readonly string[];
  /** The key that handed it in, or the caller where there is none. */
  readonly caller: string;
  /** What the key belongs to. */
  readonly account: string;
  readonly isPrivate: boolean;
  /** How long ago it was accepted. */
  readonly ageMs: number;
}

/** A transaction that a provider has accepted. */
export interface AcceptedTransaction
  extends Pick<AcceptedMessage, "set" | "chainId" | "hash" | "raw" | "account"> {
  sender: string | null;
  nonce: number | null;
  /** False = its sender has not been looked for yet. */
  isRead: boolean;
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
  | Extract<TransactionCall, { readonly kind: "write" }>
  | {
      readonly kind: "lookup";
      readonly set: AcceptedSet;
      readonly transaction: AcceptedTransaction;
      readonly isReceipt: boolean;
    }
  /** Another process may know it, and may not have told of it yet. */
  | { readonly kind: "awaited"; readonly hash: string }
  | { readonly kind: "nonce"; readonly set: AcceptedSet; readonly sender: string };

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
/** Longest transaction whose bytes are kept. */
export const MAX_RAW_BYTES = 131_072;
/** Bounds of one process. */
const MAX_TRANSACTIONS = 16_384;
const MAX_BYTES = 67_108_864;
/** One caller has at most this part of each. */
const PART_OF_CALLER = 8;
/** Callers that one transaction is told to as pending. */
const MAX_CALLERS = 8;
/** Providers that are remembered to have one. */
const MAX_PROVIDERS = 16;
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
  readonly #sets = new Map<string, AcceptedSet>();
  /** Oldest first. */
  readonly #all = new Set<AcceptedTransaction>();
  readonly #ofAccounts = new Map<string, Held>();
  readonly #listeners = new Set<(message: AcceptedMessage) => void>();
  #bytes = 0;

  constructor(runtime: Pick<Runtime, "now">) {
    this.#runtime = runtime;
  }

  get count(): number {
    return this.#all.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether other processes are told of transactions, and so tell of theirs. */
  get isShared(): boolean {
    return this.#listeners.size > 0;
  }

  /** Those of a provider set; null = there are none. */
  of({ profileId, set: { chain } }: Tracker): AcceptedSet | null {
    const known = this.#sets.get(`${profileId} ${chain.chainName}`) ?? null;
    return known?.chainId === chain.chainId ? known : null;
  }

  /** Hears of each transaction that was accepted here, once its sender is known. */
  onAccepted(listener: (message: AcceptedMessage) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** A provider has accepted a transaction of a caller. Its sender is looked for by `settle`. */
  accept(
    { profileId, set: { chain } }: Tracker,
    accepted: {
      readonly raw: Buffer;
      readonly hash: string;
      readonly caller: CallerIdentity;
      readonly providers: readonly string[];
      readonly isPrivate: boolean;
    },
  ): AcceptedTransaction {
    const { raw, hash, caller, providers, isPrivate } = accepted;
    const message = {
      set: `${profileId} ${chain.chainName}`,
      chainId: chain.chainId,
      hash,
      raw: raw.length > MAX_RAW_BYTES ? null : Buffer.from(raw),
      sender: null,
      nonce: null,
      providers,
      caller: callerOf(caller),
      account: caller.key,
      isPrivate,
      ageMs: 0,
    };
    return this.#add(message, chain.blockTimeMs);
  }

  /** Finds out who sent it, and tells of it. */
  settle(transaction: AcceptedTransaction): void {
    this.#sets.get(transaction.set)?.read(transaction);
    const message = messageOf(transaction, this.#runtime.now());
    for (const listener of [...this.#listeners]) listener(message);
  }

  /** The newest transactions, for a process that has just begun. */
  newest(count: number): readonly AcceptedMessage[] {
    const nowMs = this.#runtime.now();
    const known = [...this.#all].filter(({ isRead, sender }) => isRead && sender !== null);
    return known.slice(-count).map((transaction) => messageOf(transaction, nowMs));
  }

  /** Another process of the service tells of a transaction. */
  hear(message: AcceptedMessage, blockTimeMs: number): void {
    const { raw, hash } = message;
    if (raw !== null && hashOfTransaction(raw) !== hash) return;
    this.#add(message, blockTimeMs);
  }

  #add(message: AcceptedMessage, blockTimeMs: number): AcceptedTransaction {
    const known = this.#sets.get(message.set);
    const set =
      known?.chainId === message.chainId
        ? known
        : new AcceptedSet(message.chainId, this.#runtime, this.senders);
    this.#sets.set(message.set, set);
    const before = set.get(message.hash);
    if (before !== null) {
      join(before, message);
      return before;
    }
    const transaction = newTransaction(message, blockTimeMs, this.#runtime.now());
    for (const replaced of set.put(transaction)) this.#drop(replaced);
    this.#count(transaction);
    this.#makeRoom(transaction.account);
    return transaction;
  }

  #count(transaction: AcceptedTransaction): void {
    this.#all.add(transaction);
    this.#bytes += sizeOf(transaction);
    const held = this.#ofAccounts.get(transaction.account) ?? { transactions: new Set(), bytes: 0 };
    held.transactions.add(transaction);
    held.bytes += sizeOf(transaction);
    this.#ofAccounts.set(transaction.account, held);
  }

  /** The oldest go first: those of a caller with too many, then those of all. */
  #makeRoom(account: string): void {
    const held = this.#ofAccounts.get(account);
    const isCallerFull = (): boolean =>
      held !== undefined &&
      (held.transactions.size > MAX_TRANSACTIONS / PART_OF_CALLER ||
        held.bytes > MAX_BYTES / PART_OF_CALLER);
    for (const oldest of held?.transactions ?? []) {
      if (!isCallerFull()) break;
      this.#remove(oldest);
    }
    const nowMs = this.#runtime.now();
    for (const oldest of this.#all) {
      const isFull = this.#all.size > MAX_TRANSACTIONS || this.#bytes > MAX_BYTES;
      if (!isFull && oldest.forgottenAtMs > nowMs) break;
      this.#remove(oldest);
    }
  }

  #remove(transaction: AcceptedTransaction): void {
    const set = this.#sets.get(transaction.set);
    set?.remove(transaction);
    if (set?.isEmpty === true) this.#sets.delete(transaction.set);
    this.#drop(transaction);
  }

  #drop(transaction: AcceptedTransaction): void {
    if (!this.#all.delete(transaction)) return;
    this.#bytes -= sizeOf(transaction);
    const held = this.#ofAccounts.get(transaction.account);
    if (held === undefined || !held.transactions.delete(transaction)) return;
    held.bytes -= sizeOf(transaction);
    if (held.transactions.size === 0) this.#ofAccounts.delete(transaction.account);
  }
}

/** What one account has here. */
interface Held {
  readonly transactions: Set<AcceptedTransaction>;
  bytes: number;
}

function sizeOf({ raw }: AcceptedTransaction): number {
  return OVERHEAD_BYTES + (raw?.length ?? 0);
}

function messageOf(transaction: AcceptedTransaction, nowMs: number): AcceptedMessage {
  const { set, chainId, hash, raw, sender, nonce, account, isPrivate } = transaction;
  const caller = [...transaction.callers].at(-1) ?? account;
  return {
    ...{ set, chainId, hash, raw, sender, nonce, caller, account, isPrivate },
    providers: [...transaction.providers],
    ageMs: Math.max(0, nowMs - transaction.acceptedAtMs),
  };
}

function newTransaction(
  message: AcceptedMessage,
  blockTimeMs: number,
  nowMs: number,
): AcceptedTransaction {
  const { set, chainId, hash, raw, sender, nonce, account, isPrivate, caller } = message;
  const lastsMs = Math.max(PENDING_MS, REMEMBERED_BLOCKS * blockTimeMs);
  const acceptedAtMs = nowMs - message.ageMs;
  return {
    ...{ set, chainId, hash, raw, account, isPrivate, sender, nonce },
    isRead: sender !== null,
    isNoncePublic: !isPrivate,
    providers: new Set(message.providers.slice(0, MAX_PROVIDERS)),
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

/** The accepted transactions of one provider set. */
export class AcceptedSet {
  readonly chainId: number;
  readonly #runtime: Pick<Runtime, "now">;
  readonly #senders: TransactionSenders;
  readonly #byHash = new Map<string, AcceptedTransaction>();
  readonly #bySender = new Map<string, Map<number, AcceptedTransaction>>();
  readonly #unread = new Set<AcceptedTransaction>();
  /** Transactions that another one of their sender and nonce took the place of, to be dropped. */
  #replaced: AcceptedTransaction[] = [];

  constructor(chainId: number, runtime: Pick<Runtime, "now">, senders: TransactionSenders) {
    this.chainId = chainId;
    this.#runtime = runtime;
    this.#senders = senders;
  }

  get isEmpty(): boolean {
    return this.#byHash.size === 0;
  }

  get(hash: string): AcceptedTransaction | null {
    const transaction = this.#byHash.get(hash);
    return transaction === undefined || transaction.forgottenAtMs <= this.#runtime.now()
      ? null
      : transaction;
  }

  /** Returns those that are not here any more. */
  put(transaction: AcceptedTransaction): readonly AcceptedTransaction[] {
    this.#byHash.set(transaction.hash, transaction);
    if (transaction.isRead) this.#index(transaction);
    else this.#unread.add(transaction);
    const replaced = this.#replaced;
    this.#replaced = [];
    return replaced;
  }

  remove(transaction: AcceptedTransaction): void {
    this.#byHash.delete(transaction.hash);
    this.#unread.delete(transaction);
    const { sender, nonce } = transaction;
    if (sender === null || nonce === null) return;
    const nonces = this.#bySender.get(sender);
    if (nonces?.get(nonce) === transaction) nonces.delete(nonce);
    if (nonces?.size === 0) this.#bySender.delete(sender);
  }

  /** Finds out who sent a transaction, unless that is known. */
  read(transaction: AcceptedTransaction): void {
    if (transaction.isRead || !this.#senders.isReady) return;
    transaction.isRead = true;
    this.#unread.delete(transaction);
    const { raw } = transaction;
    const signed = raw === null ? null : readTransaction(raw);
    const sender = signed === null ? null : this.#senders.senderOf(signed);
    if (signed === null || sender === null) return;
    transaction.sender = sender;
    transaction.nonce = signed.nonce;
    if (this.#byHash.get(transaction.hash) === transaction) this.#index(transaction);
  }

  /**
   * The nonce after all that is known to be pending of a sender, where a provider says `from`: the
   * accepted transactions that go on from there without a gap.
   */
  nonceAfter(sender: string, from: number, caller: string): number {
    const nonces = this.#noncesOf(sender);
    let next = from;
    while (this.#isCounted(nonces?.get(next), caller)) next += 1;
    return next;
  }

  /** Whether a transaction with a nonce above this is pending, and counts for a caller. */
  hasNonceAbove(sender: string, nonce: number, caller: string): boolean {
    for (const [at, transaction] of this.#noncesOf(sender) ?? [])
      if (at > nonce && this.#isCounted(transaction, caller)) return true;
    return false;
  }

  /** Who has the last transaction of a sender; null = it is not known. */
  providersOf(sender: string, caller: string): ReadonlySet<string> | null {
    let last: AcceptedTransaction | null = null;
    for (const transaction of this.#noncesOf(sender)?.values() ?? []) {
      const isLater = last === null || (transaction.nonce ?? 0) > (last.nonce ?? 0);
      if (isLater && this.#isCounted(transaction, caller)) last = transaction;
    }
    return last?.providers ?? null;
  }

  /** A transaction as a node tells it while it is pending; null = it cannot be told. */
  pendingText(transaction: AcceptedTransaction): string | null {
    this.read(transaction);
    const { raw, hash, sender, acceptedAtMs } = transaction;
    if (raw === null || sender === null) return null;
    if (this.#runtime.now() - acceptedAtMs >= PENDING_MS) return null;
    const signed = readTransaction(raw);
    return signed === null ? null : pendingTransaction(signed, { hash, sender });
  }

  #noncesOf(sender: string): ReadonlyMap<number, AcceptedTransaction> | undefined {
    for (const transaction of this.#unread) this.read(transaction);
    return this.#bySender.get(sender);
  }

  #isCounted(transaction: AcceptedTransaction | undefined, caller: string): boolean {
    if (transaction === undefined) return false;
    const { isNoncePublic, callers, acceptedAtMs } = transaction;
    const isKnownTo = isNoncePublic || callers.has(caller);
    return isKnownTo && this.#runtime.now() - acceptedAtMs < PENDING_MS;
  }

  #index(transaction: AcceptedTransaction): void {
    const { sender, nonce } = transaction;
    if (sender === null || nonce === null) return;
    const nonces = this.#bySender.get(sender) ?? new Map<number, AcceptedTransaction>();
    this.#bySender.set(sender, nonces);
    const before = nonces.get(nonce);
    if (before !== undefined && before !== transaction) {
      transaction.isNoncePublic ||= before.isNoncePublic;
      this.#byHash.delete(before.hash);
      this.#replaced.push(before);
    }
    nonces.set(nonce, transaction);
  }
}
