// A call on its way through one layer: it goes to the stages below, and its layer may make further
// calls before it answers: the same call again, parts of it, queries of blocks. Further calls pass
// the stages below; their attempts are evidence of the call that they are made for.
import type { Abandoned } from "../../core/billing/charging.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { providerOf } from "../../core/routing/answer-source.ts";
import { type NoAnswer, unansweredOf } from "../../core/routing/failover.ts";
import { type Policy, policyOf } from "../../core/routing/policy.ts";
import { NO_BLOCK, newCall } from "../../core/rpc/call.ts";
import { type Head, readHead } from "../../core/stream/chain-event.ts";
import type { Runtime } from "../../runtime.ts";
import type { Answer } from "./answer.ts";
import {
  CallContext,
  NOTHING_SENT,
  type RouteRequest,
  type RunningCall,
  type Stage,
  type StageListener,
} from "./call-context.ts";

/** What a layer works with. */
export interface LayerParts {
  readonly runtime: Pick<Runtime, "now" | "after">;
  /** The stages below. */
  readonly next: Stage;
}

/** A call to be made for a call: its policy, and what differs from the request of the call. */
export interface FurtherCall extends Partial<RouteRequest> {
  readonly policy: Policy;
  readonly deadlineMs: number;
}

/** A block to ask for. */
export interface HeaderQuery {
  /** A number in hex, a tag or a hash. */
  readonly block: string;
  /** The only one to ask; omitted = any. */
  readonly pin?: Provider;
  /** Ids of providers that are not asked beside those that the call avoids. */
  readonly avoid?: ReadonlySet<string> | null;
}

