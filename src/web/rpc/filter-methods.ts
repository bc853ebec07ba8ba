// The filter methods as callers see them: who owns a filter, which calls are refused, how each is
// answered. Filters and their events are kept in `upstream/filter`.
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { parseJson } from "../../core/fields.ts";
import { type Provider, profileId } from "../../core/provider/profile.ts";
import { NO_SOURCE, SHARED_SOURCE } from "../../core/routing/answer-source.ts";
import { STRATEGY_NAMES } from "../../core/routing/strategy.ts";
import type { FilterOrigin, FilterRecord } from "../../core/stream/filter-record.ts";
import {
  type InvalidSubscription,
  readCriteria,
  readSubscription,
  type Subscription,
  subscriptionParams,
} from "../../core/stream/subscription.ts";
import type { Admission } from "../../hosted/admission/admission.ts";
import type { Grant } from "../../hosted/admission/grant.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import { sourceOf } from "../../upstream/engine/answer.ts";
import type { FilterClaims, FilterRevival } from "../../upstream/filter/filter-claims.ts";
import type { FilterAnswer, FilterRef } from "../../upstream/filter/filter-forwarding.ts";
import type {
  Filter,
  FilterKind,
  FilterRequest,
  Filters,
  OpenedFilter,
  PolledFilter,
} from "../../upstream/filter/filters.ts";
import type { Tracker } from "../../upstream/health/tracker.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { PipelineParts } from "./calls/pipeline-request.ts";
import type { RpcLimits } from "./limits.ts";
import {
  type FilterCall,
  type FilterLogsQuery,
  type FilterMethods,
  type MethodAnswer,
  streamCaller,
} from "./service-methods.ts";
import type { Target } from "./target.ts";

export interface FilterMethodsParts extends Pick<PipelineParts, "admission" | "deadlineMs"> {
  readonly filters: Filters;
  /** Which process keeps a filter, and how it goes on at another one. */
  readonly claims: Pick<FilterClaims, "created" | "poll" | "read" | "uninstall">;
  readonly registry: Pick<ProfileRegistry, "served">;
  readonly limits: () => RpcLimits;
}

/** Creates the handlers of the filter methods. */
export function createFilterMethods(parts: FilterMethodsParts): FilterMethods {
  const { admission } = parts;
  const keys = admission === null ? null : new KeyWatch(admission);
  return {
    serve(call, done) {
      if (!call.answered) {
        done(refused(notificationFault(call.methodName)));
        return null;
      }
      if (call.grant !== null) keys?.used(call.grant);
      const requested = requestedFilter({
        methodName: call.methodName,
        params: subscriptionParams(call.params),
        ...call.target,
      });
      if (requested === null) return answerCall(parts, keys, call, done);
      if (requested.kind !== "fault") return openFilter(parts, keys, { call, requested }, done);
      done(refused(requested));
      return null;
    },
    logs: (call, done) => logsQuery(parts, call, done),
  };
}

/** Polls or ends a filter, here or where it is kept. */
function answerCall(
  parts: FilterMethodsParts,
  keys: KeyWatch | null,
  call: FilterCall,
  done: (answer: MethodAnswer) => void,
): () => void {
  const { claims } = parts;
  const ref = refOf(call);
  if (call.methodName === "eth_uninstallFilter")
    return unlessCancelled(claims.uninstall(ref), (ended) => done(uninstalled(ended)));
  return unlessCancelled(
    claims.poll(ref, revivalOf(parts, keys, call)),
    (polled) => done(polledAnswer(polled)),
    (polled) => polled.kind === "found" && polled.value.settle(false),
  );
}

function polledAnswer(polled: FilterAnswer<PolledFilter>): MethodAnswer {
  if (polled.kind !== "found") return refused(NOT_ANSWERED[polled.kind]);
  const { json, settle } = polled.value;
  return { ...served(json), written: settle };
}

function uninstalled(ended: FilterAnswer<boolean>): MethodAnswer {
  return ended.kind === "silent" || ended.kind === "away"
    ? refused(NOT_ANSWERED[ended.kind])
    : served(String(ended.kind === "found" && ended.value));
}

/** Passes on what a promise resolves with. Returns a function that cancels. */
function unlessCancelled<T>(
  promise: Promise<T>,
  done: (value: T) => void,
  late: (value: T) => void = () => {},
): () => void {
  let isCancelled = false;
  void promise.then((value) => (isCancelled ? late(value) : done(value)));
  return () => {
    isCancelled = true;
  };
}

/** How a filter of another node goes on here, for the caller of a poll. */
function revivalOf(
  parts: FilterMethodsParts,
  keys: KeyWatch | null,
  call: FilterCall,
): FilterRevival {
  const { grant } = call;
  return {
    request: (record) => revivedRequest(parts, call, record),
    opened(filter) {
      if (grant !== null) keys?.watch(grant, filter);
    },
  };
}

