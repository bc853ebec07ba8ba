// Serves operations over HTTP: finds the operation of a request, enforces limits, and turns
// exceptions into answers in one place. Knows rows of the contract, not what operations do.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { fault } from "../../core/faults/rpc-fault.ts";
import { PROBLEMS, problemDetails } from "../../payments/protocol-problems.ts";
import type { Runtime } from "../../runtime.ts";
import { isStoreFailure } from "../../shared/store/store-failure.ts";
import type { NamedOperation } from "../contract/contract.ts";
import type { OperationMethod, WriteStream } from "../contract/operation.ts";
import { createBound } from "../http/activity.ts";
import { readBody } from "../http/body.ts";
import type { RequestOrigin } from "../http/request-origin.ts";
import {
  beginEvents,
  type Headers,
  headersOf,
  retryAfter,
  write,
  writeFault as writeRpcFault,
} from "../http/respond.ts";
import { type PaymentRefusal, purchaseUrl } from "../payment/purchase-paywall.ts";
import type { AnyResult, OperationRequest } from "./operation.ts";
import { createRoutes, type OperationRoute, retiredAt } from "./routes.ts";

export interface OperationServerParts {
  readonly runtime: Runtime;
  readonly log: Pick<Logger, "error" | "warn">;
  readonly operations: readonly NamedOperation[];
  /** Serves one request; throws if the store fails. */
  readonly serve: (asked: OperationRequest) => Promise<AnyResult>;
  /** Whether a path (without query) belongs here that is none of these operations. */
  readonly claims: (path: string) => boolean;
  readonly limits: ServerBounds;
}

/** Bounds of concurrent requests. */
export interface ServerBounds {
  /** Requests whose bodies are being read. */
  readonly maxReading: number;
  /** Requests being served. */
  readonly maxUnderWay: number;
}

/** A request to an API. */
export interface ApiRequest extends RequestOrigin {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
}

/** A set of paths with what answers them. */
export interface Api {
  /** Whether the API serves this path (without query). */
  serves(path: string): boolean;
  /** Answers a request. */
  handle(arrived: ApiRequest): void;
}

/** Dispatches a request to the first API that serves its path. */
export function firstServing(all: readonly Api[]): Api {
  const one = (path: string): Api | undefined => all.find((api) => api.serves(path));
  return {
    serves: (path) => one(path) !== undefined,
    handle: (arrived) => one(pathOf(arrived))?.handle(arrived),
  };
}

/**
 * An API whose code is loaded at the first request under `/api/v1/`: what operators ask for takes
 * memory that a router may never need.
 */
export function loadedLater(load: () => Promise<Api>): Api {
  let loaded: Promise<Api> | null = null;
  return {
    serves: (path) => path.startsWith(API_PREFIX),
    handle(arrived) {
      const { request, response, requestId } = arrived;
      loaded ??= load();
      void loaded.then((api) => {
        if (api.serves(pathOf(arrived))) return api.handle(arrived);
        request.on("error", () => {});
        request.resume();
        const headers = headersOf(requestId, request.headers["x-request-id"]);
        writeRpcFault(response, headers, fault("not_found", "nothing is served at this path"));
      });
    },
  };
}

/** What the paths of the API begin with. */
export const API_PREFIX = "/api/v1/";

function pathOf({ request }: ApiRequest): string {
  return (request.url ?? "/").split("?", 1)[0] ?? "/";
}

/** One request in the API. */
interface Exchange extends ApiRequest {
  readonly headers: Headers;
}