/** One call in one layer. */
export abstract class LayerRun<Parts extends LayerParts = LayerParts>
  implements StageListener, RunningCall
{
  protected readonly parts: Parts;
  protected readonly context: CallContext;
  protected readonly listener: StageListener;
  /** The stages below have answered the call itself. */
  protected hasAnswer = false;
  protected isOver = false;
  /** The call itself, while it is under way below. */
  protected running: RunningCall | null = null;
  /** Null = no further call was made. */
  #further: Map<CallContext, RunningCall> | null = null;
  /** Null = no timer was set. */
  #timers: Set<() => void> | null = null;

  constructor(parts: Parts, context: CallContext, listener: StageListener) {
    this.parts = parts;
    this.context = context;
    this.listener = listener;
  }

  start(): RunningCall {
    const running = this.parts.next(this.context, this);
    if (!this.hasAnswer) this.running = running;
    return this;
  }

  ended(answer: Answer): void {
    this.hasAnswer = true;
    this.running = null;
    if (!this.isOver) this.judge(answer);
  }

  /** When no further block is waited for. */
  protected get endsAtMs(): number {
    return this.context.endsAtMs;
  }

  /** Decides what follows from the answer of the stages below. */
  protected abstract judge(answer: Answer): void;

  cancel(): Abandoned {
    if (this.isOver) return NOTHING_SENT;
    return this.abandoned(this.close());
  }

  /** What its caller is told who has left: before the further calls there was an answer. */
  protected abandoned(left: Abandoned): Abandoned {
    return this.hasAnswer ? { sent: true, countedAsTimeout: false } : left;
  }

  protected finish(answer: Answer): void {
    if (this.isOver) return;
    this.close();
    this.listener.ended(answer);
  }

  /** Ends what is out, and tells what of it may have been carried out. */
  protected close(): Abandoned {
    this.isOver = true;
    const left = this.running?.cancel() ?? NOTHING_SENT;
    if (this.#timers !== null) for (const cancel of this.#timers) cancel();
    const further = this.#further === null ? NOTHING_SENT : this.#closeFurther(this.#further);
    return left.sent ? left : further;
  }

  #closeFurther(calls: Map<CallContext, RunningCall>): Abandoned {
    const left: Abandoned[] = [];
    for (const [call, running] of calls) {
      left.push(running.cancel());
      this.#absorb(call);
    }
    calls.clear();
    const sent = left.filter((abandoned) => abandoned.sent);
    if (sent.length === 0) return NOTHING_SENT;
    return { sent: true, countedAsTimeout: sent.every((one) => one.countedAsTimeout) };
  }

  /**
   * Makes a further call, which avoids the providers that the call itself avoids as well. Calls
   * back once, or never after the end; returns null after that.
   */
  protected callFurther(
    { policy, ...changes }: FurtherCall,
    done: (answer: Answer, further: CallContext) => void,
  ): CallContext | null {
    if (this.isOver) return null;
    const { request } = this.context;
    const { deadlineMs } = changes;
    const avoid = together(request.avoid, changes.avoid ?? null);
    const startedAtMs = this.parts.runtime.now();
    const further = new CallContext({ ...request, mayStream: false, ...changes, avoid }, policy, {
      startedAtMs,
      endsAtMs: startedAtMs + deadlineMs,
    });
    let hasEnded = false;
    const running = this.parts.next(further, {
      ended: (answer) => {
        hasEnded = true;
        this.#further?.delete(further);
        this.#absorb(further);
        if (!this.isOver) done(answer, further);
      },
    });
    if (hasEnded) return further;
    this.#further ??= new Map();
    this.#further.set(further, running);
    return further;
  }

  /** Asks for a block; null = nobody gave it, and why. Never calls back after the end. */
  protected queryHeader(
    { block, ...whom }: HeaderQuery,
    done: (head: Head | null, why: NoAnswer) => void,
  ): void {
    const { request, policy } = this.context;
    const method = block.length === HASH_CHARS ? "eth_getBlockByHash" : "eth_getBlockByNumber";
    const number = HEX.test(block)
      ? ({ kind: "number", number: Number(block) } as const)
      : NO_BLOCK;
    const call = newCall(method, `["${block}",false]`, number);
    const settings = { ...policy, coalesce: false, hedge: null, split: false };
    const leftMs = this.endsAtMs - this.parts.runtime.now();
    const query = {
      call,
      policy: policyOf(call.method, NO_BLOCK, settings),
      deadlineMs: Math.max(1, Math.min(request.deadlineMs, leftMs)),
    };
    this.callFurther({ ...query, ...whom }, (answer, further) => {
      const { outcome } = answer;
      const head =
        outcome.kind === "result"
          ? readHead(outcome.body.subarray(outcome.start, outcome.end))
          : null;
      done(head, whyUnanswered(answer, further));
    });
  }

  /** Calls `run` later, unless it is over then; the returned function cancels. */
  protected after(ms: number, run: () => void): () => void {
    const cancel = this.parts.runtime.after(ms, () => {
      this.#timers?.delete(cancel);
      run();
    });
    this.#timers ??= new Set();
    this.#timers.add(cancel);
    return cancel;
  }

  /** The plan of the call stays that of the first call that had one. */
  #absorb(further: CallContext): void {
    const { plan } = this.context;
    this.context.absorb(further);
    if (plan.candidates.length > 0) this.context.plan = plan;
  }
}

const HASH_CHARS = 66;
/** A number, as it is asked for; a hash is longer. */
const HEX = /^0x[0-9a-f]{1,13}$/;

/** All of these ids; null = there are none. */
export function together(
  some: ReadonlySet<string> | null,
  more: ReadonlySet<string> | null,
): ReadonlySet<string> | null {
  return some === null || more === null ? (some ?? more) : some.union(more);
}

/** Why a call has no answer that tells something. A provider that answered it cannot tell more. */
export function whyUnanswered(
  { source }: Answer,
  { plan, failed, request }: CallContext,
): NoAnswer {
  const answering = providerOf(source);
  const { unable, isForNow } = unansweredOf({ plan, failed, avoid: request.avoid });
  return { unable: answering === null ? unable : [...unable, answering.id], isForNow };
}
