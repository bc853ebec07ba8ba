// Providers over HTTP: which connections a request takes and what its head says. One pool per
// origin, shared by every profile that names it; users' providers have pools of their own, so that
// none of them ever gets a connection that was not checked.
import type { LookupFunction } from "node:net";
import { type Dispatcher, Pool } from "undici";
import type { Provider } from "../../core/provider/profile.ts";
import { bareHost } from "../../core/public-address.ts";
import { withWireId } from "../../core/rpc/wire-request.ts";
import type { Runtime } from "../../runtime.ts";
import { MemoryBudget, SERVICE, USERS_PROVIDERS } from "../memory-budget.ts";
import { createSsrfGuard, type SsrfGuard } from "../ssrf-guard.ts";
import { createTimerWheel, type TimerWheel } from "../timer-wheel.ts";
import type { Upstream } from "../transport.ts";
import { BufferPool } from "./buffer-pool.ts";
import { coded, type RequestBody } from "./connection.ts";
import { type AnswerLimits, HttpDispatch } from "./dispatch.ts";
import { createOrigin } from "./origin.ts";

/** Bounds of the HTTP transport. */
export interface HttpLimits extends AnswerLimits {
  readonly connectionsPerOrigin: number;
  /** Requests that may wait for a connection to one origin. */
  readonly maxWaiting: number;
  readonly connectTimeoutMs: number;
  /** Longest answer of a user's provider held in one piece. */
  readonly maxGuardedBytes: number;
}

/** Connections to a secure origin that only probes use. */
const PROBE_CONNECTIONS = 2;

/** The bounds used unless a test tightens them. */
export const HTTP_LIMITS: HttpLimits = {
  connectionsPerOrigin: 128,
  maxWaiting: 10_000,
  connectTimeoutMs: 5_000,
  maxAnswerBytes: 1_073_741_824,
  maxWholeBytes: 134_217_728,
  maxGuardedBytes: 33_554_432,
};

/** What it shares with the rest of the service. */
export interface HttpParts {
  readonly budget: MemoryBudget;
  readonly timerWheel: TimerWheel;
}

/** Answers of users' providers are no longer than this. */
const MAX_GUARDED_ANSWER_BYTES = 67_108_864;
const LONGEST_DEADLINE_MS = 45_000;

/**
 * Reaches providers by their `url`: plain HTTP/1.1 through connections of our own, TLS (HTTP/1.1
 * and HTTP/2) through undici.
 */
export function createHttpUpstream(
  runtime: Runtime,
  limits: HttpLimits = HTTP_LIMITS,
  guard: SsrfGuard = createSsrfGuard(),
  { budget, timerWheel }: HttpParts = {
    budget: MemoryBudget.unbounded(),
    timerWheel: createTimerWheel(runtime),
  },
): Upstream {
  const origins = new Map<string, Connections>();
  const routes = new WeakMap<Provider, Route>();
  const keys = new WeakMap<Provider, string>();
  const buffers = new BufferPool();
  const serviceRoom = budget.roomOf(SERVICE);
  const usersRoom = budget.roomOf(USERS_PROVIDERS);
  const parts = { buffers, runtime, timerWheel };
  const guardedLimits: AnswerLimits = {
    maxWholeBytes: Math.min(limits.maxWholeBytes, limits.maxGuardedBytes),
    get maxAnswerBytes() {
      return Math.min(limits.maxAnswerBytes, MAX_GUARDED_ANSWER_BYTES);
    },
  };

  function connect(url: URL, guarded: boolean): Connections {
    const refusal = guarded ? guard.refusal(url.origin) : null;
    if (refusal !== null) return noConnections(refusal);
    const lookup = guarded ? guard.lookup : null;
    return url.protocol === "https:"
      ? secureConnections(url.origin, limits, lookup)
      : plainConnections(url, { limits, runtime, lookup, buffers });
  }

  /** The key of the connections that a provider's requests take. */
  function keyOf(provider: Provider): string {
    const key = keys.get(provider) ?? originOf(provider);
    keys.set(provider, key);
    return key;
  }

  function routeTo(provider: Provider): Route {
    const known = routes.get(provider);
    if (known !== undefined && origins.get(known.origin) === known.connections) return known;
    const url = new URL(provider.url ?? "");
    const origin = keyOf(provider);
    const connections = origins.get(origin) ?? connect(url, provider.guarded);
    origins.set(origin, connections);
    const headers = Object.entries({
      "content-type": "application/json",
      accept: "application/json",
      "user-agent": "svc",
      ...lowerCased(provider.headers),
    });
    const route = {
      origin,
      connections,
      ...connections.prepare(url.pathname + url.search, headers),
    };
    routes.set(provider, route);
    return route;
  }

  return {
    send(outgoing, listener) {
      const { provider, mayStream, body: bytes, idStart, idEnd } = outgoing;
      const { send, sendProbe, connections } = routeTo(provider);
      const body = { bytes, id: runtime.wireId(), idStart, idEnd };
      const room = outgoing.room ?? (provider.guarded ? usersRoom : serviceRoom);
      const expected = {
        wireId: body.id,
        mayStream,
        room,
        deadlineMs: outgoing.deadlineMs ?? LONGEST_DEADLINE_MS,
        distrust: connections.distrust,
      };
      const attempt = new HttpDispatch(
        expected,
        listener,
        provider.guarded ? guardedLimits : limits,
        parts,
      );
      attempt.queued = !connections.isFree();
      if (outgoing.isProbe === true) sendProbe(body, attempt);
      else send(body, attempt);
      return attempt;
    },
    isFree: (provider) => routeTo(provider).connections.isFree(),
    retain(providers) {
      const used = new Set(providers.filter((it) => it.url !== null).map(keyOf));
      for (const [origin, connections] of origins) {
        if (used.has(origin)) continue;
        origins.delete(origin);
        connections.retire();
      }
    },
    async close() {
      await Promise.all([...origins.values()].map((it) => it.destroy()));
      origins.clear();
    },
  };
}