/** Creates a server of operations. */
export function createOperationServer(parts: OperationServerParts): Api {
  const { maxReading, maxUnderWay } = parts.limits;
  const routeOf = createRoutes(parts.operations);
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
  async function answer(exchange: Exchange): Promise<AnyResult | null> {
    const { request, headers } = exchange;
    const path = pathOf(exchange);
    const retired = retiredAt(path);
    if (retired !== null) return retired;
    const found = operationOf(routeOf(path), request.method, headers);
    if ("kind" in found) return found;
    const { operation, params } = found;
    const bytes =
      operation.body === undefined
        ? NO_BYTES
        : await reading(() => readBody(request, operation.maxBodyBytes));
    return bytes === null || "kind" in bytes
      ? bytes
      : underWay(() => parts.serve({ ...exchange, operation, params, bytes }));
  }

  return {
    serves: (path) => parts.claims(path) || routeOf(path) !== undefined,
    handle(arrived) {
      const { request, requestId } = arrived;
      request.on("error", () => {});
      const headers = headersOf(requestId, request.headers["x-request-id"]);
      const exchange = { ...arrived, headers };
      void answer(exchange)
        .catch((error: unknown) => failed(error, exchange))
        .then((result) => finish(exchange, result));
    },
  };
}

const NO_BYTES = Buffer.alloc(0);

/** The operation of a method at a path, or 404, or 405 with an `Allow` header. */
function operationOf(
  route: OperationRoute | undefined,
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
  log: OperationServerParts["log"],
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

function finish(exchange: Exchange, result: AnyResult | null): void {
  const { request, response, headers } = exchange;
  request.resume();
  if (result === null) {
    response.destroy();
    return;
  }
  switch (result.kind) {
    case "answer":
      headers.push(...(result.headers ?? []), ...(result.receipt ?? []));
      if (result.stream !== undefined) return beginStream(exchange, result.stream);
      headers.push(
        "Cache-Control",
        result.receipt === undefined ? "no-store" : "private, no-store",
      );
      return writeJson(exchange, result.status, result.body);
    case "api_fault":
      return writeFault(exchange, result, {}, {});
    case "payment_refusal":
      return writeRefusal(exchange, result);
  }
}

function writeJson({ response, headers }: Exchange, status: number, body: unknown): void {
  write(response, status, headers, body === null ? null : [Buffer.from(JSON.stringify(body))]);
}

/** Begins an event stream, which `stream` continues; a HEAD request gets its head alone. */
function beginStream({ response, headers }: Exchange, stream: WriteStream): void {
  headers.push("Cache-Control", "no-store", "X-Accel-Buffering", "no");
  if (!beginEvents(response, headers)) return;
  if (response.req.method === "HEAD") response.end();
  else stream(response, NEVER_CHECKED);
}

/** The one who serves the operation checks the credential. */
const NEVER_CHECKED = (): Promise<boolean> => Promise.resolve(true);

/** Writes a refusal; its code links to its explanation. `error` and `beside` add to it. */
function writeFault(exchange: Exchange, why: ApiFault, error: object, beside: object): void {
  const { headers, baseUrl } = exchange;
  const { code, message, nextAction, details, retryAfterMs } = why;
  if (retryAfterMs !== null) headers.push("Retry-After", retryAfter(retryAfterMs));
  if (code === "unauthorized") headers.push("WWW-Authenticate", 'Bearer realm="svc"');
  headers.push("Cache-Control", "no-store");
  writeJson(exchange, why.status, {
    ...beside,
    error: {
      code,
      message,
      next_action: nextAction,
      docs_url: `${baseUrl}/docs/errors#${code}`,
      ...(details.length === 0 ? {} : { details }),
      ...error,
    },
  });
}

/** Writes the refusal of a payment: the usual envelope plus MPP problem details. */
function writeRefusal(exchange: Exchange, refusal: PaymentRefusal): void {
  const { fault, purchaseId, problem } = refusal;
  const purchase =
    purchaseId === null
      ? {}
      : { purchase_id: purchaseId, status_url: purchaseUrl(exchange.baseUrl, purchaseId) };
  // MPP defines no problem type for purchases that are recorded already.
  const details = Object.hasOwn(PROBLEMS, problem)
    ? { ...problemDetails(problem), status: fault.status, detail: fault.message }
    : {};
  exchange.headers.push(...refusal.headers);
  writeFault(exchange, fault, purchase, details);
}
