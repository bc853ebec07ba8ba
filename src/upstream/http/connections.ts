// The connections to one origin, as every HTTP client offers them.

import type { LookupFunction } from "node:net";
import { bareHost } from "../../core/public-address.ts";
import type { Runtime } from "../../runtime.ts";
import type { Allowance, ShareUse } from "../worker-shares.ts";
import type { BufferPool } from "./buffer-pool.ts";
import type { AnswerHandler } from "./http1-connection.ts";
import { Origin } from "./origin.ts";
import type { RequestBody } from "./request-writer.ts";

/** Bounds of the connections to one origin. */
export interface ConnectionLimits {
  /** Of the service; a pool may have its share of them. */
  readonly connectionsPerOrigin: number;
  /** Most requests that may wait for a connection to one origin. */
  readonly maxWaiting: number;
  readonly connectTimeoutMs: number;
}

/** Hears the answer to a request, and tells when it needs no connection any more. */
export interface RequestHandler extends AnswerHandler {
  /** Called once when the connection is done with the request. */
  onOver: () => void;
}

/** Sends one request. */
export type Send = (body: RequestBody, handler: RequestHandler) => void;

/** Sends requests with one path and one set of headers. */
export interface Senders {
  readonly send: Send;
  /** Sends a probe, which may use an extra connection. */
  readonly sendProbe: Send;
}

/** Name and value of one header. */
export type HeaderField = readonly [name: string, value: string];

/** Connections to one origin. */
export interface Connections {
  prepare(path: string, headers: readonly HeaderField[]): Senders;
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
    prepare: () => ({ send, sendProbe: send }),
    isFree: () => true,
    distrust() {},
    drain() {},
    async destroy() {},
  };
}

/** Dependencies of the connections. */
export interface OwnConnectionParts {
  readonly limits: ConnectionLimits;
  readonly runtime: Runtime;
  /** Null = node's own. */
  readonly lookup: LookupFunction | null;
  readonly buffers: BufferPool;
  /** This worker's share of the connections. */
  readonly shareOf: (use: ShareUse) => Allowance;
}

/** Connections to the origin of a plain `http:` URL. */
export function ownConnections(
  url: URL,
  { limits, runtime, lookup, buffers, shareOf }: OwnConnectionParts,
): Connections {
  const share = shareOf({
    used: () => origin.open,
    wanted: () => origin.wanted,
    changed: () => origin.adjust(),
  });
  const origin = new Origin({
    host: bareHost(url.hostname),
    port: Number(url.port || "80"),
    get connections() {
      return share.limit;
    },
    onShort: share.short,
    queue: limits.maxWaiting,
    connectTimeoutMs: limits.connectTimeoutMs,
    runtime,
    lookup,
    buffers,
  });
  return {
    prepare(path, headers) {
      const lines = [["host", url.host] as const, ...headers]
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join("");
      const head = `POST ${path} HTTP/1.1\r\n${lines}content-length: `;
      return {
        send: (body, handler) => origin.send(head, body, handler),
        sendProbe: (body, handler) => origin.sendProbe(head, body, handler),
      };
    },
    isFree: () => origin.isFree(),
    // Nothing to do: `onResponseComplete` has already ended the connection.
    distrust() {},
    drain() {
      share.close();
      origin.drain();
    },
    async destroy() {
      share.close();
      origin.destroy();
    },
  };
}
