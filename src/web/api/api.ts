// The HTTP API of a hosted service: its operations over the store, with their limits.
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import {
  type OpenAddressLimit,
  type OpenCreationLimit,
  openAddressLimit,
} from "../../core/workers/shared-address-limits.ts";
import { type CONTRACT, OPERATIONS } from "../contract/contract.ts";
import type { ApiCaller, ApiHandlers } from "../contract/operation.ts";
import type { PurchasePaywall } from "../payment/purchase-paywall.ts";
import { recordChange } from "./action-log.ts";
import { type ApiAuthenticationParts, callerOf, type OperatorCredentials } from "./authenticate.ts";
import { accountHandlers, usageHandlers } from "./handlers/accounts.ts";
import { agentHandlers } from "./handlers/agent.ts";
import { claimHandlers } from "./handlers/claims.ts";
import { connectionHandlers } from "./handlers/connections.ts";
import { feedbackHandlers } from "./handlers/feedback.ts";
import { keyHandlers } from "./handlers/keys.ts";
import { operatorAccountHandlers, operatorHandlers } from "./handlers/operator.ts";
import { operatorMoneyHandlers } from "./handlers/operator-money.ts";
import { profileHandlers } from "./handlers/profiles.ts";
import { purchaseHandlers } from "./handlers/purchases.ts";
import { type AnyResult, inputOf, type OperationRequest, parseHandlers } from "./operation.ts";
import {
  API_PREFIX,
  type Api,
  createOperationServer,
  type OperationServerParts,
  type ServerBounds,
} from "./operation-server.ts";
import type { HandlerParts } from "./parts.ts";
import { createPaidServing } from "./serve-paid.ts";

export interface ApiParts
  extends Omit<HandlerParts, "creations" | "writes" | "payments">,
    OperatorCredentials,
    Pick<OperationServerParts, "log" | "publicUrl" | "trustedProxies"> {
  /**
   * The paywall instance that RPC calls use, too, so that the limits by address are shared. Null =
   * nothing can be bought.
   */
  readonly paywall: PurchasePaywall | null;
  /** Keys that one address may create per hour. */
  readonly keysPerHour: number;
  /** Absent = the defaults; tests tighten them. */
  readonly limits?: ApiLimits;
  /** Opens the limits by address; absent = those of one process. */
  readonly openLimit?: OpenAddressLimit;
  /** Opens the limits of new keys; absent = those of one process. */
  readonly openCreationLimit?: OpenCreationLimit;
}

/** Limits of the API. */
export interface ApiLimits extends ServerBounds {
  /** Invalid credentials per address and minute. */
  readonly missesPerMinute: number;
  /** Changes per account and minute. */
  readonly writesPerMinute: number;
}

/** The defaults. */
const API_LIMITS: ApiLimits = {
  maxReading: 1_024,
  maxUnderWay: 256,
  missesPerMinute: 30,
  writesPerMinute: 120,
};

const MINUTE_S = 60;
const HOUR_S = 3_600;

/** Creates the API over a store. */
export function createApi(parts: ApiParts): Api {
  const { limits = API_LIMITS } = parts;
  const { openLimit = openAddressLimit, openCreationLimit = openAddressLimit } = parts;
  const creations = openCreationLimit("key creations", sizeOf(parts.keysPerHour, HOUR_S));
  const misses = openLimit("API credentials", sizeOf(limits.missesPerMinute, MINUTE_S));
  const writes = openLimit("API changes", sizeOf(limits.writesPerMinute, MINUTE_S));
  return createOperationServer({
    ...parts,
    limits,
    operations: OPERATIONS.filter((operation) => operation.servedBy === "api"),
    claims: (path) => path.startsWith(API_PREFIX),
    serve: createServing(
      { ...parts, payments: parts.paywall?.payments ?? null, creations, writes },
      { ...parts, misses },
    ),
  });
}

/** The size of a limit of `count` requests in `seconds`; all of them may come at once. */
function sizeOf(count: number, seconds: number): RateLimitSize {
  return { perSecond: count / seconds, burst: count };
}