function revivedRequest(
  parts: FilterMethodsParts,
  call: FilterCall,
  record: FilterRecord,
): FilterRequest | null {
  const { owner, profile, named, method: methodName } = record;
  const at = placeOf(parts, record);
  const strategy = STRATEGY_NAMES.find((name) => name === record.strategy);
  if (at === null || strategy === undefined) return null;
  const params = parseJson(record.params);
  const requested = requestedFilter({ methodName, params, ...at });
  if (requested === null || requested.kind === "fault") return null;
  return {
    ...requested,
    owner,
    profile,
    named,
    strategy,
    tracker: at.tracker,
    pin: at.pin,
    deadlineMs: parts.deadlineMs(call.method),
    caller: streamCaller(call.caller, call.grant !== null, parts.limits()),
  };
}

/** The input of a call that creates a filter. */
interface FilterCreation {
  readonly call: FilterCall;
  readonly requested: RequestedFilter;
}

/**
 * Creates a filter. `keys` null = the service has no keys. Returns a function that cancels the
 * creation, or null if it has ended.
 */
function openFilter(
  parts: FilterMethodsParts,
  keys: KeyWatch | null,
  { call, requested }: FilterCreation,
  done: (answer: MethodAnswer) => void,
): (() => void) | null {
  const { target, method, grant } = call;
  const { profile, tracker, strategy, pin } = target;
  let over = false;
  let isCancelled = false;
  const cancel = parts.filters.open(
    {
      ...requested,
      profile: profileId(profile),
      tracker,
      strategy,
      pin,
      deadlineMs: parts.deadlineMs(method),
      owner: ownerOf(call),
      named: target.named,
      caller: streamCaller(call.caller, grant !== null, parts.limits()),
    },
    (opened) => {
      const answer = (): void => {
        over = true;
        done(answerOf(requested.kind, opened));
      };
      if (opened.kind === "refused") return answer();
      if (grant !== null) keys?.watch(grant, opened.filter);
      void parts.claims.created(opened.filter).then(() => isCancelled || answer());
    },
  );
  if (over) return null;
  return () => {
    isCancelled = true;
    cancel();
  };
}

/**
 * Finds the `eth_getLogs` query that answers `eth_getFilterLogs`: that of the filter, in the
 * profile that created it. Returns the function that cancels.
 */
function logsQuery(
  parts: FilterMethodsParts,
  call: FilterCall,
  done: (logs: FilterLogsQuery | Fault) => void,
): () => void {
  return unlessCancelled(parts.claims.read(refOf(call)), (found) => {
    if (found.kind !== "found") return done(NOT_ANSWERED[found.kind]);
    const { method, params } = found.value;
    const criteria = method === "eth_newFilter" ? readCriteria(parseJson(params)) : null;
    const at = placeOf(parts, found.value);
    if (criteria?.kind !== "criteria" || at === null) return done(NOT_FOUND);
    const target = { ...call.target, ...at };
    done({ kind: "query", target, params: Buffer.from(criteria.query) });
  });
}

/** What serves a filter now; null = its profile, chain or pinned provider is gone. */
function placeOf(
  { registry }: FilterMethodsParts,
  place: Pick<FilterOrigin, "profile" | "chain" | "pin">,
): Pick<Target, "profile" | "tracker" | "pin"> | null {
  const served = registry.served(place.profile);
  const tracker = served?.trackers.get(place.chain);
  if (served === undefined || tracker === undefined) return null;
  const pin =
    place.pin === null ? null : tracker.set.providers.find((provider) => provider.id === place.pin);
  return pin === undefined ? null : { profile: served.profile, tracker, pin };
}

function notificationFault(methodName: string): Fault {
  return fault(
    "invalid_request",
    `${methodName} without an id has no answer to bring its result in`,
  );
}

/** The kind and criteria of a filter to be created. */
type RequestedFilter = Pick<FilterRequest, "kind" | "subscription" | "method" | "params">;

/** A call that may create a filter. */
interface FilterInput {
  readonly methodName: string;
  readonly params: unknown;
  readonly tracker: Tracker;
  readonly pin: Provider | null;
}

/** The filter that a call asks to create; null = the method creates none. */
function requestedFilter(input: FilterInput): RequestedFilter | Fault | null {
  const { methodName, params, tracker, pin } = input;
  const requested = (
    kind: FilterKind,
    subscription: Subscription | InvalidSubscription,
  ): RequestedFilter | Fault =>
    subscription.kind === "invalid"
      ? invalid(subscription.message)
      : { kind, subscription, method: methodName, params: JSON.stringify(params) };
  switch (methodName) {
    case "eth_newFilter": {
      const criteria = readCriteria(params);
      return requested("logs", criteria.kind === "invalid" ? criteria : criteria.subscription);
    }
    case "eth_newBlockFilter":
      return requested("blocks", readSubscription(["newHeads"]));
    case "eth_newPendingTransactionFilter": {
      const isPushed = (provider: Provider): boolean => provider.wsUrl !== null;
      if (!(pin === null ? tracker.set.providers : [pin]).some(isPushed))
        return noPending("no provider here tells of pending transactions");
      return requested(
        "pending",
        readSubscription(["newPendingTransactions", ...(Array.isArray(params) ? params : [])]),
      );
    }
    default:
      return null;
  }
}

