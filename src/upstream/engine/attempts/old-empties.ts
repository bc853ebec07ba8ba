// Empty answers about old blocks. A node that has dropped old logs, receipts, transactions or
// blocks may say that there are none. So such an answer is believed only of a provider that is
// known to have them; of others of which nothing is known, once two operators gave it, or where
// nobody else can be asked. It is never believed of one that is known to lack them, and of no
// other while one that has them fails or may not be asked: then the call ends with a failure.
import type { Channel } from "../../../core/provider/attempt.ts";
import type { ExclusionReason } from "../../../core/provider/capability.ts";
import { tipOperatorOf } from "../../../core/provider/operator.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import { type Answer, providerAnswer, wholeResult } from "../answer.ts";
import type { CallContext } from "../call-context.ts";
import type { Candidates } from "./open-attempts.ts";

/** An empty answer that was not believed. */
interface EmptyAnswer {
  readonly channel: Channel;
  readonly said: Buffer;
}

/** The empty answers of one call that were not believed. */
export class OldEmpties {
  readonly #context: CallContext;
  readonly #candidates: Candidates;
  /** Of providers of which nothing is known. */
  readonly #heard: EmptyAnswer[] = [];
  /** Whether one that lacks the blocks answered. */
  #hasRefuted = false;

  constructor(context: CallContext, candidates: Candidates) {
    this.#context = context;
    this.#candidates = candidates;
  }

  /** Whether an answer was not believed. */
  get any(): boolean {
    return this.#hasRefuted || this.#heard.length > 0;
  }

  /** Whether an empty answer is not believed, so that the next provider is to be asked. */
  doubts(channel: Channel, said: Buffer): boolean {
    const { call, tracker } = this.#context.request;
    const { provider } = channel;
    const presence = tracker.presenceOfOld(provider, call);
    if (presence === "has") return false;
    if (presence === "lacks") this.#hasRefuted = true;
    const operator = tipOperatorOf(provider);
    const isAgreed = this.#heard.some(
      (other) => tipOperatorOf(other.channel.provider) !== operator,
    );
    if (presence === "unknown") this.#heard.push({ channel, said });
    if (this.#candidates.prefer((other) => this.#isHolder(other)) || this.#isHolderFailing())
      return true;
    return presence === "lacks" || (!isAgreed && this.#mayAskMore);
  }

  get #mayAskMore(): boolean {
    return this.#candidates.any || this.#candidates.hasReserve;
  }

  /** Another provider has found something: those that found nothing have dropped it. */
  disprove(): void {
    const { call, tracker } = this.#context.request;
    for (const { channel } of this.#heard) tracker.foundPruned(channel, call);
  }

  /** The answer where nobody else is left; null = there is none that may be told. */
  answer(): Answer | null {
    const [first] = this.#heard;
    if (first === undefined || this.#isHolderFailing()) return null;
    return providerAnswer(wholeResult(first.said), first.channel.provider);
  }

  /** Whether a provider, of those that may be asked for this call, is known to have the blocks. */
  #isHolder(provider: Provider): boolean {
    const { avoid, call, tracker } = this.#context.request;
    return avoid?.has(provider.id) !== true && tracker.presenceOfOld(provider, call) === "has";
  }

  #isHolderFailing(): boolean {
    const { plan, failed } = this.#context;
    return (
      failed.some(({ attempt: { provider } }) => this.#isHolder(provider)) ||
      plan.excluded.some(({ provider, reason }) => PASSING.has(reason) && this.#isHolder(provider))
    );
  }
}

/** Reasons that pass: a provider with such a reason may be asked later. */
const PASSING: ReadonlySet<ExclusionReason> = new Set([
  "circuit_open",
  "trial_in_flight",
  "cordoned",
  "lagging",
  "rps_limit",
  "concurrency_limit",
  "daily_limit",
  "monthly_limit",
] satisfies ExclusionReason[]);
