// Callers read their own writes: a sender finds a transaction that any provider accepted, whichever
// provider is asked, and the sender's next nonce counts it. The layer stands outside of the cache
// and of shared answers, since its answers are for one caller.
import type { Provider } from "../../../core/provider/profile.ts";
import type { CallerIdentity } from "../../../core/provider/silence.ts";
import { ACCEPTED_SOURCE, providerOf } from "../../../core/routing/answer-source.ts";
import { policyOf } from "../../../core/routing/policy.ts";
import { type Call, newCall } from "../../../core/rpc/call.ts";
import { resolveCall } from "../../../core/rpc/resolved-call.ts";
import { canonicalBytes } from "../../../core/rpc/signed-transaction.ts";
import {
  handsInTransaction,
  rawTransactionIn,
  transactionCallOf,
} from "../../../core/rpc/transaction-call.ts";
import { type Answer, isNull, type Outcome, recycle, resultOf } from "../answer.ts";
import {
  type Layer,
  type LayerParts,
  LayerRun,
  type RouteRequest,
  type RunningCall,
} from "../call-context.ts";
import {
  type AcceptedTransaction,
  type AcceptedTransactions,
  addProvider,
  callerOf,
  type OwnTransactions,
  type TipMoment,
} from "../exchange/accepted-transactions.ts";
import { hashOfTransaction } from "../exchange/transaction-identity.ts";
import type { ViewReasks } from "./consistency.ts";

/** What the layer works with. */
interface OwnParts extends LayerParts {
  readonly accepted: AcceptedTransactions;
  readonly reasks: ViewReasks;
}

/**
 * What this process knows of the transactions that a call is about; null = nothing, and the layer
 * passes the call on.
 */
export function ownTransactionsOf(
  { call, tracker, caller, view, pin, mayRoam }: RouteRequest,
  accepted: AcceptedTransactions,
): OwnTransactions | null {
  if (view === undefined) return null;
  const isAwaited = mayRoam === true && pin === null && accepted.isShared;
  // Fast path: most services forward only reads, so there is no transaction to look for.
  if (accepted.count === 0 && !isAwaited && !handsInTransaction(call)) return null;
  const about = transactionCallOf(call);
  if (about === null || about.kind === "write") return about;
  if (about.kind === "nonce") return pin === null ? about : null;
  const transaction = pin === null ? accepted.get(tracker, about.hash) : null;
  if (transaction !== null)
    return isHidden(transaction, caller)
      ? null
      : { kind: "lookup", transaction, isReceipt: about.isReceipt };
  return isAwaited && !about.isReceipt ? { kind: "awaited", hash: about.hash } : null;
}

/** Whether a transaction is private, and another caller sent it. */
function isHidden({ isPrivate, callers }: AcceptedTransaction, caller: CallerIdentity): boolean {
  return isPrivate && !callers.has(callerOf(caller));
}

/**
 * The ids of the providers to ask first, which have the newest transaction of the sender, or the
 * one that is looked up; null = the order of the strategy.
 */
export function preferredBy(
  own: OwnTransactions,
  { caller, tracker }: Pick<RouteRequest, "caller" | "tracker">,
  accepted: AcceptedTransactions,
): ReadonlySet<string> | null {
  if (own.kind === "write" || own.kind === "awaited") return null;
  const last =
    own.kind === "lookup"
      ? own.transaction
      : lastOf(accepted.pendingOf(tracker, own.sender, caller));
  return last === undefined || last.providers.size === 0 ? null : last.providers;
}

/** The pending transaction with the highest nonce. */
function lastOf(pending: ReadonlyMap<number, AcceptedTransaction>) {
  return pending.get(Math.max(...pending.keys()));
}

/** The layer of transactions that callers have sent. */
export function ownTransactions(parts: Omit<OwnParts, "next">): Layer {
  return (next) => (context, listener) => {
    const { own = null } = context.request;
    switch (own?.kind) {
      case undefined:
        return next(context, listener);
      case "write":
        return new Write({ ...parts, next, own }, context, listener).start();
      case "lookup":
        return new Lookup({ ...parts, next, own }, context, listener).start();
      case "awaited":
        return new Awaited({ ...parts, next, own }, context, listener).start();
      case "nonce":
        return new NextNonce({ ...parts, next, own }, context, listener).start();
    }
  };
}

type Own<Kind extends OwnTransactions["kind"]> = OwnParts & {
  readonly own: Extract<OwnTransactions, { readonly kind: Kind }>;
};

