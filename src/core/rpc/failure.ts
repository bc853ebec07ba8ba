// A provider's failure to answer with a result, as observed. Knows no provider and judges nothing.

/** A provider's failure to answer a request with a result. */
export interface Failure {
  /**
   * `error`: a JSON-RPC error object. `body`: an HTTP answer without a usable JSON-RPC body.
   * `timeout`: no complete answer in time. `unsent`: certainly not sent. `network`: the connection
   * failed after the request may have been sent. `no_room`: the answer came, but there was no
   * memory to hold it: the caller's or the service's own limit, not the provider's fault.
   */
  readonly kind: "error" | "body" | "timeout" | "unsent" | "network" | "no_room";
  /** HTTP status; 0 = there was no HTTP answer. */
  readonly httpStatus: number;
  /** Raw `Retry-After` header value. */
  readonly retryAfter: string | null;
  /** JSON-RPC error code. */
  readonly code: number | null;
  /** JSON-RPC error message, the beginning of a body, or the text of a network error. */
  readonly message: string;
  /** JSON-RPC error data. */
  readonly data: unknown;
  /**
   * The event that failed this request and possibly others, such as the end of a shared connection.
   */
  readonly incident?: object;
  /**
   * It failed because the service had no free connection, which says nothing about the provider.
   */
  readonly crowded?: true;
}

/** A failure with only a kind and a message. */
export function plainFailure(kind: Failure["kind"], message: string): Failure {
  return { kind, httpStatus: 0, retryAfter: null, code: null, message, data: null };
}

/** Whether the provider answered at all. */
export function isAnswer(kind: Failure["kind"]): boolean {
  return kind === "error" || kind === "body" || kind === "no_room";
}

/** A request that was not sent: its provider had no room for it. */
export function crowdedFailure(message = "its own limit is reached"): Failure {
  return { ...plainFailure("unsent", message), crowded: true };
}

/** A request whose time is over. `queued`: it waited for a busy connection. */
export function lateFailure(sent: boolean, queued: boolean | undefined): Failure {
  const message = "no answer in time";
  if (!sent && queued === true) return crowdedFailure(message);
  return plainFailure(sent ? "timeout" : "unsent", message);
}