/**
 * Where a provider is; users' providers are elsewhere than configured ones, also at the same place.
 */
function originOf({ url, guarded }: Provider): string {
  const { origin } = new URL(url ?? "");
  return guarded ? `guarded ${origin}` : origin;
}

interface Route extends Ways {
  readonly origin: string;
  readonly connections: Connections;
}

/** How a request is sent, and how one that asks whether the provider is there. */
interface Ways {
  readonly send: Send;
  readonly sendProbe: Send;
}

type Send = (body: RequestBody, handler: HttpDispatch) => void;

/** Connections to one origin, however they are made. */
interface Connections {
  /** The ways to send requests with this path and these headers. */
  prepare(path: string, headers: readonly (readonly [name: string, value: string])[]): Ways;
  /** Whether a request would not have to wait for another one's answer. */
  isFree(): boolean;
  /**
   * An answer came that belongs to something else: no later request takes the connection that it
   * came over.
   */
  readonly distrust: () => void;
  /** Nobody sends here any more: what is under way may end. */
  retire(): void;
  destroy(): Promise<void>;
}

/** Nowhere to connect: every request fails before anything is sent. */
function noConnections(refusal: Error): Connections {
  const send: Send = (_, handler) => queueMicrotask(() => handler.onResponseError(null, refusal));
  return {
    prepare: () => ({ send, sendProbe: send }),
    isFree: () => true,
    distrust() {},
    retire() {},
    async destroy() {},
  };
}

/** What plain connections need besides an address; `lookup` null = node's own. */
interface PlainParts {
  readonly limits: HttpLimits;
  readonly runtime: Runtime;
  readonly lookup: LookupFunction | null;
  readonly buffers: BufferPool;
}

function plainConnections(url: URL, { limits, runtime, lookup, buffers }: PlainParts): Connections {
  const host = bareHost(url.hostname);
  const { connectionsPerOrigin: connections, maxWaiting: queue, connectTimeoutMs } = limits;
  const origin = createOrigin({
    host,
    port: Number(url.port || "80"),
    connections,
    queue,
    connectTimeoutMs,
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
    // The connection itself has asked what its answer is, and has ended.
    distrust() {},
    retire: () => origin.retire(),
    async destroy() {
      origin.destroy();
    },
  };
}

// Timeouts are the router's: undici's own are off, so that there is one clock. 30 s of idle
// keep-alive, less where the node announces less.
function secureConnections(
  origin: string,
  limits: HttpLimits,
  lookup: LookupFunction | null,
): Connections {
  /**
   * Requests that are under way or wait. Over HTTP/2 many share a connection; the bound is the
   * same.
   */
  let out = 0;
  const makePool = (connections: number): Pool =>
    new Pool(origin, {
      connections,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 30_000,
      keepAliveMaxTimeout: 120_000,
      connectTimeout: limits.connectTimeoutMs,
      ...(lookup === null ? {} : { connect: { lookup } }),
    });
  const closing = new Set<Pool>();
  /** For probes while all connections are in use; null = none was needed. */
  let probes: Pool | null = null;
  let pool = makePool(limits.connectionsPerOrigin);
  let retired = false;
  const close = (old: Pool): void => {
    closing.add(old);
    old.close().then(
      () => closing.delete(old),
      () => closing.delete(old),
    );
  };
  const isFree = (): boolean => out < limits.connectionsPerOrigin;
  return {
    prepare(path, headers) {
      const flat = headers.flat();
      const requestOf = ({
        bytes,
        id,
        idStart,
        idEnd,
      }: RequestBody): Dispatcher.DispatchOptions => {
        return {
          path,
          method: "POST",
          headers: flat,
          body: withWireId({ body: bytes, idStart, idEnd }, id),
        };
      };
      const send: Send = (body, handler) => {
        if (out >= limits.connectionsPerOrigin + limits.maxWaiting)
          return handler.onResponseError(null, coded("no connection is free", "EPOOL"));
        out++;
        handler.onOver = () => void out--;
        pool.dispatch(requestOf(body), handler);
      };
      const sendProbe: Send = (body, handler) => {
        if (isFree()) return send(body, handler);
        probes ??= makePool(PROBE_CONNECTIONS);
        probes.dispatch(requestOf(body), handler);
      };
      return { send, sendProbe };
    },
    isFree,
    // Nobody outside undici can tell which connection an answer came over: what is under way ends
    // as it may, and the next request takes a new one.
    distrust() {
      if (retired) return;
      close(pool);
      pool = makePool(limits.connectionsPerOrigin);
    },
    retire() {
      retired = true;
      close(pool);
      if (probes !== null) close(probes);
    },
    async destroy() {
      retired = true;
      await Promise.all([pool, probes, ...closing].map((it) => it?.destroy()));
    },
  };
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}
