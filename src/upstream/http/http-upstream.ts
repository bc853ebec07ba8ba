// Providers over HTTP: the connections and headers of each request. One pool per origin, shared by
// all profiles that name it. Users' providers have separate pools, so that none of them gets a
// connection whose address was not checked.

import { PASSED_HEADER, passedOn } from "../../core/passed-services.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { writeBatch } from "../../core/rpc/wire-request.ts";
import type { Runtime } from "../../runtime.ts";
import { MemoryBudget, SERVICE, USERS_PROVIDERS } from "../memory-budget.ts";
import { type Allowance, type Shares, type ShareUse, WHOLE_SHARES } from "../shares.ts";
import { SsrfGuard } from "../ssrf-guard.ts";
import { TimerWheel } from "../timer-wheel.ts";
import type {
  AnswerListener,
  BatchListener,
  BatchUpstream,
  Dispatch,
  MemoryShare,
  OutgoingRequest,
  Upstream,
} from "../transport.ts";
import { BufferPool } from "./buffer-pool.ts";
import {
  type ConnectionLimits,
  type Connections,
  noConnections,
  type Send,
} from "./connections.ts";
import { type AnswerLimits, type AnswerParts, HttpDispatch } from "./dispatch.ts";
import { HttpBatch } from "./http-batch.ts";
import { coded } from "./http1-connection.ts";
import { Origin } from "./origin.ts";
import type { OnHandshake } from "./tls-client.ts";
import { UndiciConnections } from "./undici-connections.ts";

/** Bounds of the HTTP transport. */
export interface HttpLimits extends AnswerLimits, ConnectionLimits {
  /** Longest answer of a user's provider that is held in one piece. */
  readonly maxGuardedBytes: number;
}

/** The bounds used unless a test tightens them. */
export const HTTP_LIMITS: HttpLimits = {
  connectionsPerOrigin: 128,
  maxWaiting: 10_000,
  connectTimeoutMs: 5_000,
  maxAnswerBytes: 1_073_741_824,
  maxWholeBytes: 134_217_728,
  maxGuardedBytes: 33_554_432,
};

/** Dependencies of the transport, and the client that it uses. */
export interface HttpParts {
  readonly budget: MemoryBudget;
  readonly timerWheel: TimerWheel;
  /** The client; absent = `own`. */
  readonly client?: "own" | "undici";
  /** Called after each TLS handshake of the client `own`. */
  readonly onHandshake?: OnHandshake;
  /** Called with the number of pipelined requests that the client `own` sends again. */
  readonly onAgain?: (requests: number) => void;
  /** Divides connections between workers; absent = this process is the whole service. */
  readonly shares?: Shares;
  /** Memory for answers; left out = its own. */
  readonly buffers?: BufferPool;
  /**
   * What requests to providers with limits of their own, or with batches, pass first; left out =
   * they are sent as they come.
   */
  readonly limited?: (direct: BatchUpstream) => Pick<Upstream, "send">;
}

/** Longest answer of a user's provider. */
const MAX_GUARDED_ANSWER_BYTES = 67_108_864;
const LONGEST_DEADLINE_MS = 45_000;

/** How requests to one provider are sent. */
interface Route {
  readonly connections: Connections;
  readonly send: Send;
}

/** Reaches providers by their `url`. */
export class HttpUpstream implements Upstream {
  readonly #runtime: Runtime;
  readonly #limits: HttpLimits;
  readonly #guard: SsrfGuard;
  readonly #parts: HttpParts;
  readonly #origins = new Map<string, Connections>();
  /** Anew whenever an origin is given up. */
  #routes = new WeakMap<Provider, Route>();
  readonly #answerParts: AnswerParts;
  readonly #guardedLimits: AnswerLimits;
  readonly #serviceRoom: MemoryShare;
  readonly #usersRoom: MemoryShare;
  readonly #limited: Pick<Upstream, "send"> | null;

