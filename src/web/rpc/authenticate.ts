// Authenticates the caller of a request and resolves its target, over HTTP and at WebSocket
// handshakes alike. Decides no price and no limit.
import { networkOf } from "../../core/billing/address-limit.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { MAX_PASSED } from "../../core/passed-services.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { Admission } from "../../hosted/admission/admission.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import { type Addressed, callerAddress, type TrustedProxies } from "../http/client-address.ts";
import type { Directives, Wishes } from "./directives.ts";
import type { ChainOpener, Target, TargetResolver } from "./target.ts";

/** The parts of a request that identify its caller and its target. */
export interface RequestInfo extends Addressed {
  /** Path and query, as in an HTTP request. */
  readonly url: string;
  readonly directives: Directives;
}

/** An authenticated caller with the target of its request. */
export interface Authenticated {
  readonly kind: "authenticated";
  readonly target: Target;
  /** Null = a caller without a key. */
  readonly keyContext: KeyContext | null;
  readonly caller: CallerIdentity;
  /** The view of the chain that the request asks for. */
  readonly wishes: Wishes;
}

const LEADS_BACK = fault("request_loop", "this request has come back to the service that sent it");

const LEADS_ON = fault("request_loop", "this request has passed too many services like this one", {
  nextAction: "name the nodes themselves in the Custom profile, not another service",
});

/** What authentication needs. */
export interface AuthenticationParts {
  readonly resolver: TargetResolver;
  /** Null = no other chains than the configured ones are served. */
  readonly opener: ChainOpener | null;
  /** Null = the service has no keys. */
  readonly admission: Admission | null;
  readonly proxies: TrustedProxies;
  /** What requests carry that this service has sent to a user's provider. */
  readonly mark: string;
}

/**
 * Identifies the caller and resolves the target. Calls back exactly once: synchronously, unless the
 * key has to be looked up in the store, or the target has to be loaded or opened; then a function
 * that cancels the wait is returned.
 */
export function authenticate(
  parts: AuthenticationParts,
  request: RequestInfo,
  done: (found: Authenticated | Fault) => void,
): (() => void) | null {
  const { admission, proxies } = parts;
  const { secret, digest, passed, payPerCall } = request.directives;
  const end = (found: Authenticated | Fault): null => {
    done(found);
    return null;
  };
  if (admission === null) return bindTo(parts, request, KEYLESS, done);
  const loop = passed === undefined ? null : loopOf(passed, parts.mark);
  if (loop !== null) return end(loop);
  if (payPerCall) return bindTo(parts, request, PAYER, done);
  if (secret === null)
    return admission.keyless ? bindTo(parts, request, KEYLESS, done) : end(NO_KEY);
  const withKey = (found: KeyContext | Fault): (() => void) | null =>
    found.kind === "fault"
      ? end(found)
      : bindTo(parts, request, { keyContext: found, profile: found.defaultProfile }, done);
  const known = admission.keyCache.identify(secret, digest);
  if (known !== null) return withKey(known);
  let stop: (() => void) | null = null;
  const forget = admission.keyCache.find(digest, callerAddress(request, proxies), (found) => {
    stop = withKey(found);
  });
  return () => {
    forget();
    stop?.();
  };
}

/** Why a request that has passed other services is refused; null = it is not. */
function loopOf(passed: readonly string[], mark: string): Fault | null {
  if (passed.includes(mark)) return LEADS_BACK;
  return passed.length > MAX_PASSED ? LEADS_ON : null;
}

/** Who calls, and the profile of URLs that name none: as of `TargetInput`. */
interface Binding {
  readonly keyContext: KeyContext | null;
  readonly profile: string | null;
}

/**
 * Resolves the target. First loads a Custom profile that is not in memory, if the key may use it,
 * or opens a chain that is served on demand.
 */
function bindTo(
  parts: AuthenticationParts,
  request: RequestInfo,
  binding: Binding,
  done: (found: Authenticated | Fault) => void,
): (() => void) | null {
  const found = bind(parts, request, binding);
  if (found.kind !== "fault" || found.code !== "not_prepared") {
    done(found);
    return null;
  }
  const { admission, opener, proxies } = parts;
  const { keyContext } = binding;
  const { profile, chain } = found.details;
  const again = (why: Fault | null): void => done(why ?? bind(parts, request, binding));
  if (opener !== null && typeof chain === "string")
    return opener.prepare(chain, new RequestCaller(request, keyContext, proxies).key, again);
  const isCustom = admission !== null && keyContext !== null && typeof profile === "string";
  const refused = isCustom ? admission.refusal(keyContext, profile) : found;
  if (isCustom && refused === null) return admission.prepare(keyContext, profile, again);
  done(refused ?? found);
  return null;
}

function bind(
  { resolver, admission, proxies }: AuthenticationParts,
  request: RequestInfo,
  { keyContext, profile: defaultProfile }: Binding,
): Authenticated | Fault {
  const { provider, strategy, legacyForms, wishes } = request.directives;
  // A service without keys looks for none in URLs.
  const url = admission === null ? request.url : request.directives.url;
  const input = { url, defaultProfile, within: null, provider, strategy, legacyForms };
  const target = resolver.resolve(input, keyContext?.account ?? null);
  if (target.kind === "fault") return target;
  if ("code" in wishes) return wishes;
  const caller = new RequestCaller(request, keyContext, proxies);
  return { kind: "authenticated", target, keyContext, caller, wishes };
}

const KEYLESS: Binding = { keyContext: null, profile: null };
/** Who pays per call is served in the default profile of keys; a key in the request is ignored. */
const PAYER: Binding = { keyContext: null, profile: "premium" };

const NO_KEY = fault("unauthorized", "this request has no RPC key", {
  nextAction:
    "create a key with POST /api/v1/agent/keys and send it in the path (/rpc/k/{key}/…), as " +
    "Authorization: Bearer or as X-Svc-Api-Key",
});

/** The identity of the caller of one request or socket. */
export class RequestCaller implements CallerIdentity {
  readonly #request: RequestInfo;
  readonly #keyContext: KeyContext | null;
  readonly #proxies: TrustedProxies;

  constructor(request: RequestInfo, keyContext: KeyContext | null, proxies: TrustedProxies) {
    this.#request = request;
    this.#keyContext = keyContext;
    this.#proxies = proxies;
  }

  get keyId(): string | null {
    return this.#keyContext?.keyId ?? null;
  }

  get passed(): readonly string[] | undefined {
    return this.#request.directives.passed;
  }

  get key(): string {
    if (this.#keyContext !== null) return `account ${this.#keyContext.account.id}`;
    return `address ${networkOf(callerAddress(this.#request, this.#proxies))}`;
  }
}