function answerOf(kind: FilterKind, opened: OpenedFilter): MethodAnswer {
  const { route } = opened;
  if (opened.kind === "opened") {
    const { filter } = opened;
    return {
      ...served(`"${filter.id}"`),
      route,
      source: route === null ? SHARED_SOURCE : route.source,
      written: (shown) => shown || filter.end("unclaimed"),
    };
  }
  const { outcome } = opened;
  if (kind === "pending" && outcome.kind === "error")
    return {
      ...refused(noPending("no provider here takes a subscription to pending transactions")),
      route,
    };
  return {
    outcome,
    route,
    written: null,
    source: sourceOf(outcome, route),
  };
}

/**
 * A filter belongs to the key that created it, on its chain. Without a key it is open to every
 * caller of the profile who knows its id, which cannot be guessed.
 */
function ownerOf({ grant, target }: FilterCall): string {
  const whose =
    grant === null ? `profile ${profileId(target.profile)}` : `key ${grant.keyContext.keyId}`;
  return `${whose} ${target.chain.chainName}`;
}

function refOf(call: FilterCall): FilterRef {
  return { owner: ownerOf(call), id: idIn(call) };
}

function idIn(call: FilterCall): string {
  const params = subscriptionParams(call.params);
  const id: unknown = Array.isArray(params) ? params[0] : undefined;
  return typeof id === "string" ? id.toLowerCase() : "";
}

const NOT_FOUND = fault("filter_not_found", "filter not found");

/** Why a question to another worker has no answer. */
const NOT_ANSWERED = {
  none: NOT_FOUND,
  silent: fault("unavailable", "the worker that keeps this filter does not answer now", {
    status: 200,
  }),
  away: fault("unavailable", "this filter cannot be read here now: poll it again", {
    status: 200,
  }),
} as const;

function noPending(message: string): Fault {
  return fault("filter_unsupported", message);
}

function invalid(message: string): Fault {
  return fault("invalid_field", message, {
    status: 200,
    nextAction: "send the criteria of a log filter as eth_getLogs takes them, without blockHash",
  });
}

function refused(why: Fault): MethodAnswer {
  return { outcome: { kind: "fault", fault: why }, route: null, written: null, source: NO_SOURCE };
}

/** An answer that the service itself gives, from a filter. */
function served(json: string | Buffer): MethodAnswer {
  const body = Buffer.from(json);
  return {
    outcome: { kind: "result", body, start: 0, end: body.length, idAt: null },
    route: null,
    written: null,
    source: SHARED_SOURCE,
  };
}

/**
 * Ends the filters of keys that have ended or may no longer use a profile. Watches a key once per
 * profile in which it has filters.
 */
class KeyWatch {
  readonly #admission: Admission;
  readonly #byKey = new Map<string, Map<string, Watched>>();

  constructor(admission: Admission) {
    this.#admission = admission;
  }

  watch({ keyContext }: Grant, filter: Filter): void {
    const { keyId } = keyContext;
    const profile = filter.request.named;
    const byProfile = this.#byKey.get(keyId) ?? new Map<string, Watched>();
    this.#byKey.set(keyId, byProfile);
    const watched = byProfile.get(profile) ?? this.#begin(keyContext, profile);
    byProfile.set(profile, watched);
    watched.filters.add(filter);
    filter.whenEnded(() => {
      watched.filters.delete(filter);
      if (watched.filters.size > 0) return;
      watched.forget();
      byProfile.delete(profile);
      if (byProfile.size === 0) this.#byKey.delete(keyId);
    });
  }

  /**
   * Notes the use of a key. After a rotation the key may come with another secret: the latest one
   * is checked from then on.
   */
  used({ keyContext }: Grant): void {
    for (const [profile, watched] of this.#byKey.get(keyContext.keyId) ?? []) {
      if (watched.keyContext === keyContext) continue;
      watched.forget();
      watched.keyContext = keyContext;
      watched.forget = this.#watchKey(keyContext, profile, watched.filters);
    }
  }

  #begin(keyContext: KeyContext, profile: string): Watched {
    const filters = new Set<Filter>();
    return { keyContext, filters, forget: this.#watchKey(keyContext, profile, filters) };
  }

  #watchKey(keyContext: KeyContext, profile: string, filters: Watched["filters"]): () => void {
    return this.#admission.watchKey(keyContext, profile, (reason) => {
      // A rotated secret, an empty balance or a changed default profile does not end filters: no
      // call needs them to.
      if (
        reason !== "forbidden" &&
        reason !== "custom_access_expired" &&
        !keyContext.bounds.revoked
      )
        return;
      for (const filter of [...filters]) filter.end("owner");
    });
  }
}

interface Watched {
  /** The key with the secret that was used last. */
  keyContext: KeyContext;
  readonly filters: Set<Filter>;
  forget: () => void;
}
