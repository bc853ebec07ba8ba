// The filter methods as callers see them: who owns a filter, which calls are refused, how each is
// answered. Filters and their events are kept in `upstream/filter`.
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { parseJson } from "../../core/fields.ts";
import { type Profile, type Provider, profileId } from "../../core/provider/profile.ts";
import { SHARED_SOURCE } from "../../core/routing/answer-source.ts";
import { STRATEGY_NAMES } from "../../core/routing/strategy.ts";
import type { Method } from "../../core/rpc/method.ts";
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
import { type Outcome, resultOf, sourceOf, wholeResult } from "../../upstream/engine/answer.ts";
import type { FilterClaims } from "../../upstream/filter/filter-claims.ts";
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
import type { RpcLimits } from "./limits.ts";
import {
  type FilterLogsQuery,
  type MethodAnswer,
  type MethodCall,
  refused,
  type ServiceMethods,
  streamCaller,
} from "./service-methods.ts";
import type { Target } from "./target.ts";

export interface FilterMethodsParts {
  /** Null = the service has no keys. */
  readonly admission: Admission | null;
  readonly deadlineMs: (method: Method) => number;
  readonly filters: Filters;
  /** Which process keeps a filter, and how it goes on at another one. */
  readonly claims: Pick<FilterClaims, "created" | "poll" | "read" | "uninstall">;
  readonly registry: Pick<ProfileRegistry, "served">;
  readonly limits: () => RpcLimits;
}

/** Serves the filter methods; one instance for all connections. */
export class FilterMethods implements ServiceMethods {
  readonly #parts: FilterMethodsParts;
  readonly #keys: KeyWatch | null;

  constructor(parts: FilterMethodsParts) {
    this.#parts = parts;
    this.#keys = parts.admission === null ? null : new KeyWatch(parts.admission);
  }

  serve(call: MethodCall, done: (answer: MethodAnswer) => void): (() => void) | null {
    const requested = call.answered
      ? requestedFilter({
          methodName: call.methodName,
          params: subscriptionParams(call.params),
          ...call.target,
        })
      : notificationFault(call.methodName);
    if (call.answered && call.grant !== null) this.#keys?.used(call.grant);
    if (requested === null) return this.#answer(call, done);
    if (requested.kind !== "fault") return this.#open(call, requested, done);
    done(refused(requested));
    return null;
  }

