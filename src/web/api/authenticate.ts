// Authenticates the caller of an API request by management token, RPC key, connection token,
// operator token or the cookie of the console. Limits invalid credentials by address; knows no
// operation.
import type { IncomingMessage } from "node:http";
import type { AddressLimit } from "../../core/billing/address-limit.ts";
import { type ApiFault, apiFault, limited } from "../../core/faults/api-fault.ts";
import { connectionByToken } from "../../hosted/accounts/connections.ts";
import { endedKeyBySecret, keyBySecret } from "../../hosted/keys/keys.ts";
import { managementTokenBySecret, managementTokenEnd } from "../../hosted/keys/management-token.ts";
import type { Runtime } from "../../runtime.ts";
import { readSecret, type SecretKind } from "../../secrets/secret.ts";
import type { Store } from "../../shared/store/store.ts";
import type { ApiCaller, Auth, OperatorCaller } from "../contract/operation.ts";
import { bearerOf } from "../http/local-caller.ts";
import type { RequestOrigin } from "../http/request-origin.ts";
import { withoutPayment } from "../payment/payment-headers.ts";
import { type ConsoleSessions, cookieRefusal } from "./console-sessions.ts";

/** How the operator is recognised. */
export interface OperatorCredentials {
  /** Null = no operator token is configured. */
  readonly operatorToken: string | null;
  readonly sessions: ConsoleSessions;
}

export interface ApiAuthenticationParts extends OperatorCredentials {
  readonly store: Store;
  readonly runtime: Runtime;
  /** Limits well-formed but unknown secrets, by address. */
  readonly misses: AddressLimit;
}

/** The parts of a request that identify its caller. */
export interface CallerRequest extends Pick<RequestOrigin, "cookie" | "address"> {
  readonly request: Pick<IncomingMessage, "headers" | "method">;
  /** Of the path; null = malformed. */
  readonly params: Readonly<Record<string, string>> | null;
  /**
   * True = accept a key in the path that has ended, because the request carries a payment for it.
   */
  readonly paid?: boolean;
}

/**
 * Authenticates the caller in one of the ways that the operation allows, or returns the refusal.
 */
export async function callerOf(
  parts: ApiAuthenticationParts,
  auth: readonly Auth[],
  sender: CallerRequest,
): Promise<ApiCaller | ApiFault<"unauthorized" | "forbidden" | "rate_limited" | "not_found">> {
  if (auth.includes("key_in_path")) return keyInPath(parts, sender);
  const found = await instanceCallerOf(parts, auth, sender);
  if (found !== null) return found;
  const { headers } = sender.request;
  const authorization = withoutPayment(headers.authorization);
  const apiKey = auth.includes("rpc_key") ? headers["x-svc-api-key"] : undefined;
  const secret = bearerOf(authorization) ?? (typeof apiKey === "string" ? apiKey : null);
  if (secret === null)
    return auth.includes("none") && authorization === undefined
      ? ANYONE
      : missing(auth, "the request carries no credential");
  const kind = readSecret(secret);
  if (kind === "token" && auth.includes("management_token")) return agent(parts, sender, secret);
  if (kind === "connection" && auth.includes("connection_token"))
    return connection(parts, sender, secret);
  if (kind !== "key" || !auth.includes("rpc_key"))
    return missing(
      auth,
      kind === null
        ? "the credential is cut off or mistyped"
        : `a ${KIND_NAMES[kind]} does not open this`,
    );
  const byKey = await keyCaller(parts, sender, secret);
  return byKey ?? missing(auth, "this key does not exist or does not work any more");
}

/**
 * The same where nobody but the operator has a credential; null = the operation allows others, and
 * the request has no session in the console.
 */
export async function instanceCallerOf(
  credentials: OperatorCredentials,
  auth: readonly Auth[],
  sender: CallerRequest,
): Promise<SessionCaller | null> {
  if (auth.every((way) => way === "none")) return ANYONE;
  const bySession = await sessionCaller(credentials.sessions, auth, sender);
  if (bySession !== null || !auth.includes("operator")) return bySession;
  const authorization = withoutPayment(sender.request.headers.authorization);
  return auth.includes("none") && authorization === undefined
    ? ANYONE
    : operator(credentials, bearerOf(authorization), sender.address);
}

export const ANYONE = { kind: "anyone" } as const;
const SIGNED_IN = { kind: "anyone", isSignedIn: true } as const;

type SessionCaller =
  | Extract<ApiCaller, { readonly kind: "anyone" | "operator" | "agent" }>
  | ApiFault<"unauthorized" | "forbidden">;

