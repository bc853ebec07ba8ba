// Authenticates the caller of a request and resolves its target, over HTTP and at WebSocket
// handshakes alike; reads what it says of how it is answered, in the query or in headers: its view
// of the chain, the newest block that its caller has seen, and the cache. Decides no price and no
// limit.
import { networkOf } from "../../core/billing/address-limit.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { MAX_PASSED, PASSED_HEADER, passedServices } from "../../core/passed-services.ts";
import { CONSISTENCIES, type Consistency } from "../../core/provider/profile.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { parseSeen, type SeenBlock } from "../../core/routing/seen.ts";
import type { Admission } from "../../hosted/admission/admission.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import { type Addressed, addressBehind, type TrustedProxies } from "../http/client-address.ts";
import type { Credential } from "./key-credential.ts";
import { isSessionPath, type Target, type TargetResolver } from "./target.ts";

/** The parts of a request that identify its caller and its target. */
export interface RequestInfo {
  /** Path and query, as in an HTTP request. */
  readonly url: string;
  /** The API key of the request; read lazily. */
  readonly credential: Credential;
  /** IP address of the connection. */
  readonly address: string;
  /** Value of a request header, by lower-case name. */
  header(name: string): string | undefined;
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
  /** Null = the service has no keys. */
  readonly admission: Admission | null;
  readonly proxies: TrustedProxies;
  /** What requests carry that this service has sent to a user's provider. */
  readonly mark: string;
}

/**
 * Identifies the caller and resolves the target. Calls back exactly once: synchronously, unless the
 * key has to be looked up in the store; then a function that cancels the wait is returned.
 */
export function authenticate(
  parts: AuthenticationParts,
  request: RequestInfo,
  done: (found: Authenticated | Fault) => void,
): (() => void) | null {
  const { admission, proxies } = parts;
  if (admission === null) {
    done(bind(parts, request, withoutKey(request.url)));
    return null;
  }
  const loop = request.header(PASSED_HEADER) === undefined ? null : loopOf(request, parts.mark);
  if (loop !== null) {
    done(loop);
    return null;
  }
  if (isSessionPath(request.url)) {
    const { url } = request.credential;
    done(bind(parts, request, { url, keyContext: null, defaultProfile: PAYERS_PROFILE }));
    return null;
  }
  const { secret, digest, url } = request.credential;
  const withKey = (keyContext: KeyContext): (() => void) | null =>
    bindKey({ parts, admission, request, url, keyContext }, done);
  if (secret === null) {
    done(admission.keyless ? bind(parts, request, withoutKey(url)) : NO_KEY);
    return null;
  }
  const found = admission.keyCache.identify(secret, digest);
  if (found === null) {
    const address = addressBehind(
      request.address,
      request.header("x-forwarded-for") ?? "",
      proxies,
    );
    let stop: (() => void) | null = null;
    const forget = admission.keyCache.find(digest, address, (found) => {
      if (found.kind === "fault") done(found);
      else stop = withKey(found);
    });
    return () => {
      forget();
      stop?.();
    };
  }
  if (found.kind !== "fault") return withKey(found);
  done(found);
  return null;
}

/** Why a request that has passed other services is refused; null = it is not. */
function loopOf(request: RequestInfo, mark: string): Fault | null {
  const passed = passedServices(request.header(PASSED_HEADER));
  if (passed.includes(mark)) return LEADS_BACK;
  return passed.length > MAX_PASSED ? LEADS_ON : null;
}

interface KeyedRequest {
  readonly parts: AuthenticationParts;
  readonly admission: Admission;
  readonly request: RequestInfo;
  /** Path and query without the key. */
  readonly url: string;
  readonly keyContext: KeyContext;
}

/**
 * Resolves the target of a caller with a key. First loads a Custom profile that is not in memory,
 * if the key may use it.
 */
function bindKey(
  { parts, admission, request, url, keyContext }: KeyedRequest,
  done: (found: Authenticated | Fault) => void,
): (() => void) | null {
  const asking = { url, keyContext, defaultProfile: keyContext.defaultProfile };
  const found = bind(parts, request, asking);
  const profile =
    found.kind === "fault" && found.code === "not_prepared" ? found.details["profile"] : undefined;
  if (typeof profile !== "string") {
    done(found);
    return null;
  }
  const refused = admission.refusal(keyContext, profile);
  if (refused === null)
    return admission.prepare(keyContext, profile, (why) =>
      done(why ?? bind(parts, request, asking)),
    );
  done(refused);
  return null;
}