  constructor(
    runtime: Runtime,
    limits: HttpLimits = HTTP_LIMITS,
    guard: SsrfGuard = new SsrfGuard(),
    parts: HttpParts = {
      budget: MemoryBudget.unbounded(),
      timerWheel: new TimerWheel(runtime),
    },
  ) {
    const { budget, timerWheel, buffers = new BufferPool(), limited } = parts;
    this.#runtime = runtime;
    this.#limits = limits;
    this.#guard = guard;
    this.#parts = parts;
    this.#answerParts = { buffers, runtime, timerWheel };
    this.#serviceRoom = budget.roomOf(SERVICE);
    this.#usersRoom = budget.roomOf(USERS_PROVIDERS);
    const send = this.#send.bind(this);
    this.#limited = limited?.({ send, sendBatch: this.#sendBatch.bind(this) }) ?? null;
    this.#guardedLimits = {
      maxWholeBytes: Math.min(limits.maxWholeBytes, limits.maxGuardedBytes),
      get maxAnswerBytes() {
        return Math.min(limits.maxAnswerBytes, MAX_GUARDED_ANSWER_BYTES);
      },
    };
  }

  send(outgoing: OutgoingRequest, listener: AnswerListener): Dispatch {
    const { budget, batch } = outgoing.provider;
    const isPlain = budget === null && (batch === null || outgoing.mayShare !== true);
    return isPlain || this.#limited === null
      ? this.#send(outgoing, listener)
      : this.#limited.send(outgoing, listener);
  }

  #send(outgoing: OutgoingRequest, listener: AnswerListener): Dispatch {
    const { provider, mayStream, body: bytes, idStart, idEnd, passed = [] } = outgoing;
    const { send, connections } = this.#routeTo(provider, passed);
    const body = { bytes, id: this.#runtime.wireId(), idStart, idEnd };
    const room = outgoing.room ?? (provider.guarded ? this.#usersRoom : this.#serviceRoom);
    const expected = {
      wireId: body.id,
      mayStream,
      room,
      deadlineMs: outgoing.deadlineMs ?? LONGEST_DEADLINE_MS,
      distrust: connections.distrust,
    };
    const limits = provider.guarded ? this.#guardedLimits : this.#limits;
    const dispatch = new HttpDispatch(expected, listener, limits, this.#answerParts);
    dispatch.queued = !connections.isFree();
    const mayPipeline = provider.pipelining && outgoing.mayShare === true;
    const use = mayPipeline ? "pipelined" : "alone";
    send(body, dispatch, outgoing.isProbe === true ? "probe" : use);
    return dispatch;
  }

  #sendBatch(requests: readonly OutgoingRequest[], listener: BatchListener): Dispatch {
    const [first] = requests;
    if (first === undefined) throw new Error("a batch has calls");
    const { provider } = first;
    const { send, connections } = this.#routeTo(provider);
    const wireIds = requests.map(() => this.#runtime.wireId());
    const body = { bytes: writeBatch(requests, wireIds), id: "", idStart: 0, idEnd: 0 };
    const { maxAnswerBytes } = provider.guarded ? this.#guardedLimits : this.#limits;
    const expected = {
      wireIds,
      mayBorrow: requests.map(({ mayStream }) => mayStream),
      room: provider.guarded ? this.#usersRoom : this.#serviceRoom,
      maxAnswerBytes,
      distrust: connections.distrust,
    };
    const dispatch = new HttpBatch(expected, listener, this.#answerParts);
    dispatch.queued = !connections.isFree();
    send(body, dispatch, "alone");
    return dispatch;
  }

  isFree(provider: Provider): boolean {
    return this.#routeTo(provider).connections.isFree();
  }

  retain(providers: readonly Provider[]): void {
    const used = new Set(providers.filter(({ url }) => url !== null).map(originKey));
    for (const [origin, connections] of this.#origins) {
      if (used.has(origin)) continue;
      this.#origins.delete(origin);
      this.#routes = new WeakMap();
      connections.drain();
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#origins.values()].map((connections) => connections.destroy()));
    this.#origins.clear();
    this.#routes = new WeakMap();
  }

  #routeTo(provider: Provider, passed: readonly string[] = []): Route {
    const known = this.#routes.get(provider);
    if (known !== undefined && passed.length === 0) return known;
    const url = new URL(provider.url ?? "");
    const origin = originKey(provider);
    const connections = this.#origins.get(origin) ?? this.#connect(url, origin, provider.guarded);
    this.#origins.set(origin, connections);
    const headers = Object.entries({
      "content-type": "application/json",
      accept: "application/json",
      "user-agent": "svc",
      ...lowerCased(provider.headers),
      ...(provider.guarded ? { [PASSED_HEADER]: passedOn(passed, this.#guard.mark) } : {}),
    });
    const route = { connections, send: connections.prepare(url.pathname + url.search, headers) };
    if (passed.length === 0) this.#routes.set(provider, route);
    return route;
  }

  #connect(url: URL, origin: string, guarded: boolean): Connections {
    const { client, shares = WHOLE_SHARES } = this.#parts;
    const [limits, guard] = [this.#limits, this.#guard];
    const refusal = guarded ? guard.refusal(url.origin) : null;
    if (refusal !== null) return noConnections(refusal);
    const lookup = guarded ? guard.lookup : null;
    const key = `connections ${guarded ? "guarded " : ""}${url.origin}`;
    const shareOf = (use: ShareUse): Allowance => shares.of(key, limits.connectionsPerOrigin, use);
    const parts = { limits, lookup, shareOf };
    if (client === "undici") return new UndiciConnections(url.origin, parts);
    const successor = (): Connections => {
      // The provider was removed meanwhile.
      if (this.#origins.get(origin) !== own) return noConnections(coded("closed", "ECLOSED"));
      // First, since a share belongs to one pool at a time.
      own.drain();
      const next = new UndiciConnections(url.origin, parts, true);
      this.#origins.set(origin, next);
      this.#routes = new WeakMap();
      return next;
    };
    const { buffers } = this.#answerParts;
    const { onHandshake = () => {}, onAgain = () => {} } = this.#parts;
    const all = { ...parts, runtime: this.#runtime, buffers, successor, onHandshake, onAgain };
    const own = new Origin(url, all);
    return own;
  }
}

/** Users' providers have separate connections from configured ones, even to the same origin. */
function originKey({ url, guarded }: Provider): string {
  const { origin } = new URL(url ?? "");
  return guarded ? `guarded ${origin}` : origin;
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}