/** A call about transactions that this service may know. */
abstract class OwnRun<Kind extends OwnTransactions["kind"]> extends LayerRun<Own<Kind>> {
  /** Time for a further call. */
  protected get furtherMs(): number {
    return Math.min(FURTHER_MS, this.context.endsAtMs - this.parts.runtime.now());
  }

  protected get now(): TipMoment {
    const { view = null } = this.context.request;
    return { tip: view?.number ?? null, atMs: this.parts.runtime.now() };
  }
}

/** Longest time for further calls after the first answer. */
const FURTHER_MS = 1_000;
/** How long a call waits for the hint of another process, and the time between two look-ups. */
const AWAITED_MS = 150;
const LOOK_MS = 10;
/** Providers that are asked after `null`, and how many of them at a time. */
const MAX_OTHERS = 12;
const OTHERS_AT_ONCE = 3;
/**
 * How long a finding counts while no tip is in force; otherwise it counts until the tip changes.
 */
const WITHOUT_TIP_MS = 1_000;

/**
 * A call for a transaction that this process does not know. The caller moves between processes:
 * another process may have sent the transaction, and its hint may not have arrived yet.
 */
class Awaited extends OwnRun<"awaited"> {
  #endsAtMs = 0;
  protected judge(answer: Answer): void {
    if (!isNull(answer.outcome)) return this.finish(answer);
    this.#endsAtMs = this.parts.runtime.now() + Math.min(AWAITED_MS, this.furtherMs);
    this.#look(answer);
  }

  #look(answer: Answer): void {
    const { accepted, runtime, own } = this.parts;
    const { tracker, caller } = this.context.request;
    const transaction = accepted.get(tracker, own.hash);
    if (transaction !== null) {
      if (isHidden(transaction, caller)) return this.finish(answer);
      const known = { kind: "lookup", transaction, isReceipt: false } as const;
      const lookup = new Lookup({ ...this.parts, own: known }, this.context, {
        ended: (found) => this.finish(found),
      });
      this.running = lookup;
      return lookup.ended(answer);
    }
    if (runtime.now() >= this.#endsAtMs) return this.finish(answer);
    this.after(LOOK_MS, () => this.#look(answer));
  }
}

/**
 * Sends a transaction. Once a provider has accepted the transaction, it is remembered before the
 * caller gets the answer.
 */
class Write extends OwnRun<"write"> {
  override start(): RunningCall {
    void this.parts.accepted.senders.load();
    return super.start();
  }

  protected judge(answer: Answer): void {
    const accepted = this.#acceptedBy(answer);
    if (accepted === null) return this.finish(answer);
    const { senders } = this.parts.accepted;
    // The answer to the first write of a process may come before the code that recovers senders is
    // loaded.
    if (senders.isReady) return this.#settle(accepted, answer);
    void senders.load().then(() => this.#settle(accepted, answer));
  }

  /** Answers the caller first; recovering the sender from the signature takes longer. */
  #settle(accepted: AcceptedTransaction, answer: Answer): void {
    this.finish(answer);
    this.parts.accepted.settle(accepted);
  }

  #acceptedBy(answer: Answer): AcceptedTransaction | null {
    const { call, tracker, caller } = this.context.request;
    const { own, accepted } = this.parts;
    const raw = answer.outcome.kind === "stream" ? null : rawTransactionIn(call);
    if (raw === null) return null;
    const hash = hashOfTransaction(raw);
    const providers = this.#having(answer, hash);
    if (providers.length === 0) return null;
    const signed = { raw: canonicalBytes(raw), hash, caller };
    return accepted.accept(tracker, { ...signed, providers, isPrivate: own.isPrivate });
  }

  /**
   * Providers that answered with the hash, and providers that have the transaction although they
   * answered with an error.
   */
  #having({ outcome, source }: Answer, hash: string): readonly string[] {
    const { failed } = this.context;
    const having = failed.filter(({ failure, verdict }) => {
      // In the pool, but not mined within the time that the caller waits (EIP-7966).
      const isWaiting = failure.code === WAITED && String(failure.data).toLowerCase() === hash;
      return isWaiting || verdict.step === "known";
    });
    const providers = having.map(({ attempt }) => attempt.provider.id);
    const answering = containsHash(outcome, hash) ? providerOf(source) : null;
    return answering === null ? providers : [...providers, answering.id];
  }
}

