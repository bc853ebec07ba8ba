// Routes calls: the engine, put together. Each layer is told of in its own file.

import type { Abandoned } from "../../core/billing/charging.ts";
import type { HedgeSettings, Transport } from "../../core/provider/profile.ts";
import { SERVICE_CALLER } from "../../core/provider/silence.ts";
import { BYPASS } from "../../core/routing/cache-terms.ts";
import { type Policy, policyOf } from "../../core/routing/policy.ts";
import { resolveCall } from "../../core/rpc/resolved-call.ts";
import { OF_TRANSACTIONS } from "../../core/rpc/transaction-call.ts";
import type { Answer } from "./answer.ts";
import type { AttemptParts } from "./attempts/attempt.ts";
import { failover } from "./attempts/failover.ts";
import { cache } from "./cache/cache.ts";
import type { CachedAnswers } from "./cache/cached-answers.ts";
import {
  CallContext,
  type Layer,
  NOTHING_SENT,
  type RouteRequest,
  type RunningCall,
  type Stage,
  type StageListener,
} from "./call-context.ts";
import { AcceptedTransactions } from "./exchange/accepted-transactions.ts";
import { coalesce } from "./layers/coalesce.ts";
import { consistency, isViewed, ViewReasks } from "./layers/consistency.ts";
import { futureBlock, recheckNull } from "./layers/null-answers.ts";
import { ownTransactions, ownTransactionsOf, preferredBy } from "./layers/own-transactions.ts";
import { transactions } from "./layers/transactions.ts";
import type { SplitParts } from "./ranges/range-run.ts";
import { splitRange } from "./ranges/split-range.ts";

/**
 * A routed call, under way or ended: what the evidence is made of. `cancel` ends it without an
 * outcome, since its caller is gone, and tells what may have been carried out.
 */
export type RoutedCall = CallContext & RunningCall;

/** What the router works with. */
export interface RouterParts extends AttemptParts {
  /** How reads are hedged in sets that say nothing of it; null = not at all. */
  readonly hedge: () => HedgeSettings | null;
  /** Whether equal reads share one answer; left out = each is asked by itself. */
  readonly coalesce?: () => boolean;
  /** Whether only calls of one account are equal; left out = they need not be. */
  readonly byAccount?: () => boolean;
  /** Kept answers; left out = nothing is kept. */
  readonly cache?: CachedAnswers | undefined;
  /** How ranges that no provider accepts whole are asked for; left out = they are refused. */
  readonly split?: SplitParts;
  /** Counts what is asked again for the view; left out = nobody reads it. */
  readonly reasks?: ViewReasks;
  /** What callers have handed in; left out = only this router knows it. */
  readonly accepted?: AcceptedTransactions | undefined;
}

/** Routes calls. */
export class Router {
  readonly #parts: RouterParts;
  readonly #answers: CachedAnswers | null;
  readonly #accepted: AcceptedTransactions;
  readonly #providers: Stage;
  readonly #layers: Layers;
  /** Stacks that were needed so far, by the layers that are in them. */
  readonly #stacks: (Stage | undefined)[] = [];

