// The calls that a stage makes to carry out one call: parts of it, and queries of blocks. They pass
// the stages below; their attempts are evidence of the call that they are made for.
import type { Abandoned } from "../../core/billing/charging.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { providerOf } from "../../core/routing/answer-source.ts";
import { type NoAnswer, unansweredOf } from "../../core/routing/failover.ts";
import { type Policy, policyOf } from "../../core/routing/policy.ts";
import { type Call, NO_BLOCK, newCall } from "../../core/rpc/call.ts";
import { type Head, readHead } from "../../core/stream/chain-event.ts";
import type { Runtime } from "../../runtime.ts";
import type { Answer } from "./answer.ts";
import { CallContext, NOTHING_SENT, type RunningCall, type Stage } from "./call-context.ts";

/** What sub-calls are made with. */
export interface SubCallParts {
  readonly runtime: Runtime;
  /** The stages below. */
  readonly next: Stage;
  /** When none of them goes on. */
  readonly endsAtMs: number;
}

/** A call to be made for a call. */
export interface SubCall {
  readonly call: Call;
  readonly policy: Policy;
  readonly pin: Provider | null;
  /** Ids of providers that are not asked; null = those that the call itself avoids. */
  readonly avoid: ReadonlySet<string> | null;
  readonly deadlineMs: number;
}

/** A block to ask for. */
export interface HeaderQuery {
  readonly method: "eth_getBlockByNumber" | "eth_getBlockByHash";
  /** A number in hex, a tag or a hash. */
  readonly block: string;
  /** The only one to ask; null = any. */
  readonly pin: Provider | null;
  /** Ids of providers that are not asked; null = those that the call itself avoids. */
  readonly avoid: ReadonlySet<string> | null;
}

/** The calls under way for one call. */
export class SubCalls {
  readonly #parts: SubCallParts;
  readonly #context: CallContext;
  readonly #out = new Map<CallContext, RunningCall>();
  #isClosed = false;

  constructor(parts: SubCallParts, context: CallContext) {
    this.#parts = parts;
    this.#context = context;
  }

  /** Makes a call. Calls back once, or never after `close`; returns its call, null after that. */
  run(
    { call, policy, ...rest }: SubCall,
    done: (answer: Answer, sub: CallContext) => void,
  ): CallContext | null {
    if (this.#isClosed) return null;
    const { runtime, next } = this.#parts;
    const { request } = this.#context;
    const startedAtMs = runtime.now();
    const { pin, deadlineMs } = rest;
    const avoid =
      rest.avoid === null ? request.avoid : new Set([...(request.avoid ?? []), ...rest.avoid]);
    const sub = new CallContext(
      { ...request, call, pin, avoid, deadlineMs, mayStream: false },
      policy,
      {
        startedAtMs,
        endsAtMs: startedAtMs + deadlineMs,
      },
    );
    let over = false;
    const running = next(sub, {
      ended: (answer) => {
        over = true;
        this.#out.delete(sub);
        this.#absorb(sub);
        if (!this.#isClosed) done(answer, sub);
      },
    });
    if (!over) this.#out.set(sub, running);
    return sub;
  }

  /** Asks for a block; null = nobody gave it, and why. Never calls back after `close`. */
  block(
    { method, block, pin, avoid }: HeaderQuery,
    done: (head: Head | null, why: NoAnswer) => void,
  ): void {
    const { request, policy } = this.#context;
    const number = HEX.test(block)
      ? ({ kind: "number", number: Number(block) } as const)
      : NO_BLOCK;
    const call = newCall(method, `["${block}",false]`, number);
    const leftMs = this.#parts.endsAtMs - this.#parts.runtime.now();
    const query = {
      call,
      policy: policyOf(call.method, NO_BLOCK, {
        ...policy,
        coalesce: false,
        hedge: null,
        split: false,
      }),
      pin,
      avoid,
      deadlineMs: Math.max(1, Math.min(request.deadlineMs, leftMs)),
    };
    this.run(query, (answer, sub) => {
      const { outcome } = answer;
      const head =
        outcome.kind === "result"
          ? readHead(outcome.body.subarray(outcome.start, outcome.end))
          : null;
      done(head, whyUnanswered(answer, sub));
    });
  }

  /** Cancels what is out, and tells what of it may have been carried out. */
  close(): Abandoned {
    this.#isClosed = true;
    const left: Abandoned[] = [];
    for (const [sub, running] of this.#out) {
      left.push(running.cancel());
      this.#absorb(sub);
    }
    this.#out.clear();
    const sent = left.filter((abandoned) => abandoned.sent);
    if (sent.length === 0) return NOTHING_SENT;
    return { sent: true, countedAsTimeout: sent.every((one) => one.countedAsTimeout) };
  }

  /** The plan of the call stays that of its first sub-call. */
  #absorb(sub: CallContext): void {
    const { plan } = this.#context;
    this.#context.absorb(sub);
    if (plan.candidates.length > 0) this.#context.plan = plan;
  }
}

/** A number, as it is asked for; a hash is longer. */
const HEX = /^0x[0-9a-f]{1,13}$/;

/** Why a call has no answer that tells something. A provider that answered it cannot tell more. */
export function whyUnanswered(
  { source }: Answer,
  { plan, failed, request }: CallContext,
): NoAnswer {
  const answering = providerOf(source);
  const { unable, isForNow } = unansweredOf({ plan, failed, avoid: request.avoid });
  return { unable: answering === null ? unable : [...unable, answering.id], isForNow };
}
