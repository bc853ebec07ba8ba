// The HTTP API beside JSON-RPC: finds the operation of a request, enforces limits, and turns
// exceptions into answers in one place. Knows rows of the contract, not what operations do.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import {
  type OpenAddressLimit,
  type OpenCreationLimit,
  openAddressLimit,
} from "../../core/workers/shared-address-limits.ts";
import type { Runtime } from "../../runtime.ts";
import { isStoreFailure } from "../../store/store-failure.ts";
import { OPERATIONS } from "../contract/contract.ts";
import type { OperationMethod } from "../contract/operation.ts";
import { readBody } from "../http/body.ts";
import { clientAddress, requestBaseUrl, trustedProxiesOf } from "../http/client-address.ts";
import { createBound } from "../http/concurrency-limit.ts";
import { isLocalCaller } from "../http/local-caller.ts";
import { type Headers, headersOf } from "../http/respond.ts";
import type { PurchasePaywall } from "../payment/purchase-paywall.ts";
import type { AnyResult, NamedOperation } from "./operation.ts";
import type { HandlerParts } from "./parts.ts";
import { retiredAt } from "./retired-routes.ts";
import { createRoutes, type OperationRoute } from "./routes.ts";
import { createServing } from "./serve.ts";
import { writeAnswer, writeApiFault, writePaid, writePaymentRefusal } from "./write-answer.ts";

