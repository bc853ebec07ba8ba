// The connections to one origin, as every HTTP client offers them.

import type { LookupFunction } from "node:net";
import type { Allowance, ShareUse } from "../shares.ts";
import type { AnswerHandler, RequestBody } from "./http1-connection.ts";

/** Bounds of the connections to one origin. */
export interface ConnectionLimits {
  /** Of the service; a pool may have its share of them. */
  readonly connectionsPerOrigin: number;
  /** Most requests that may wait for a connection to one origin. */
  readonly maxWaiting: number;
  readonly connectTimeoutMs: number;
}

/** What connections to an origin are made with. */
export interface ConnectionParts {
  readonly limits: ConnectionLimits;
  /** Resolves the host; null = as node does. */
  readonly lookup: LookupFunction | null;
  /** This worker's share of the connections. */
  readonly shareOf: (use: ShareUse) => Allowance;
}

/** Hears the answer to a request, and tells when it needs no connection any more. */
export interface RequestHandler extends AnswerHandler {
  /** Called once when the connection is done with the request. */
  onOver: () => void;
}

/** Sends one request with a path and a set of headers; a probe may use an extra connection. */
export type Send = (body: RequestBody, handler: RequestHandler, isProbe: boolean) => void;

/** Name and value of one header. */
export type HeaderField = readonly [name: string, value: string];

/** Connections to one origin. */
export interface Connections {
  prepare(path: string, headers: readonly HeaderField[]): Send;
  /** Whether a request would be sent without waiting for another one's answer. */
  isFree(): boolean;
  /**
   * Reports an answer to something else: no later request uses the connection that it came over.
   */
  readonly distrust: () => void;
  /** Sends nothing more; requests in flight may finish. */
  drain(): void;
  destroy(): Promise<void>;
}

/** Connections to nowhere: every request fails before anything is sent. */
export function noConnections(refusal: Error): Connections {
  const send: Send = (_, handler) => queueMicrotask(() => handler.onResponseError(null, refusal));
  return {
    prepare: () => send,
    isFree: () => true,
    distrust() {},
    drain() {},
    async destroy() {},
  };
}
