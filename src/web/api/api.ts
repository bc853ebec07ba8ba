// The HTTP API of a hosted service: its operations over the store, with their limits.
import { AddressLimit } from "../../core/billing/address-limit.ts";
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import { type ApiFault, apiFault, limited } from "../../core/faults/api-fault.ts";
import type {
  OpenAddressLimit,
  OpenCreationLimit,
} from "../../core/workers/shared-address-limits.ts";
import type { AuditFindings } from "../../hosted/audit/audit.ts";
import type { Order, RequestMark } from "../../payments/payments.ts";
import { OPERATIONS } from "../contract/contract.ts";
import type { ApiCaller, Terms } from "../contract/operation.ts";
import { paymentOf, requestMark, withoutPayment } from "../payment/payment-headers.ts";
import type { PurchasePaywall } from "../payment/purchase-paywall.ts";
import { handled } from "./action-log.ts";
import { type ApiAuthenticationParts, callerOf, type OperatorCredentials } from "./authenticate.ts";
import { ACCOUNT_HANDLERS } from "./handlers/accounts.ts";
import { AGENT_HANDLERS } from "./handlers/agent.ts";
import { CLAIM_HANDLERS } from "./handlers/claims.ts";
import { FEEDBACK_HANDLERS, REPORTS_PER_HOUR } from "./handlers/feedback.ts";
import { KEY_HANDLERS } from "./handlers/keys.ts";
import { OPERATOR_HANDLERS } from "./handlers/operator.ts";
import { PROFILE_HANDLERS } from "./handlers/profiles.ts";
import { PURCHASE_HANDLERS } from "./handlers/purchases.ts";
import {
  type AnyCall,
  type AnyInput,
  type AnyPaidHandler,
  type AnyResult,
  inputOf,
  type OperationRequest,
  parseHandlers,
} from "./operation.ts";
import {
  API_PREFIX,
  type Api,
  createOperationServer,
  type OperationServerParts,
  type ServerBounds,
} from "./operation-server.ts";
import type { HandlerBounds, HandlerParts, StoreHandlers } from "./parts.ts";
import { ProfileChecks, SharedAudit } from "./work-bounds.ts";

