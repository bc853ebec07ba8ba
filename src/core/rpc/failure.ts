// A provider's failure to answer with a result, as it was observed. Knows no provider and judges
// nothing.

/** A provider's failure to answer a request with a result. */
export interface Failure {
  /**
   * `error`: a JSON-RPC error object. `body`: an HTTP answer whose body is not a usable JSON-RPC
   * answer. `timeout`: no full answer in time. `unsent`: it certainly never left this machine.
   * `network`: the connection failed after the request may have left. `no_room`: the answer came,
   * and there was no memory to gather it in: the caller's or our own limit, nothing that the
   * provider did.
   */
  readonly kind: "error" | "body" | "timeout" | "unsent" | "network" | "no_room";
  /** 0 = no HTTP answer. */
  readonly httpStatus: number;
  /** Raw `Retry-After` header value. */
  readonly retryAfter: string | null;
  /** JSON-RPC error code. */
  readonly code: number | null;
  /** JSON-RPC error message, or the beginning of a body, or the text of a network error. */
  readonly message: string;
  /** JSON-RPC error data. */
  readonly data: unknown;
  /**
   * The one event that failed this request and perhaps others with it: the end of a connection they
   * shared.
   */
  readonly incident?: object;
  /** It failed for want of a free connection here, which says nothing about the provider. */
  readonly crowded?: true;
}

/** A failure that carries nothing but its kind and a text. */
export function plainFailure(kind: Failure["kind"], message: string): Failure {
  return { kind, httpStatus: 0, retryAfter: null, code: null, message, data: null };
}

/** Whether a failure is an answer of the provider. */
export function isAnswer(kind: Failure["kind"]): boolean {
  return kind === "error" || kind === "body" || kind === "no_room";
}
