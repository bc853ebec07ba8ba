// Calls the HTTP API of the service that serves this page. The session cookie goes along by itself;
// no credential is ever held by script.

import type { AnswerOf, Endpoint, RequestOf } from "./contract-types.ts";
import { listIn, memberOf, textIn } from "./json.ts";

/** Why a request brought no answer of success. */
export interface Failure {
  /** 0 = no answer came. */
  readonly status: number;
  /** A code of the error table; "" = the answer had none. */
  readonly code: string;
  readonly message: string;
  readonly nextAction: string;
  /** Paths of the fields that are wrong; empty = the answer named none. */
  readonly details: readonly string[];
  /** When it may be tried again; null = the service does not say. */
  readonly retryAfterMs: number | null;
  /** The purchase that is under way; "" = none is. */
  readonly purchaseId: string;
  /** What would pay for the request, as its header; null = a payment changes nothing. */
  readonly paymentRequired: string | null;
}

/** The result of a request. */
export type Result<T> =
  | { readonly kind: "ok"; readonly body: T }
  | { readonly kind: "failed"; readonly failure: Failure };

const TIMEOUT_MS = 15_000;

/** The address of the service, with a trailing slash; the script lies in `dashboard/assets/`. */
export const SERVICE_URL: URL = new URL("../../", import.meta.url);

/** What a request may have beside its parameters. */
interface SendOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** What the rest of the application learns from every answer. */
export interface ClientHooks {
  /** The `Date` of an answer. */
  readonly dated: (date: string | null) => void;
  /** An answer said that the session is over, or that there is none. */
  readonly unauthorized: () => void;
  /** Whether a request was answered at all. */
  readonly reached: (isReached: boolean) => void;
}

/** Calls the API of the service that this page came from. */
export class Client {
  readonly #hooks: ClientHooks;

  constructor(hooks: ClientHooks) {
    this.#hooks = hooks;
  }

  /** Calls one operation of the contract. */
  call<E extends Endpoint>(
    endpoint: E,
    { params, query, body }: RequestOf<E>,
    options: Omit<SendOptions, "body"> = {},
  ): Promise<Result<AnswerOf<E>>> {
    const [method = "GET", path = "/"] = endpoint.split(" ");
    return this.#send(method, urlOf(path, params, query), { ...options, body });
  }

  /** Sends a request to a path that is no operation of the contract, or to one that is chosen. */
  request<T>(method: string, path: string, options: SendOptions = {}): Promise<Result<T>> {
    return this.#send(method, urlOf(path, null, null), options);
  }

  async #send<T>(method: string, url: URL, options: SendOptions): Promise<Result<T>> {
    const { body, headers, signal, timeoutMs = TIMEOUT_MS } = options;
    const timeout = AbortSignal.timeout(timeoutMs);
    // Changes by cookie are accepted as JSON only, also those without a body.
    const json = { headers: { "content-type": "application/json", ...headers } };
    try {
      const response = await fetch(url, {
        method,
        cache: "no-store",
        credentials: "same-origin",
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
        ...(method === "GET" ? { headers: { ...headers } } : json),
        body: method === "GET" ? null : JSON.stringify(body ?? {}),
      });
      this.#hooks.dated(response.headers.get("date"));
      this.#hooks.reached(true);
      if (response.status === 401) this.#hooks.unauthorized();
      const answer: unknown = response.status === 204 ? null : await response.json();
      if (!response.ok && !isOwnAnswer(response.status, answer))
        return { kind: "failed", failure: failureOf(response, answer) };
      return { kind: "ok", body: answer as T };
    } catch {
      if (signal?.aborted !== true) this.#hooks.reached(false);
      return { kind: "failed", failure: NO_ANSWER };
    }
  }
}

/** The address of an operation with its parameters filled in. */
function urlOf(path: string, params: unknown, query: unknown): URL {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(memberOf(params, name))),
  );
  const url = new URL(filled.slice(1), SERVICE_URL);
  for (const [name, value] of Object.entries<unknown>(Object(query)))
    if (value != null) url.searchParams.set(name, String(value));
  return url;
}

/** Readiness answers 503 with a document of its own, which is no refusal. */
function isOwnAnswer(status: number, answer: unknown): boolean {
  return status === 503 && memberOf(answer, "error") === undefined;
}

/** Reads both forms of refusal: of the API, and of JSON-RPC as the older pages answer it. */
export function failureOf({ status, headers }: Answered, answer: unknown): Failure {
  const error = memberOf(answer, "error");
  const data = memberOf(error, "data");
  const code = memberOf(data, "code") ?? memberOf(error, "code");
  const nextAction = memberOf(data, "next_action") ?? memberOf(error, "next_action");
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return {
    status,
    code: textIn(code),
    message: textIn(memberOf(error, "message")) || `The service answered ${status}.`,
    nextAction: textIn(nextAction),
    details: listIn(memberOf(error, "details")).filter((item) => typeof item === "string"),
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : null,
    purchaseId: textIn(memberOf(error, "purchase_id")),
    paymentRequired: headers.get("payment-required"),
  };
}

type Answered = Pick<Response, "status" | "headers">;

/** Nothing came back in time, or nothing that can be read. */
export const NO_ANSWER = failureOf(
  { status: 0, headers: new Headers() },
  { error: { message: "no answer came" } },
);