  constructor(parts: RouterParts) {
    const { runtime, split } = parts;
    const { cache: answers = null, reasks = new ViewReasks() } = parts;
    const accepted = parts.accepted ?? new AcceptedTransactions(runtime);
    this.#parts = parts;
    this.#answers = answers;
    this.#accepted = accepted;
    this.#providers = failover(parts);
    this.#layers = {
      view: consistency({ runtime, reasks }),
      own: ownTransactions({ runtime, accepted, reasks }),
      cache: answers === null ? AS_IT_IS : cache(runtime, answers),
      coalesce: coalesce(parts),
      blockByNumber: futureBlock(),
      split: split === undefined ? AS_IT_IS : splitRange({ ...split, runtime }),
      recheckNull: recheckNull(runtime),
      transaction: transactions(runtime),
    };
  }

  route(asked: RouteRequest, done: Done): RoutedCall {
    const { runtime } = this.#parts;
    const request = withOwn(atView(asked), this.#accepted);
    const isCacheable = this.#isCacheable(request);
    const policy = this.#policyOf(request, isCacheable);
    const routed = new RoutedContext(request, policy, runtime.now(), done);
    if (isCacheable && !policy.cache) routed.cacheUse = BYPASS;
    routed.start(this.#stackFor(policy));
    return routed;
  }

  /** Decides once which layers a call passes. What its method rules out is not looked at. */
  #policyOf(request: RouteRequest, isCacheable: boolean): Policy {
    const { limits, split, hedge, coalesce } = this.#parts;
    const { pin, avoid, upstreams, fresh, view, tracker } = request;
    const { method, block, resolution } = request.call;
    const isCallers = request.caller !== SERVICE_CALLER;
    // Any provider may be asked, in the usual way.
    const isUsual = pin === null && upstreams === undefined;
    const isFree = isUsual && avoid === null;
    const mayShare = isFree && fresh !== true;
    const usualHedge = tracker.set.hedge === undefined ? hedge() : tracker.set.hedge;
    const settings = {
      maxAttempts: limits().maxAttempts,
      cache: mayShare && isCacheable,
      coalesce: mayShare && isCallers && method.coalesce && coalesce?.() === true,
      hedge: isFree && isCallers && method.hedge ? usualHedge : null,
      split: isUsual && method.block?.kind === "filter" && split?.splitLimits().split === true,
      view: view !== null && view !== undefined && (resolution !== undefined || isViewed(method)),
      own: (request.own ?? null) !== null,
    };
    const policy = policyOf(method, block, settings);
    return (request.counts ?? "all") === "all" ? policy : aloneOf(policy);
  }

  /** Answers to such calls are kept: calls of the service itself want to know what is so now. */
  #isCacheable({ call, tracker, caller }: RouteRequest): boolean {
    const answers = this.#answers;
    if (answers === null || answers.settings() === null || caller === SERVICE_CALLER) return false;
    return answers.isOn(tracker, call.method);
  }

  /**
   * The stack that calls of a policy pass, from their caller to the providers. Each combination of
   * layers is composed once, when the first call needs it.
   */
  #stackFor(policy: Policy): Stage {
    const key = keyOf(policy);
    const known = this.#stacks[key];
    if (known !== undefined) return known;
    const composed = ORDER.reduceRight(
      (next, layer) =>
        policy[layer] === false || policy[layer] === null ? next : this.#layers[layer](next),
      this.#providers,
    );
    this.#stacks[key] = composed;
    return composed;
  }

  /** Whether it can ask providers over a transport at all. */
  reaches(transport: Transport): boolean {
    return this.#parts.upstreams[transport] !== undefined;
  }
}

/** The layers, from the caller to the providers, each by what a policy says of it. */
const ORDER = [
  "view",
  "own",
  "cache",
  "coalesce",
  "blockByNumber",
  "split",
  "recheckNull",
  "transaction",
] as const satisfies readonly (keyof Policy)[];

type LayerName = (typeof ORDER)[number];

/** Which of the layers a policy wants, as bits. Reads each by its name: a loop costs far more. */
function keyOf(policy: Pick<Policy, LayerName>): number {
  // One for each layer, as the compiler sees to; it costs no object.
  const bits: Readonly<Record<LayerName, number>> = {
    view: policy.view ? 1 : 0,
    own: policy.own ? 2 : 0,
    cache: policy.cache ? 4 : 0,
    coalesce: policy.coalesce ? 8 : 0,
    blockByNumber: policy.blockByNumber ? 16 : 0,
    split: policy.split ? 32 : 0,
    recheckNull: policy.recheckNull ? 64 : 0,
    transaction: policy.transaction === null ? 0 : 128,
  };
  const { view, own, cache, coalesce, blockByNumber, split, recheckNull, transaction } = bits;
  return view | own | cache | coalesce | blockByNumber | split | recheckNull | transaction;
}

type Layers = Readonly<Record<LayerName, Layer>>;

const AS_IT_IS: Layer = (next) => next;

/** The call at the block of its view, if it has a view and names a block by tag. */
function atView(request: RouteRequest): RouteRequest {
  const { view, call } = request;
  if (view === null || view === undefined) return request;
  const resolved = resolveCall(call, view);
  return resolved === null ? request : { ...request, call: resolved };
}

/** The call with what is known of the transactions that it is about. */
function withOwn(request: RouteRequest, accepted: AcceptedTransactions): RouteRequest {
  const { method, methodName } = request.call;
  if (method.transaction === null && !OF_TRANSACTIONS.has(methodName)) return request;
  const own = ownTransactionsOf(request, accepted);
  return own === null ? request : { ...request, own, prefer: preferredBy(own, request, accepted) };
}

/** Where little counts, one provider is asked at a time, and its answer stands. */
function aloneOf(policy: Policy): Policy {
  return { ...policy, maxOpen: 1, recheckNull: false };
}

/** Hears how a routed call ended. */
type Done = (answer: Answer, route: RoutedCall) => void;

/** A call on its way through the engine. */
class RoutedContext extends CallContext implements RoutedCall, StageListener {
  readonly #done: Done;
  #running: RunningCall | null = null;

  constructor(request: RouteRequest, policy: Policy, startedAtMs: number, done: Done) {
    super(request, policy, startedAtMs);
    this.#done = done;
  }

  start(engine: Stage): void {
    this.#running = engine(this, this);
  }

  ended(answer: Answer): void {
    this.source = answer.source;
    this.#done(answer, this);
  }

  cancel(): Abandoned {
    return this.#running?.cancel() ?? NOTHING_SENT;
  }
}