export interface ApiParts extends Omit<HandlerParts, "creations" | "writes" | "payments"> {
  /**
   * The paywall instance that RPC calls use, too, so that the limits by address are shared. Null =
   * nothing can be bought.
   */
  readonly paywall: PurchasePaywall | null;
  readonly log: Pick<Logger, "error" | "warn">;
  /** Null = the base URL of the request. */
  readonly publicUrl: string | null;
  /** IP addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[];
  /** Null = the operator endpoints are disabled. */
  readonly operatorToken: string | null;
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
export interface ApiLimits {
  /** Requests whose bodies are being read. */
  readonly maxReading: number;
  /** Requests being served. */
  readonly maxUnderWay: number;
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

/** The HTTP API. */
export interface Api {
  /** Whether the API serves this path (without query). */
  serves(path: string): boolean;
  /** Answers a request. */
  handle(request: IncomingMessage, response: ServerResponse, requestId: string): void;
}

/** One request in the API. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly headers: Headers;
  readonly address: string;
  readonly baseUrl: string;
  readonly isLocal: boolean;
}

const PREFIX = "/api/v1/";
const MINUTE_S = 60;
const HOUR_S = 3_600;

/** Creates the API over a store. */
export function createApi(parts: ApiParts): Api {
  const { maxReading, maxUnderWay, missesPerMinute, writesPerMinute } = parts.limits ?? API_LIMITS;
  const proxies = trustedProxiesOf(parts.trustedProxies);
  const { openLimit = openAddressLimit, openCreationLimit = openAddressLimit } = parts;
  const creations = openCreationLimit("key creations", sizeOf(parts.keysPerHour, HOUR_S));
  const misses = openLimit("API credentials", sizeOf(missesPerMinute, MINUTE_S));
  const writes = openLimit("API changes", sizeOf(writesPerMinute, MINUTE_S));
  const serve = createServing(
    { ...parts, payments: parts.paywall?.payments ?? null, creations, writes },
    { ...parts, misses },
  );
  const routeOf = createRoutes(OPERATIONS.filter((operation) => operation.servedBy === "api"));
  const reading = createBound(
    maxReading,
    apiFault("unavailable", "too many requests are arriving"),
  );
  const underWay = createBound(
    maxUnderWay,
    apiFault("unavailable", "too many requests are under way"),
  );
  const failed = createCatch(parts.log, parts.runtime);

  /** Answers a request; null = its caller has left. */
  async function answer({
    request,
    headers,
    address,
    baseUrl,
    isLocal,
  }: Exchange): Promise<AnyResult | null> {
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    const retired = retiredAt(path);
    if (retired !== null) return retired;
    const found = operationOf(routeOf(path), request.method, headers);
    if ("kind" in found) return found;
    const { operation, params } = found;
    const bytes =
      operation.body === null
        ? NO_BYTES
        : await reading(() => readBody(request, operation.maxBodyBytes));
    return bytes === null || "kind" in bytes
      ? bytes
      : underWay(() => serve({ operation, params, request, bytes, address, baseUrl, isLocal }));
  }

  return {
    serves: (path) => path.startsWith(PREFIX),
    handle(request, response, requestId) {
      request.on("error", () => {});
      const headers = headersOf(requestId, request.headers["x-request-id"]);
      const baseUrl = parts.publicUrl ?? requestBaseUrl(request, proxies);
      const address = clientAddress(request, proxies);
      const isLocal = isLocalCaller(request, { address, baseUrl, publicUrl: parts.publicUrl });
      const exchange = { request, response, requestId, headers, baseUrl, address, isLocal };
      void answer(exchange)
        .catch((error: unknown) => failed(error, exchange))
        .then((result) => finish(exchange, result));
    },
  };
}

/** The size of a limit of `count` requests in `seconds`; all of them may come at once. */
function sizeOf(count: number, seconds: number): RateLimitSize {
  return { perSecond: count / seconds, burst: count };
}

const NO_BYTES = Buffer.alloc(0);

/** The operation of a method at a path, or 404, or 405 with an `Allow` header. */
function operationOf(
  route: OperationRoute<NamedOperation> | undefined,
  method: string | undefined,
  headers: Headers,
) {
  if (route === undefined)
    return apiFault("not_found", "nothing is served at this path", {
      nextAction: "use a path of /openapi.json",
    });
  const operation = route.operations.get(parseMethod(method));
  if (operation !== undefined) return { operation, params: route.params };
  const allowed = [
    ...[...route.operations.keys()].flatMap((method) =>
      method === "GET" ? ["GET", "HEAD"] : [method],
    ),
    "OPTIONS",
  ].join(", ");
  headers.push("Allow", allowed);
  return apiFault("method_not_allowed", `${method} is not served at this path`, {
    nextAction: `use one of: ${allowed}`,
  });
}

/** The method of a request; undefined = no operation has it. */
function parseMethod(method: string | undefined): OperationMethod {
  return (method === "HEAD" ? "GET" : method) as OperationMethod;
}

const STORE_FAILURE_LOG_MS = 10_000;
const STORE_FAILURE_RETRY_MS = 2_000;

/**
 * Turns an exception of a handler into an answer: 503 if the store failed, else 500, which means a
 * bug.
 */
function createCatch(
  log: ApiParts["log"],
  runtime: Runtime,
): (error: unknown, exchange: Exchange) => ApiFault {
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  return (error, { requestId, request }) => {
    if (!isStoreFailure(error)) {
      const problem = withoutSecrets(
        error instanceof Error ? (error.stack ?? error.message) : String(error),
      );
      log.error(
        { requestId, method: request.method, problem },
        "bug: a request of the API was not answered",
      );
      return apiFault("internal", "the service failed to answer");
    }
    if (runtime.now() - loggedAtMs >= STORE_FAILURE_LOG_MS) {
      loggedAtMs = runtime.now();
      log.warn(
        { requestId, problem: withoutSecrets(String(error)) },
        "the store does not answer; requests of the API are refused until it does",
      );
    }
    return apiFault("unavailable", "the store does not answer right now", {
      retryAfterMs: STORE_FAILURE_RETRY_MS,
    });
  };
}

function withoutSecrets(text: string): string {
  return text.replace(/svc_([a-z]{2})_\w+/g, "svc_$1_…");
}

function finish({ request, response, headers, baseUrl }: Exchange, result: AnyResult | null): void {
  request.resume();
  if (result === null) {
    response.destroy();
    return;
  }
  switch (result.kind) {
    case "answer":
      if (result.receipt === undefined)
        return writeAnswer(response, headers, result.status, result.body);
      return writePaid(response, headers, { ...result, receipt: result.receipt });
    case "api_fault":
      return writeApiFault(response, headers, result, baseUrl);
    case "payment_refusal":
      return writePaymentRefusal(response, headers, result, baseUrl);
  }
}