/** The error code of a write that is in the pool but was not mined in time (EIP-7966). */
const WAITED = 4;
/** Longest answer, such as a receipt, in which the hash is looked for. */
const MAX_ANSWER_BYTES = 1_048_576;

/** Whether the result contains the hash. */
function containsHash(outcome: Outcome, hash: string): boolean {
  if (outcome.kind !== "result" || outcome.end - outcome.start > MAX_ANSWER_BYTES) return false;
  const text = outcome.body.toString("latin1", outcome.start, outcome.end);
  return text.toLowerCase().includes(hash);
}

/** A call for a transaction that a provider has accepted, or for its receipt. */
class Lookup extends OwnRun<"lookup"> {
  #others: Provider[] = [];
  #open = 0;
  #isOver = false;

  protected judge(answer: Answer): void {
    const { outcome, source } = answer;
    if (!isNull(outcome)) {
      this.#learn(answer);
      return this.finish(answer);
    }
    const missing = { outcome: resultOf("null"), source };
    recycle(outcome);
    this.#others = this.#mayAskOthers() ? this.#eligible(source) : [];
    if (this.#others.length === 0) return this.#missing(missing);
    this.context.rechecked = "missing";
    for (let count = 0; count < OTHERS_AT_ONCE; count++) this.#askNext(missing);
  }

  get #about(): "receipt" | "transaction" {
    return this.parts.own.isReceipt ? "receipt" : "transaction";
  }

  /** Whether to ask other providers: at most one search without a result per block. */
  #mayAskOthers(): boolean {
    const missed = this.parts.own.transaction.missed[this.#about];
    return missed === null || !isSameMoment(missed, this.now);
  }

  /** Providers that may know the transaction, in the order of asking. */
  #eligible({ kind, ...source }: Answer["source"]): Provider[] {
    const { tracker, call, avoid, strategy, transport, view, prefer } = this.context.request;
    const asked = new Set(this.context.traces.map(({ attempt }) => attempt.provider.id));
    if ("provider" in source && source.provider !== null) asked.add(source.provider.id);
    const { candidates } = tracker.plan(call, { strategy, transport, pin: null, view, prefer });
    return candidates
      .map(({ provider }) => provider)
      .filter(({ id }) => !asked.has(id) && avoid?.has(id) !== true)
      .filter((provider) => !this.#lacksReceipt(provider))
      .slice(0, MAX_OTHERS);
  }

  /**
   * Whether a provider lacks the newest block: then it has no receipt that the other providers
   * lack.
   */
  #lacksReceipt(provider: Provider): boolean {
    const { tracker, view = null } = this.context.request;
    return this.parts.own.isReceipt && view !== null && tracker.blocks.lacks(provider, view);
  }

  #askNext(missing: Answer): void {
    const provider = this.#others.shift();
    const deadlineMs = this.furtherMs;
    if (provider === undefined || deadlineMs <= 0) {
      if (this.#open === 0 && !this.#isOver) this.#missing(missing);
      return;
    }
    this.#open += 1;
    this.parts.reasks.own++;
    const { call, tracker } = this.context.request;
    const policy = { ...this.context.policy, hedge: null, recheckNull: false, maxAttempts: 1 };
    const avoid = new Set(tracker.set.providers.map(({ id }) => id));
    avoid.delete(provider.id);
    this.callFurther({ call, policy, avoid, deadlineMs }, (answer) => {
      this.#open -= 1;
      if (this.#isOver) return recycle(answer.outcome);
      if (!isFound(answer.outcome)) return this.#askNext(missing);
      this.#isOver = true;
      this.context.rechecked = "found";
      this.#learn(answer);
      this.finish(answer);
    });
  }

  /** Notes that a provider knows the transaction, and is asked first from now on. */
  #learn({ outcome, source }: Answer): void {
    const { own } = this.parts;
    if (source.kind === "provider" && isFound(outcome))
      addProvider(own.transaction, source.provider.id);
  }

  /**
   * Answers the call if no provider knows the transaction. A caller that sent it is told the
   * transaction as pending, unless its nonce was used.
   */
  #missing(answer: Answer): void {
    const { own, accepted } = this.parts;
    this.#isOver = true;
    own.transaction.missed[this.#about] = this.now;
    if (own.isReceipt || !own.transaction.callers.has(callerOf(this.context.request.caller)))
      return this.finish(answer);
    const text = accepted.pendingText(own.transaction);
    const { sender, nonceUsed } = own.transaction;
    if (text === null || sender === null) return this.finish(answer);
    const pending = { outcome: resultOf(text), source: ACCEPTED_SOURCE };
    if (nonceUsed !== null && isSameMoment(nonceUsed, this.now))
      return this.finish(nonceUsed.isUsed ? answer : pending);
    this.#checkNonce(sender, (isUsed) => this.finish(isUsed ? answer : pending));
  }

  /**
   * Asks whether another transaction has used the nonce: then this transaction will never be mined.
   */
  #checkNonce(sender: string, done: (isUsed: boolean) => void): void {
    const { own, reasks } = this.parts;
    const deadlineMs = this.furtherMs;
    if (deadlineMs <= 0) return done(false);
    reasks.own++;
    const call = nonceCall(sender, this.context.request);
    const settings = { coalesce: false, hedge: null, split: false, view: false, own: false };
    const policy = policyOf(call.method, call.block, { ...this.context.policy, ...settings });
    const { transaction } = own;
    this.callFurther({ call, policy, deadlineMs }, ({ outcome }) => {
      const next = numberIn(outcome);
      recycle(outcome);
      if (next === null) return done(false);
      const isUsed = next > (transaction.nonce ?? next);
      transaction.nonceUsed = { ...this.now, isUsed };
      done(isUsed);
    });
  }
}

