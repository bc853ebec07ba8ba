// Who calls, and where to: what every door asks first, over HTTP and for a WebSocket alike. Decides no price and no limit.
import { type Fault, fault } from "../../core/fault.ts";
import type { CallerIdentity } from "../../core/silence.ts";
import type { Gate } from "../../hosted/gate.ts";
import type { Holder } from "../../hosted/holder.ts";
import { addressBehind, type TrustedProxies } from "../client-address.ts";
import { type Address, isSessionPath, type Resolver } from "./address.ts";
import { RequestCaller } from "./caller-identity.ts";
import type { Credential } from "./credential.ts";

/** What of a request says who calls, and where to. */
export interface Letter {
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
export interface Arrival {
  readonly kind: "arrival";
  readonly address: Address;
  /** Null = a caller without a key. */
  readonly holder: Holder | null;
  readonly caller: CallerIdentity;
}

/** What is needed to tell. */
export interface ArrivalParts {
  readonly resolver: Resolver;
  /** Null = nobody needs a key. */
  readonly gate: Gate | null;
  readonly proxies: TrustedProxies;
}

/** Reads a letter. Calls back once, at once unless a key has to be looked up: then a way to stop waiting is returned. */
export function arrive(parts: ArrivalParts, letter: Letter, done: (it: Arrival | Fault) => void): (() => void) | null {
  const { gate, proxies } = parts;
  if (gate === null) {
    done(bind(parts, letter, letter.url, null));
    return null;
  }
  if (isSessionPath(letter.url)) {
    done(bindPayer(parts, letter));
    return null;
  }
  const bound = (holder: Holder): (() => void) | null => bindHolder({ parts, gate, letter, holder }, done);
  const { secret, digest, url } = letter.credential;
  if (secret === null) {
    done(gate.keyless ? bind(parts, letter, url, null) : NO_KEY);
    return null;
  }
  const found = gate.holders.identify(secret, digest);
  if (found === null) {
    const address = addressBehind(letter.address, letter.header("x-forwarded-for") ?? "", proxies);
    let stop: (() => void) | null = null;
    const forget = gate.holders.find(digest, address, (it) => {
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
  readonly parts: ArrivalParts;
  readonly gate: Gate;
  readonly letter: Letter;
  readonly holder: Holder;
}

/** Binds a caller with a key; a Custom profile that is not in memory is got first, if the key may use it. */
function bindHolder({ parts, gate, letter, holder }: Bound, done: (it: Arrival | Fault) => void): (() => void) | null {
  const { url } = letter.credential;
  const found = bind(parts, letter, url, holder);
  const profile = found.kind === "fault" && found.code === "not_prepared" ? found.details["profile"] : undefined;
  if (typeof profile !== "string") {
    done(found);
    return null;
  }
  const refused = gate.refusal(holder, profile);
  if (refused === null) return gate.prepare(holder, profile, (why) => done(why ?? bind(parts, letter, url, holder)));
  done(refused);
  return null;
}

function bind({ resolver, proxies }: ArrivalParts, letter: Letter, url: string, holder: Holder | null): Arrival | Fault {
  const provider = letter.header("x-svc-provider");
  const strategy = letter.header("x-svc-strategy");
  const input = { url, home: holder === null ? null : holder.home, within: null, provider, strategy };
  const { old } = letter.credential;
  const address = resolver.resolve(old === null ? input : { ...input, old }, holder?.payer ?? null);
  return address.kind === "fault" ? address : { kind: "arrival", address, holder, caller: new RequestCaller(letter, holder, proxies) };
}

/** A caller who pays for each call: served where keys of no other profile are, whatever key comes along. */
function bindPayer({ resolver, proxies }: ArrivalParts, letter: Letter): Arrival | Fault {
  const { url, old } = letter.credential;
  const input = { url, home: PAYERS_HOME, within: null, provider: letter.header("x-svc-provider"), strategy: letter.header("x-svc-strategy") };
  const address = resolver.resolve(old === null ? input : { ...input, old }, null);
  return address.kind === "fault" ? address : { kind: "arrival", address, holder: null, caller: new RequestCaller(letter, null, proxies) };
}

const PAYERS_HOME = "premium";

const NO_KEY = fault("unauthorized", "this request has no RPC key", {
  nextAction: "create a key with POST /api/v1/agent/keys and send it in the path (/rpc/k/{key}/…), as Authorization: Bearer or as X-Svc-Api-Key",
});