/** Who asks, and for what. */
interface Asking {
  /** Path and query without the key. */
  readonly url: string;
  readonly keyContext: KeyContext | null;
  readonly defaultProfile: string | null;
}

function bind(
  { resolver, proxies }: AuthenticationParts,
  request: RequestInfo,
  { url, keyContext, defaultProfile }: Asking,
): Authenticated | Fault {
  const provider = request.header("x-svc-provider");
  const strategy = request.header("x-svc-strategy");
  const input = { url, defaultProfile, within: null, provider, strategy };
  const { legacyForms } = request.credential;
  const asked = legacyForms === null ? input : { ...input, legacyForms };
  const target = resolver.resolve(asked, keyContext?.account ?? null);
  if (target.kind === "fault") return target;
  const wishes = wishesOf(request);
  if ("code" in wishes) return wishes;
  const caller = new RequestCaller(request, keyContext, proxies);
  return { kind: "authenticated", target, keyContext, caller, wishes };
}

/** A caller without a key. */
function withoutKey(url: string): Asking {
  return { url, keyContext: null, defaultProfile: null };
}

/** Who pays per call is served in the default profile of keys; a key in the request is ignored. */
const PAYERS_PROFILE = "premium";

const NO_KEY = fault("unauthorized", "this request has no RPC key", {
  nextAction:
    "create a key with POST /api/v1/agent/keys and send it in the path (/rpc/k/{key}/…), as " +
    "Authorization: Bearer or as X-Svc-Api-Key",
});

/** The identity of the caller of one request or socket. */
export class RequestCaller implements CallerIdentity {
  readonly #request: Addressed;
  readonly #keyContext: KeyContext | null;
  readonly #proxies: TrustedProxies;

  constructor(request: Addressed, keyContext: KeyContext | null, proxies: TrustedProxies) {
    this.#request = request;
    this.#keyContext = keyContext;
    this.#proxies = proxies;
  }

  get keyId(): string | null {
    return this.#keyContext?.keyId ?? null;
  }

  get passed(): readonly string[] | undefined {
    const passed = passedServices(this.#request.header(PASSED_HEADER));
    return passed.length === 0 ? undefined : passed;
  }

  get key(): string {
    if (this.#keyContext !== null) return `account ${this.#keyContext.account.id}`;
    const forwardedFor = this.#request.header("x-forwarded-for") ?? "";
    const address = addressBehind(this.#request.address, forwardedFor, this.#proxies);
    return `address ${networkOf(address)}`;
  }
}

/** What a request says; null = nothing. */
export interface Wishes {
  readonly consistency: Consistency | null;
  readonly seen: SeenBlock | null;
}

/** What most requests say. */
const NO_WISHES: Wishes = { consistency: null, seen: null };

/** What a request says of its view of the chain. The query wins over the headers, as elsewhere. */
export function wishesOf(request: Pick<RequestInfo, "url" | "header">): Wishes | Fault {
  const query = request.url.includes("?") ? queryOf(request.url) : null;
  const mode = query?.get("consistency") ?? request.header("x-svc-consistency");
  const mark = query?.get("seen") ?? request.header("x-svc-seen");
  if (mode === undefined && mark === undefined) return NO_WISHES;
  const consistency = mode === undefined ? null : CONSISTENCIES.find((each) => each === mode);
  if (consistency === undefined) return UNKNOWN_MODE;
  const seen = mark === undefined ? null : parseSeen(mark);
  return mark !== undefined && seen === null ? BAD_MARK : { consistency, seen };
}

/** The query; null = it says nothing of this, as most do: then it is not parsed. */
function queryOf(url: string): URLSearchParams | null {
  const mark = url.indexOf("?");
  if (!url.includes("consistency=", mark) && !url.includes("seen=", mark)) return null;
  return new URLSearchParams(url.slice(mark + 1));
}

const UNKNOWN_MODE: Fault = fault("invalid_field", "no consistency has this name", {
  nextAction: `use ${CONSISTENCIES.slice(0, -1).join(", ")} or ${CONSISTENCIES.at(-1)}`,
});

const BAD_MARK: Fault = fault("invalid_request", "the mark of the last seen block is not valid", {
  nextAction: "send X-Svc-Seen back as it was received, or leave it out",
});

const NO_CACHE = /(?:^|[\s,])no-(?:cache|store)(?:[\s,=]|$)/i;

/** Whether a provider is to be asked for this very request. */
export function wantsFresh(request: Pick<RequestInfo, "header">): boolean {
  const directive = request.header("cache-control");
  if (directive !== undefined && NO_CACHE.test(directive)) return true;
  return request.header("x-svc-cache")?.toLowerCase() === "bypass";
}