/** A call for the nonce of a sender after the mined transactions. */
function nonceCall(sender: string, { view = null }: RouteRequest): Call {
  const call = newCall("eth_getTransactionCount", `["${sender}","latest"]`);
  return view === null ? call : (resolveCall(call, view) ?? call);
}

/**
 * A call for the next nonce of a sender: the nonce that a provider reports, plus the accepted
 * transactions that continue from this nonce without a gap.
 */
class NextNonce extends OwnRun<"nonce"> {
  protected judge(answer: Answer): void {
    const nonce = numberIn(answer.outcome);
    if (nonce === null) return this.finish(answer);
    // The accepted transactions leave a gap after the provider's answer: other providers may know
    // the transaction in the gap.
    const last = lastOf(this.#pending)?.nonce ?? -1;
    if (last >= this.#after(nonce)) this.#askAnother(answer, nonce);
    else this.#tell(answer, nonce);
  }

  get #pending(): ReadonlyMap<number, AcceptedTransaction> {
    const { tracker, caller } = this.context.request;
    const { accepted, own } = this.parts;
    return accepted.pendingOf(tracker, own.sender, caller);
  }

  /** The nonce after the pending transactions that continue from `nonce` without a gap. */
  #after(nonce: number): number {
    const pending = this.#pending;
    let next = nonce;
    while (pending.has(next)) next += 1;
    return next;
  }

  #askAnother(answer: Answer, known: number): void {
    const asked = providerOf(answer.source);
    const deadlineMs = this.furtherMs;
    if (asked === null || deadlineMs <= 0) return this.#tell(answer, known);
    this.parts.reasks.own++;
    const policy = { ...this.context.policy, hedge: null };
    this.callFurther({ policy, avoid: new Set([asked.id]), deadlineMs }, (second) => {
      const nonce = numberIn(second.outcome);
      const isHigher = nonce !== null && nonce > this.#after(known);
      recycle(isHigher ? answer.outcome : second.outcome);
      if (isHigher) this.#tell(second, nonce);
      else this.#tell(answer, known);
    });
  }

  #tell(answer: Answer, nonce: number): void {
    const next = this.#after(nonce);
    if (next === nonce) return this.finish(answer);
    recycle(answer.outcome);
    this.finish({ ...answer, outcome: resultOf(`"0x${next.toString(16)}"`) });
  }
}

function isSameMoment(one: TipMoment, other: TipMoment): boolean {
  if (one.tip !== other.tip) return false;
  return one.tip !== null || other.atMs - one.atMs < WITHOUT_TIP_MS;
}

function isFound(outcome: Outcome): boolean {
  return (outcome.kind === "result" || outcome.kind === "stream") && !isNull(outcome);
}

const QUANTITY = /^"(0x[0-9a-fA-F]{1,13})"$/;

function numberIn(outcome: Outcome): number | null {
  if (outcome.kind !== "result" || outcome.end - outcome.start > 32) return null;
  const text = outcome.body.toString("latin1", outcome.start, outcome.end);
  const hex = QUANTITY.exec(text)?.[1];
  return hex === undefined ? null : Number(hex);
}
