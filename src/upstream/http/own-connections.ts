// Plain HTTP/1.1 through the service's own client (`origin.ts`).
import type { LookupFunction } from "node:net";
import { bareHost } from "../../core/public-address.ts";
import type { Runtime } from "../../runtime.ts";
import type { Allowance, ShareUse } from "../worker-shares.ts";
import type { BufferPool } from "./buffer-pool.ts";
import type { ConnectionLimits, Connections } from "./connections.ts";
import { Origin } from "./origin.ts";

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