interface ServingParts extends HandlerParts {
  /** Null = nothing can be bought. */
  readonly paywall: PurchasePaywall | null;
}

/** Creates the function that serves operations; it throws if the store fails. */
function createServing(
  parts: ServingParts,
  credentials: ApiAuthenticationParts,
): (asked: OperationRequest) => Promise<AnyResult> {
  const handlers = parseHandlers(handlersOf(parts));
  const servePaid = createPaidServing({
    paywall: parts.paywall,
    callerOf: (asked, paid) => changerOf(credentials, asked, paid),
    inputOf,
  });
  return async (asked) => {
    const { operation, request, address, cookie } = asked;
    const handler = handlers.get(operation.id);
    if (handler === undefined) throw new Error(`no handler serves ${operation.id}`);
    if (typeof handler !== "function") return servePaid(asked, handler);
    const sender = { request, address, cookie, pathKey: asked.params?.["key"] ?? null };
    let caller =
      operation.method === "GET"
        ? await callerOf(credentials, operation.auth, sender)
        : await changerOf(credentials, asked, false);
    // Pending usage is written before reads, so that a balance includes the calls made before. The
    // record of a key holds the balance, so it is read again.
    if (operation.method === "GET" && (await settle(parts, caller)))
      caller = await callerOf(credentials, operation.auth, sender);
    if (caller.kind === "api_fault") return caller;
    const limited = operation.method === "GET" ? null : writeLimit(parts, caller);
    if (limited !== null) return limited;
    const input = inputOf(asked);
    if (input.kind === "api_fault") return input;
    const call = { ...input, caller };
    const result = await handler(call);
    await recordChange(parts.recordAction, operation, call, result);
    return result;
  };
}

/** Authenticates the caller of a change and applies the limit on changes. */
async function changerOf(
  credentials: ApiAuthenticationParts,
  asked: OperationRequest,
  paid: boolean,
): Promise<ApiCaller | ApiFault> {
  const { operation, request, address, cookie, params } = asked;
  const caller = await callerOf(credentials, operation.auth, {
    request,
    address,
    cookie,
    pathKey: params?.["key"] ?? null,
    paid,
  });
  if (caller.kind === "agent" && caller.agent.readOnly)
    return apiFault("forbidden", "the management token may only read");
  return caller;
}

async function settle({ settle }: HandlerParts, caller: ApiCaller | ApiFault): Promise<boolean> {
  switch (caller.kind) {
    case "key":
      return settle(caller.key.accountId);
    case "agent":
      return settle(caller.agent.accountId);
    case "operator":
      return settle(null);
    case "anyone":
    case "connection":
    case "api_fault":
      return false;
  }
}

/** Why an account may not make another change now. Null = it may, and the change is counted. */
function writeLimit({ writes, runtime }: HandlerParts, caller: ApiCaller): ApiFault | null {
  const accountId = accountOf(caller);
  const retryAfterMs = accountId === null ? 0 : writes.take(accountId, runtime.now());
  return retryAfterMs === 0
    ? null
    : apiFault("rate_limited", "the account has been changed too often in the last minute", {
        retryAfterMs,
      });
}

/** The account of the caller; null = none. */
function accountOf(caller: ApiCaller): string | null {
  if (caller.kind === "agent") return caller.agent.accountId;
  return caller.kind === "key" ? caller.key.accountId : null;
}

function handlersOf(parts: HandlerParts): ApiHandlers<typeof CONTRACT> {
  return {
    ...agentHandlers(parts),
    ...keyHandlers(parts),
    ...accountHandlers(parts),
    ...claimHandlers(parts),
    ...connectionHandlers(parts),
    ...profileHandlers(parts),
    ...purchaseHandlers(parts),
    ...usageHandlers(parts),
    ...operatorAccountHandlers(parts),
    ...operatorHandlers(parts),
    ...operatorMoneyHandlers(parts),
    ...feedbackHandlers(parts),
  };
}