export interface ApiParts
  extends Omit<HandlerParts, keyof HandlerBounds | "payments">,
    OperatorCredentials,
    Pick<OperationServerParts, "log"> {
  /**
   * The paywall instance that RPC calls use, too, so that the limits by address are shared. Null =
   * nothing can be bought.
   */
  readonly paywall: PurchasePaywall | null;
  /** Runs the audit: compares the books with each other and with the payment chains. */
  readonly audit: () => Promise<AuditFindings>;
  /** Keys that one address may create per hour. */
  readonly keysPerHour: number;
  /** Absent = the defaults; tests tighten them. */
  readonly limits?: ApiLimits;
  /** Opens the limits by address. */
  readonly openLimit: OpenAddressLimit;
  /** Opens the limits of new keys. */
  readonly openCreationLimit: OpenCreationLimit;
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

const HANDLERS: StoreHandlers = {
  ...AGENT_HANDLERS,
  ...KEY_HANDLERS,
  ...ACCOUNT_HANDLERS,
  ...CLAIM_HANDLERS,
  ...PROFILE_HANDLERS,
  ...PURCHASE_HANDLERS,
  ...OPERATOR_HANDLERS,
  ...FEEDBACK_HANDLERS,
};

/** Connections that one address may ask for. */
const CONNECTIONS_PER_HOUR = 20;

/** Creates the API over a store. */
export function createApi(parts: ApiParts): Api {
  const { limits = API_LIMITS } = parts;
  return createOperationServer({
    ...parts,
    limits,
    operations: OPERATIONS.filter((operation) => operation.servedBy === "api"),
    claims: (path) => path.startsWith(API_PREFIX),
    serve: createServing({
      ...parts,
      ...boundsOf(parts, limits),
      payments: parts.paywall?.payments ?? null,
    }),
  });
}

function boundsOf(
  { runtime, audit, keysPerHour, openLimit, openCreationLimit }: ApiParts,
  { missesPerMinute, writesPerMinute }: ApiLimits,
): HandlerBounds & Pick<ApiAuthenticationParts, "misses"> {
  return {
    creations: openCreationLimit("key creations", sizeOf(keysPerHour, HOUR_S)),
    misses: openLimit("API credentials", sizeOf(missesPerMinute, MINUTE_S)),
    writes: openLimit("API changes", sizeOf(writesPerMinute, MINUTE_S)),
    connectionRequests: new AddressLimit(sizeOf(CONNECTIONS_PER_HOUR, HOUR_S)),
    // It counts by account id or by address; the two cannot collide.
    reports: new AddressLimit(sizeOf(REPORTS_PER_HOUR, HOUR_S)),
    profileChecks: new ProfileChecks(),
    sharedAudit: new SharedAudit(runtime, audit),
  };
}

/** The size of a limit of `count` requests in `seconds`; all of them may come at once. */
function sizeOf(count: number, seconds: number): RateLimitSize {
  return { perSecond: count / seconds, burst: count };
}

interface ServingParts extends HandlerParts, ApiAuthenticationParts {
  /** Null = nothing can be bought. */
  readonly paywall: PurchasePaywall | null;
}

/** Creates the function that serves operations; it throws if the store fails. */
function createServing(parts: ServingParts): (asked: OperationRequest) => Promise<AnyResult> {
  const handlerOf = parseHandlers<ServingParts>(HANDLERS);
  return async (asked) => {
    const { operation } = asked;
    const handler = handlerOf(operation);
    if (typeof handler !== "function") return servePaid(parts, handler, asked);
    const isRead = operation.method === "GET";
    const caller = isRead ? await readerOf(parts, asked) : await changerOf(parts, asked, false);
    if (caller.kind === "api_fault") return caller;
    const refusal = isRead ? null : writeLimit(parts, caller);
    return refusal ?? handled(parts, handler, asked, caller);
  };
}

/**
 * Authenticates the caller of a read. Pending usage is written before, so that a balance includes
 * the calls made before. The record of a key holds the balance, so it is read again.
 */
async function readerOf(
  parts: ServingParts,
  asked: OperationRequest,
): Promise<ApiCaller | ApiFault> {
  const { auth } = asked.operation;
  const caller = await callerOf(parts, auth, asked);
  return (await settle(parts, caller)) ? callerOf(parts, auth, asked) : caller;
}

/**
 * Authenticates the caller of a change. `paid` = the request carries a payment for an offer made to
 * it, so a key that has ended since is accepted.
 */
async function changerOf(
  parts: ServingParts,
  asked: OperationRequest,
  paid: boolean,
): Promise<ApiCaller | ApiFault> {
  const caller = await callerOf(parts, asked.operation.auth, { ...asked, paid });
  return caller.kind === "agent" && caller.agent.readOnly
    ? apiFault("forbidden", "the management token may only read")
    : caller;
}

async function settle({ settle }: HandlerParts, caller: ApiCaller | ApiFault): Promise<boolean> {
  if (caller.kind === "api_fault") return false;
  const accountId = accountOf(caller);
  return accountId !== null || caller.kind === "operator" ? settle(accountId) : false;
}

/** Why an account may not make another change now. Null = it may, and the change is counted. */
function writeLimit({ writes, runtime }: HandlerParts, caller: ApiCaller): ApiFault | null {
  const accountId = accountOf(caller);
  const retryAfterMs = accountId === null ? 0 : writes.take(accountId, runtime.now());
  return limited(retryAfterMs, "the account has been changed too often in the last minute");
}

/** The account of the caller; null = none. */
function accountOf(caller: ApiCaller): string | null {
  if (caller.kind === "agent") return caller.agent.accountId;
  return caller.kind === "key" ? caller.key.accountId : null;
}

const CLOSED_RETRY_MS = 3_600_000;

/**
 * Serves a paid operation. A payment that was recorded before is looked up first, so that its
 * repetition returns the first result even if key, token or price range have changed since.
 */
async function servePaid(
  parts: ServingParts,
  handler: AnyPaidHandler<ServingParts>,
  asked: OperationRequest,
): Promise<AnyResult> {
  const found = paymentOf(asked.request.headersDistinct);
  if (found?.kind === "unclear")
    return apiFault("invalid_request", found.message, { nextAction: found.nextAction });
  const payment = found?.given ?? null;
  const authenticated = async (): Promise<AnyCall | ApiFault> => {
    const caller = await changerOf(parts, asked, payment !== null);
    if (caller.kind === "api_fault") return caller;
    const input = inputOf(asked);
    return input.kind === "api_fault" ? input : { ...input, caller };
  };
  // With a payment, the caller is authenticated only if the payment is new.
  const input = payment === null ? await authenticated() : inputOf(asked);
  if (input.kind === "api_fault") return input;
  if (handler.free?.includes(input.body) === true)
    return isCall(input) ? handler.free.serve(input, parts) : NOT_PAID_FOR;
  if (parts.paywall === null)
    return apiFault("unavailable", "payments are not taken here", {
      nextAction: handler.instead,
      retryAfterMs: CLOSED_RETRY_MS,
    });
  const paid = await parts.paywall.collect(
    { payment, address: asked.address, mark: markOf(asked) },
    async () => {
      const call = isCall(input) ? input : await authenticated();
      return call.kind === "api_fault" ? call : orderOf(await handler.order(call, parts), asked);
    },
  );
  if (paid.kind !== "paid") return paid;
  const answer = await handler.answer(paid, input, parts);
  return answer.kind === "answer" ? { ...answer, receipt: paid.headers } : answer;
}

const NOT_PAID_FOR = apiFault(
  "invalid_request",
  "this request is not paid for, and carries a payment",
  { nextAction: "leave the payment out" },
);

function isCall(input: AnyInput | AnyCall): input is AnyCall {
  return "caller" in input;
}

function orderOf(terms: Terms | ApiFault, asked: OperationRequest): Order | ApiFault {
  const keepsAuthorization = withoutPayment(asked.request.headers.authorization) !== undefined;
  return "kind" in terms ? terms : { ...terms, request: markOf(asked), keepsAuthorization };
}

function markOf({ request, bytes, baseUrl }: OperationRequest): RequestMark {
  const { method = "", url = "/" } = request;
  return requestMark({ method, url, body: bytes, credential: "", baseUrl });
}
