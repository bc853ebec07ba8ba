// Writes: a provider that has a transaction already, or whose answer got lost, has not refused it.
// Answers with the transaction's hash or receipt where a node has the transaction, hands it to
// another provider where one does not answer, and names the hash where its fate is unknown.
import { type Abandoned, abandonedAfter } from "../../../core/billing/charging.ts";
import { isAskedFor } from "../../../core/provider/method-scope.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import type { FailedAttempt } from "../../../core/routing/failover.ts";
import { policyOf } from "../../../core/routing/policy.ts";
import { type Call, newCall } from "../../../core/rpc/call.ts";
import { rawTransactionIn } from "../../../core/rpc/transaction-call.ts";
import type { Runtime } from "../../../runtime.ts";
import { type Answer, faultAnswer, providerAnswer, resultOf } from "../answer.ts";
import { type CallContext, type Layer, LayerRun, type RunningCall } from "../call-context.ts";
import { hashOfTransaction } from "../exchange/transaction-identity.ts";
import { outcomeUnknown } from "../refusal.ts";

/** The layer of raw transactions. */
export function transactions(runtime: Runtime): Layer {
  return (next) => (context, listener) =>
    new Submission({ runtime, next }, context, listener).start();
}

/** Longest time for finding out whether a node has a transaction. */
const LOOKUP_MS = 3_000;
/** A provider that has not answered for so long is not waited for alone. */
const PATIENCE_MS = 2_000;
/** Providers that are handed one transaction, beside those that certainly were not reached. */
const MAX_HANDED = 4;

/**
 * A transaction on its way. Signed bytes are executed once, however many nodes have them: where a
 * provider does not answer, or its answer is lost, the next provider gets the same bytes.
 */
class Submission extends LayerRun {
  /** All that have been begun, and how many of them have not ended. */
  readonly #contexts: CallContext[] = [];
  #handed = 0;
  #open = 0;
  #isLookingUp = false;
  /** What is answered if nobody gives a better one. */
  #last: Answer | null = null;
  #isUnknown = false;
  #cancelPatience = (): void => {};

  override start(): RunningCall {
    this.#begin(this.context);
    return super.start();
  }

  protected override abandoned(left: Abandoned): Abandoned {
    return this.hasAnswer ? abandonedAfter(this.context.failed) : left;
  }

  protected judge(answer: Answer): void {
    this.#judge(answer, this.context.failed.at(-1));
  }

  /** The bytes are handed to one more; after a while to the next one as well. */
  #begin(context: CallContext | null): void {
    if (context !== null) this.#contexts.push(context);
    this.#handed++;
    this.#open++;
    // A receipt takes as long as a block.
    if (this.context.policy.transaction !== "hash" || this.context.request.pin !== null) return;
    this.#cancelPatience();
    this.#cancelPatience = this.after(PATIENCE_MS, () => this.#handOn());
  }

  /** Decides by what the last provider of a call said. */
  #judge(answer: Answer, failed: FailedAttempt | undefined): void {
    this.#open--;
    const { outcome } = answer;
    if (outcome.kind === "result" || outcome.kind === "stream") return this.finish(answer);
    const isUnknown = outcome.kind === "fault" && outcome.fault.code === "outcome_unknown";
    this.#isUnknown ||= isUnknown;
    const step = failed?.verdict.step;
    if (!isUnknown && failed !== undefined && (step === "known" || step === "verify"))
      return this.#resolve(answer, failed);
    this.#settle(answer, isUnknown);
  }

  /** Nobody has confirmed it so far. */
  #settle(answer: Answer, isUnknown: boolean): void {
    // A refusal holds for every node, even if another node did not answer.
    if (answer.outcome.kind === "error") return this.finish(answer);
    this.#last = answer;
    if (isUnknown) this.#handOn();
    if (this.#open > 0 || this.isOver) return;
    const { failed, request } = this.context;
    const hash = hashIn(request.call);
    this.finish(this.#isUnknown ? faultAnswer(outcomeUnknown(failed, hash)) : this.#last);
  }

  /** A provider has the transaction, or its nonce was used. */
  #resolve(answer: Answer, { verdict, attempt }: FailedAttempt): void {
    const wanted = this.context.policy.transaction;
    const hash = hashIn(this.context.request.call);
    if (hash === null || wanted === null || wanted === "other") return this.finish(answer);
    // The node has this very transaction: that is what the caller wanted, unless it waits for the
    // receipt.
    if (verdict.step === "known" && wanted === "hash")
      return this.finish(providerAnswer(resultOf(`"${hash}"`), attempt.provider));
    this.#lookUp(hash, wanted, attempt.provider, answer);
  }

  /** Hands the same bytes to a provider that has not had them. */
  #handOn(): void {
    const { request, policy, endsAtMs } = this.context;
    const deadlineMs = endsAtMs - this.parts.runtime.now();
    const isEnough = this.#handed >= MAX_HANDED || this.#isLookingUp || deadlineMs <= 0;
    if (isEnough || request.pin !== null || policy.transaction === "other") return;
    const avoid = this.#asked();
    const { methodName } = request.call;
    const mayHave = (each: Provider): boolean =>
      !avoid.has(each.id) && isAskedFor(each, methodName);
    if (!request.tracker.set.providers.some(mayHave)) return;
    this.#begin(null);
    const context = this.callFurther({ policy, avoid, deadlineMs }, (answer, { failed }) =>
      this.#judge(answer, failed.at(-1)),
    );
    if (context !== null) this.#contexts.push(context);
  }

  #asked(): ReadonlySet<string> {
    const asked = new Set(this.context.failed.map(({ attempt }) => attempt.provider.id));
    for (const { lastAsked } of this.#contexts) if (lastAsked !== null) asked.add(lastAsked.id);
    return asked;
  }

  /**
   * A nonce that was used: by this very transaction, which is a success, or by another. The node
   * that says so is the one that knows.
   */
  #lookUp(hash: string, wanted: "hash" | "receipt", pin: Provider, otherwise: Answer): void {
    const { policy, endsAtMs } = this.context;
    const deadlineMs = Math.min(endsAtMs - this.parts.runtime.now(), LOOKUP_MS);
    if (deadlineMs <= 0) return this.finish(otherwise);
    const what = wanted === "hash" ? "eth_getTransactionByHash" : "eth_getTransactionReceipt";
    const call = newCall(what, `["${hash}"]`);
    const settings = { ...policy, coalesce: false, hedge: null, split: false };
    const ofLookup = policyOf(call.method, call.block, settings);
    this.#isLookingUp = true;
    this.callFurther({ call, policy: ofLookup, pin, deadlineMs, isAside: true }, ({ outcome }) => {
      const isResult = outcome.kind === "result";
      const found = isResult ? outcome.body.toString("utf8", outcome.start, outcome.end) : "";
      if (!found.toLowerCase().includes(hash)) return this.finish(otherwise);
      const text = wanted === "hash" ? `"${hash}"` : found;
      this.finish(providerAnswer(resultOf(text), pin));
    });
  }
}

/** The hash of the transaction that a call hands in; null = it hands in none. */
function hashIn(call: Call): string | null {
  const raw = rawTransactionIn(call);
  return raw === null ? null : hashOfTransaction(raw);
}