  /**
   * Finds the `eth_getLogs` query that answers `eth_getFilterLogs`: that of the filter, in the
   * profile that created it. Returns the function that cancels.
   */
  logs(call: MethodCall, done: (logs: FilterLogsQuery | Fault) => void): () => void {
    return unlessCancelled(this.#parts.claims.read(refOf(call)), (found) => {
      if (found.kind !== "found") return done(NOT_ANSWERED[found.kind]);
      const { method, params } = found.value;
      const criteria = method === "eth_newFilter" ? readCriteria(parseJson(params)) : null;
      const at = this.#placeOf(found.value);
      if (criteria?.kind !== "criteria" || at === null) return done(NOT_FOUND);
      const target = { ...call.target, ...at };
      done({ kind: "query", target, params: Buffer.from(criteria.query) });
    });
  }

  /** Polls or ends a filter, here or where it is kept. */
  #answer(call: MethodCall, done: (answer: MethodAnswer) => void): () => void {
    const { claims } = this.#parts;
    const ref = refOf(call);
    if (call.methodName === "eth_uninstallFilter")
      return unlessCancelled(claims.uninstall(ref), (ended) => done(uninstalled(ended)));
    const revival = {
      request: (record: FilterRecord) => this.#revived(call, record),
      opened: (filter: Filter) => this.#watch(call, filter),
    };
    return unlessCancelled(
      claims.poll(ref, revival),
      (polled) => done(polledAnswer(polled)),
      (polled) => polled.kind === "found" && polled.value.settle(false),
    );
  }

  #watch({ grant }: MethodCall, filter: Filter): void {
    if (grant !== null) this.#keys?.watch(grant, filter);
  }

  /** How a filter of another node goes on here, for the caller of a poll. */
  #revived(call: MethodCall, record: FilterRecord): FilterRequest | null {
    const { owner, named, method: methodName } = record;
    const at = this.#placeOf(record);
    const strategy = STRATEGY_NAMES.find((name) => name === record.strategy);
    if (at === null || strategy === undefined) return null;
    const params = parseJson(record.params);
    const requested = requestedFilter({ methodName, params, ...at });
    if (requested === null || requested.kind === "fault") return null;
    return this.#requestOf(call, requested, { ...at, owner, named, strategy });
  }

  #requestOf(
    { method, caller, grant }: MethodCall,
    requested: RequestedFilter,
    place: Pick<FilterRequest, "tracker" | "pin" | "owner" | "named" | "strategy"> & {
      readonly profile: Profile;
    },
  ): FilterRequest {
    const { deadlineMs, limits } = this.#parts;
    return {
      ...requested,
      ...place,
      profile: profileId(place.profile),
      deadlineMs: deadlineMs(method),
      caller: streamCaller(caller, grant !== null, limits()),
    };
  }

  /** Creates a filter. Returns a function that cancels it, or null if it has ended. */
  #open(
    call: MethodCall,
    requested: RequestedFilter,
    done: (answer: MethodAnswer) => void,
  ): (() => void) | null {
    const { filters, claims } = this.#parts;
    const { profile, tracker, strategy, pin, named } = call.target;
    const place = { profile, tracker, strategy, pin, named, owner: ownerOf(call) };
    let over = false;
    let isCancelled = false;
    const cancel = filters.open(this.#requestOf(call, requested, place), (opened) => {
      const answer = (): void => {
        over = true;
        done(answerOf(requested.kind, opened));
      };
      if (opened.kind === "refused") return answer();
      this.#watch(call, opened.filter);
      void claims.created(opened.filter).then(() => isCancelled || answer());
    });
    if (over) return null;
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  /** What serves a filter now; null = its profile, chain or pinned provider is gone. */
  #placeOf(
    place: Pick<FilterOrigin, "profile" | "chain" | "pin">,
  ): Pick<Target, "profile" | "tracker" | "pin"> | null {
    const served = this.#parts.registry.served(place.profile);
    const tracker = served?.trackers.get(place.chain);
    if (served === undefined || tracker === undefined) return null;
    const pin =
      place.pin === null ? null : tracker.set.providers.find(({ id }) => id === place.pin);
    return pin === undefined ? null : { profile: served.profile, tracker, pin };
  }
}

function polledAnswer(polled: FilterAnswer<PolledFilter>): MethodAnswer {
  if (polled.kind !== "found") return refused(NOT_ANSWERED[polled.kind]);
  const { json, settle } = polled.value;
  return { ...served(wholeResult(json)), written: settle };
}

function uninstalled(ended: FilterAnswer<boolean>): MethodAnswer {
  return ended.kind === "silent" || ended.kind === "away"
    ? refused(NOT_ANSWERED[ended.kind])
    : served(resultOf(String(ended.kind === "found" && ended.value)));
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
      ...served(resultOf(`"${filter.id}"`)),
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
function ownerOf({ grant, target }: MethodCall): string {
  const whose =
    grant === null ? `profile ${profileId(target.profile)}` : `key ${grant.keyContext.keyId}`;
  return `${whose} ${target.chain.chainName}`;
}

function refOf(call: MethodCall): FilterRef {
  const params = subscriptionParams(call.params);
  const id: unknown = Array.isArray(params) ? params[0] : undefined;
  return { owner: ownerOf(call), id: typeof id === "string" ? id.toLowerCase() : "" };
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

/** An answer that the service itself gives, from a filter. */
function served(outcome: Outcome): MethodAnswer {
  return { outcome, route: null, written: null, source: SHARED_SOURCE };
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
