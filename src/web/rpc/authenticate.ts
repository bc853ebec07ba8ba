// Who calls, and where to: what every door asks first, over HTTP and for a WebSocket alike. Decides
// no price and no limit.
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { Admission } from "../../hosted/admission/admission.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import { addressBehind, type TrustedProxies } from "../http/client-address.ts";
import { RequestCaller } from "./caller-identity.ts";
import type { Credential } from "./key-credential.ts";
import { isSessionPath, type Target, type TargetResolver } from "./target.ts";

/** What of a request says who calls, and where to. */
export interface RequestInfo {
  /** Path and query, as of a request over HTTP. */
  readonly url: string;
  /** Who says to be calling; read when a key is needed. */
  readonly credential: Credential;
  /** IP address of the connection. */
  readonly address: string;
  /** Value of a request header, by lower-case name. */
  header(name: string): string | undefined;
}

/** A caller who may ask, and where to. */
export interface Authenticated {
  readonly kind: "arrival";
  readonly address: Target;
  /** Null = a caller without a key. */
  readonly keyContext: KeyContext | null;
  readonly caller: CallerIdentity;
}

/** What is needed to tell. */
export interface AuthenticationParts {
  readonly resolver: TargetResolver;
  /** Null = nobody needs a key. */
  readonly admission: Admission | null;
  readonly proxies: TrustedProxies;
}

/**
 * Reads a letter. Calls back once, at once unless a key has to be looked up: then a way to stop
 * waiting is returned.
 */
export function authenticate(
  parts: AuthenticationParts,
  letter: RequestInfo,
  done: (it: Authenticated | Fault) => void,
): (() => void) | null {
  const { admission, proxies } = parts;
  if (admission === null) {
    done(bind(parts, letter, letter.url, null));
    return null;
  }
  if (isSessionPath(letter.url)) {
    done(bindPayer(parts, letter));
    return null;
  }
  const bound = (keyContext: KeyContext): (() => void) | null =>
    bindHolder({ parts, admission, letter, keyContext }, done);
  const { secret, digest, url } = letter.credential;
  if (secret === null) {
    done(admission.keyless ? bind(parts, letter, url, null) : NO_KEY);
    return null;
  }
  const found = admission.keyCache.identify(secret, digest);
  if (found === null) {
    const address = addressBehind(letter.address, letter.header("x-forwarded-for") ?? "", proxies);
    let stop: (() => void) | null = null;
    const forget = admission.keyCache.find(digest, address, (it) => {
      if (it.kind === "fault") done(it);
      else stop = bound(it);
    });
    return () => {
      forget();
      stop?.();
    };
  }
  if (found.kind !== "fault") return bound(found);
  done(found);
  return null;
}

interface Bound {
  readonly parts: AuthenticationParts;
  readonly admission: Admission;
  readonly letter: RequestInfo;
  readonly keyContext: KeyContext;
}

/**
 * Binds a caller with a key; a Custom profile that is not in memory is got first, if the key may
 * use it.
 */
function bindHolder(
  { parts, admission, letter, keyContext }: Bound,
  done: (it: Authenticated | Fault) => void,
): (() => void) | null {
  const { url } = letter.credential;
  const found = bind(parts, letter, url, keyContext);
  const profile =
    found.kind === "fault" && found.code === "not_prepared" ? found.details["profile"] : undefined;
  if (typeof profile !== "string") {
    done(found);
    return null;
  }
  const refused = admission.refusal(keyContext, profile);
  if (refused === null)
    return admission.prepare(keyContext, profile, (why) =>
      done(why ?? bind(parts, letter, url, keyContext)),
    );
  done(refused);
  return null;
}

function bind(
  { resolver, proxies }: AuthenticationParts,
  letter: RequestInfo,
  url: string,
  keyContext: KeyContext | null,
): Authenticated | Fault {
  const provider = letter.header("x-svc-provider");
  const strategy = letter.header("x-svc-strategy");
  const input = {
    url,
    home: keyContext === null ? null : keyContext.home,
    within: null,
    provider,
    strategy,
  };
  const { old } = letter.credential;
  const address = resolver.resolve(
    old === null ? input : { ...input, old },
    keyContext?.payer ?? null,
  );
  return address.kind === "fault"
    ? address
    : {
        kind: "arrival",
        address,
        keyContext,
        caller: new RequestCaller(letter, keyContext, proxies),
      };
}

/**
 * A caller who pays for each call: served where keys of no other profile are, whatever key comes
 * along.
 */
function bindPayer(
  { resolver, proxies }: AuthenticationParts,
  letter: RequestInfo,
): Authenticated | Fault {
  const { url, old } = letter.credential;
  const input = {
    url,
    home: PAYERS_HOME,
    within: null,
    provider: letter.header("x-svc-provider"),
    strategy: letter.header("x-svc-strategy"),
  };
  const address = resolver.resolve(old === null ? input : { ...input, old }, null);
  return address.kind === "fault"
    ? address
    : {
        kind: "arrival",
        address,
        keyContext: null,
        caller: new RequestCaller(letter, null, proxies),
      };
}

const PAYERS_HOME = "premium";

const NO_KEY = fault("unauthorized", "this request has no RPC key", {
  nextAction:
    "create a key with POST /api/v1/agent/keys and send it in the path (/rpc/k/{key}/…), as " +
    "Authorization: Bearer or as X-Svc-Api-Key",
});