/** The caller by the cookie of the console; null = the request has another credential, or none. */
async function sessionCaller(
  sessions: ConsoleSessions,
  auth: readonly Auth[],
  { request, cookie }: Pick<CallerRequest, "request" | "cookie">,
): Promise<SessionCaller | null> {
  const { headers, method } = request;
  if (cookie.id === null || headers["x-svc-api-key"] !== undefined) return null;
  if (withoutPayment(headers.authorization) !== undefined) return null;
  if (!auth.includes("operator") && !auth.includes("management_token")) return null;
  const refusal = cookieRefusal(method, cookie);
  if (refusal !== null) return refusal;
  const caller = await sessions.callerOf(cookie.id);
  if (caller === null)
    return apiFault("unauthorized", "the session has ended", { nextAction: "sign in again" });
  if (caller.kind === "operator" && auth.includes("operator")) return caller;
  if (caller.kind === "agent" && auth.includes("management_token")) return caller;
  if (!auth.includes("none")) return missing(auth, "this session does not open this");
  return caller.kind === "agent" ? SIGNED_IN : ANYONE;
}

async function keyInPath(
  parts: ApiAuthenticationParts,
  sender: CallerRequest,
): Promise<ApiCaller | ApiFault<"not_found" | "rate_limited">> {
  const secret = sender.params?.["key"] ?? "";
  const byKey = readSecret(secret) === "key" ? await keyCaller(parts, sender, secret) : null;
  return byKey ?? NO_KEY_IN_PATH;
}

const NO_KEY_IN_PATH = apiFault(
  "not_found",
  "the key in the path does not exist or does not work any more",
  { nextAction: "put the full key, svc_ak_…, into the path, as it was shown when it was created" },
);

async function agent(
  parts: ApiAuthenticationParts,
  { address }: CallerRequest,
  token: string,
): Promise<ApiCaller | ApiFault<"unauthorized" | "rate_limited">> {
  const found = await managementTokenBySecret(parts.store, token);
  if (found === null)
    return (
      missLimit(parts, address) ??
      missing(["management_token"], "this management token does not exist")
    );
  const end = managementTokenEnd(found, parts.runtime.wallMs());
  return end === null
    ? { kind: "agent", agent: found }
    : missing(["management_token"], `the management token is ${end}`);
}

async function connection(
  parts: ApiAuthenticationParts,
  { address }: CallerRequest,
  token: string,
): Promise<ApiCaller | ApiFault<"unauthorized" | "rate_limited">> {
  if ((await connectionByToken(parts.store, token, parts.runtime.wallMs())) !== null)
    return { kind: "connection", token };
  return missLimit(parts, address) ?? missing(["connection_token"], "no connection has this token");
}

async function keyCaller(
  parts: ApiAuthenticationParts,
  { address, paid }: CallerRequest,
  secret: string,
): Promise<ApiCaller | ApiFault<"rate_limited"> | null> {
  const find = paid === true ? endedKeyBySecret : keyBySecret;
  const key = await find(parts.store, secret, parts.runtime.wallMs());
  return key === null ? missLimit(parts, address) : { kind: "key", key };
}

/**
 * Counts an unknown credential of an address; a fault = there were too many. Those that are known
 * are served at any address: many callers may share one.
 */
function missLimit(
  { misses, runtime }: ApiAuthenticationParts,
  address: string,
): ApiFault<"rate_limited"> | null {
  const retryAfterMs = misses.take(address, runtime.now());
  return limited(retryAfterMs, "too many unknown credentials came from this address");
}

function operator(
  { operatorToken, sessions }: OperatorCredentials,
  given: string | null,
  address: string,
): OperatorCaller | ApiFault<"unauthorized"> {
  if (operatorToken === null)
    return apiFault("unauthorized", "the operator's endpoints are closed", {
      nextAction:
        "set server.operator_token in the configuration and send it as Authorization: Bearer",
    });
  const found = sessions.operatorBy(given, address);
  if (found === true) return BY_TOKEN;
  if (found !== false)
    return apiFault("unauthorized", "too many wrong operator tokens came from this address", {
      retryAfterMs: found,
      nextAction: "wait, or use an address that had the right one before",
    });
  return missing(["operator"], "this needs the operator token");
}

const BY_TOKEN: OperatorCaller = { kind: "operator", actor: "operator token", sessionHash: null };

const WAYS: readonly (readonly [Auth, string])[] = [
  ["operator", "send server.operator_token as Authorization: Bearer <token>"],
  [
    "management_token",
    "send the management token as Authorization: Bearer <token>; POST /api/v1/keys without one " +
      "creates an account and its token",
  ],
  ["rpc_key", "send the RPC key as Authorization: Bearer <key> or X-Svc-Api-Key"],
  [
    "connection_token",
    "send the token that POST /api/v1/connections returned as Authorization: Bearer <token>",
  ],
];
const KIND_NAMES: Readonly<Record<SecretKind, string>> = {
  key: "key for RPC calls",
  token: "management token",
  claim: "claim link",
  connection: "connection's token",
  approval: "connection's approval",
  session: "session of the console",
  sign_in: "sign-in link",
};

function missing(auth: readonly Auth[], message: string): ApiFault<"unauthorized"> {
  const ways = WAYS.flatMap(([way, advice]) => (auth.includes(way) ? [advice] : []));
  return apiFault("unauthorized", message, { nextAction: ways.join("; or ") });
}
