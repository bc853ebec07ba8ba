// The connections to one origin, as every HTTP client offers them.

import type { LookupFunction } from "node:net";
import type { Allowance, ShareUse } from "../shares.ts";
import type { AnswerHeaders } from "./answer-failure.ts";

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

/** Lets a handler control the answer that it receives. */
export interface DispatchControl {
  /** Ends the request of this handler; those of others over the same connection go on. */
  abort(reason: Error, handler: RequestHandler): void;
  pause(): void;
  resume(): void;
}

/** Hears one answer: the used part of undici's dispatch handler, and what our own client asks. */
export interface RequestHandler {
  onRequestStart(controller: DispatchControl): void;
  onResponseStart(controller: DispatchControl, status: number, headers: AnswerHeaders): void;
  /**
   * Whether it keeps chunks: then each read goes into memory of its own. Otherwise a chunk is valid
   * during the call only. Read after each call.
   */
  readonly keepsChunks: boolean;
  /** The request waits for a busy connection; set to false once a connection has taken it. */
  queued: boolean;
  /** Its caller has left, so that the request need not be sent. */
  readonly abandoned: boolean;
  /**
   * Receives a chunk. True = done with it. Otherwise, with `keepsChunks`, it is kept and returned
   * once with `recycle`. `last`: the body ends with this chunk, and `onResponseEnd` follows at
   * once.
   */
  onResponseData(controller: DispatchControl, chunk: Buffer, last?: boolean): boolean;
  /**
   * Called when the answer is complete, before `onResponseEnd`. False = it is not the answer to
   * this request, and the connection must not be used again.
   */
  onResponseComplete(): boolean;
  onResponseEnd(): void;
  onResponseError(controller: DispatchControl | null, error: Error): void;
  /** Called once when the connection is done with the request. */
  onOver: () => void;
}

/**
 * A request body; when it is written, the text from `idStart` to `idEnd` is replaced by `id`
 * (ASCII).
 */
export interface RequestBody {
  readonly bytes: Buffer;
  readonly id: string;
  readonly idStart: number;
  readonly idEnd: number;
}

/**
 * How a request uses connections. `probe`: it may use an extra one. `pipelined`: it may be sent
 * together with other such requests, before their answers, and may be sent twice.
 */
export type ConnectionUse = "alone" | "probe" | "pipelined";

/** Sends one request with a path and a set of headers. */
export type Send = (body: RequestBody, handler: RequestHandler, use: ConnectionUse) => void;

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
