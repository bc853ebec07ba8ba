// The web server over a router and subscriptions that the test holds in its hand, and raw clients
// that see every frame. Knows nothing of what a test is about.

import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { pino } from "pino";
import { WebSocket } from "ws";
import { methodTable } from "../../../src/core/rpc/method-table.ts";
import { Observer } from "../../../src/observe/observer.ts";
import { type Runtime, realRuntime } from "../../../src/runtime.ts";
import type { RouteRequest } from "../../../src/upstream/engine/call-context.ts";
import type { Router } from "../../../src/upstream/engine/router.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import { ProfileRegistry } from "../../../src/upstream/registry/profile-registry.ts";
import type { SubscribeRequest, Subscriber } from "../../../src/upstream/stream/subscriber.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { trustedProxiesOf } from "../../../src/web/http/client-address.ts";
import { Pages } from "../../../src/web/pages/routes.ts";
import { LegacyForms } from "../../../src/web/rpc/answers/answer-headers.ts";
import { SeenByCallers } from "../../../src/web/rpc/caller-view.ts";
import type { RpcParts } from "../../../src/web/rpc/parts.ts";
import { TargetResolver } from "../../../src/web/rpc/target.ts";
import { listen, type WebServer } from "../../../src/web/server/server.ts";
import { NO_FILTERS } from "../../fakes/filters.ts";
import { resultOutcome } from "../../fakes/outcome.ts";
import { WHOLE_RANGES } from "../../fakes/providers.ts";
import { fakeRoutedCall } from "../../fakes/routed-call.ts";
import { configOf, configText } from "../../fakes/service.ts";

/** A call that waits for the test to answer it. */
export interface WaitingCall {
  readonly request: RouteRequest;
  readonly answer: (json: string) => void;
  cancelled: boolean;
}

/** A subscription that some client asked for. */
export interface Asked {
  readonly request: SubscribeRequest;
  readonly subscriber: Subscriber;
  left: boolean;
}

export interface ClientSocketFixture {
  readonly port: number;
  readonly server: WebServer;
  readonly observer: Observer;
  readonly registry: ProfileRegistry;
  readonly budget: MemoryBudget;
  readonly calls: WaitingCall[];
  readonly asked: Asked[];
  /** True = calls are answered at once with their own parameters. */
  echo: boolean;
  readonly reload: (text: string) => void;
}

/** Starts the server; it is drained when the test ends. */
export async function createFixture(
  t: TestContext,
  limits: Record<string, unknown> = {},
  runtime: Runtime = realRuntime,
  text = textOf(limits),
): Promise<ClientSocketFixture> {
  let config = configOf(text);
  const observer = new Observer(pino({ level: "silent" }), runtime);
  const registry = new ProfileRegistry(config.chains, config.profiles, runtime, config.selection);
  const calls: WaitingCall[] = [];
  const asked: Asked[] = [];
  const budget = new MemoryBudget(() => config.limits);
  let ids = 0;
  const legacyForms = new LegacyForms(runtime, null);
  const rpc: RpcParts = {
    runtime,
    node: null,
    timerWheel: new TimerWheel(runtime),
    router: routerOf(runtime, calls, () => it.echo),
    observer,
    budget,
    opener: null,
    resolver: new TargetResolver(registry, observer),
    admission: null,
    legacyForms,
    compression: null,
    rpcPaywall: null,
    payPerCall: null,
    proxies: trustedProxiesOf([]),
    mark: "none",
    methods: () => methodTable([]),
    filters: NO_FILTERS,
    logs: () => WHOLE_RANGES,
    consistency: () => "off",
    marks: new SeenByCallers(),
    deadlineMs: () => 10_000,
    get limits() {
      return config.limits;
    },
  };
  const subscriptions = {
    open(request: SubscribeRequest, subscriber: Subscriber): () => void {
      const one: Asked = { request, subscriber, left: false };
      asked.push(one);
      return () => {
        one.left = true;
      };
    },
  };
  const pages = new Pages({
    service: null,
    uptimeBeforeMs: 0,
    region: "",
    runtime,
    registry,
    observer,
    budget,
    version: "0",
    node: null,
    publicNode: null,
    cluster: () => null,
    incidents: { stateOf: () => null, opened: null },
    metricsApart: false,
    documents: () => Promise.resolve({ get: () => undefined }),
    legacyForms,
    compression: null,
    methods: () => methodTable([]),
    isDraining: () => false,
    serves: () => ({ keys: true, some: true }),
    payments: () => null,
    sessions: () => null,
    ...NO_STREAMS,
  });
  const server = await listen(
    {
      runtime,
      limits: config.limits,
      fastPath: "auto",
      otherWorkers: null,
      rpc,
      subscriptions,
      page: (path) => pages.page(path),
      api: { serves: () => false, handle: () => {} },
      sessions: { callerOf: async () => null, operatorBy: () => false },
      isStatusPublic: () => true,
      originOf: () => ({
        address: "127.0.0.1",
        baseUrl: "http://x",
        isLocal: false,
        cookie: { form: null, id: null, isSameOrigin: false, isJson: false },
      }),
      requestId: () => `req-${++ids}`,
    },
    "127.0.0.1",
    0,
  );
  const reload = (next: string): void => {
    config = configOf(next);
    registry.replace(config.chains, config.profiles);
  };
  const it: ClientSocketFixture = {
    port: server.port,
    server,
    observer,
    registry,
    budget,
    calls,
    asked,
    echo: true,
    reload,
  };
  // Not awaited: the clients, which are cut after that, would otherwise be given time to say
  // goodbye.
  t.after(() => void server.drain());
  return it;
}

/** What the pages tell of providers' sockets: there are none. */
const NO_STREAMS = {
  subscriptions: { reports: () => [], counts: () => [], checks: () => [] },
  filters: { counts: () => [], unreadBytes: 0 },
  socketOf: () => ({ state: "idle", subscriptions: 0, opened: 0, strayFrames: 0 }) as const,
};

function textOf(limits: Record<string, unknown>): string {
  const providers = [{ id: "a", url: "http://a.test" }];
  return configText(providers, { limits: { drain_timeout_ms: 400, ...limits } });
}

function routerOf(
  runtime: Runtime,
  calls: WaitingCall[],
  echo: () => boolean,
): Pick<Router, "route"> {
  return {
    route(request, done) {
      const route = fakeRoutedCall({
        request,
        startedAtMs: runtime.now(),
        cancel() {
          one.cancelled = true;
          calls.splice(calls.indexOf(one), 1);
          return { sent: true, countedAsTimeout: false };
        },
      });
      const one: WaitingCall = {
        request,
        cancelled: false,
        answer(json) {
          calls.splice(calls.indexOf(one), 1);
          done({ outcome: resultOutcome(json), source: route.source }, route);
        },
      };
      calls.push(one);
      if (echo()) one.answer(JSON.stringify(JSON.parse(request.call.body.toString()).params));
      return route;
    },
  };
}

/** A client that keeps what it hears. */
export interface Client {
  readonly ws: WebSocket;
  /** The answer to the handshake. */
  readonly headers: IncomingMessage["headers"];
  /** Every text so far, as it came. */
  readonly texts: readonly string[];
  /** The next text not taken yet, as a value. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of any shape
  next(): Promise<any>;
  send(value: unknown): void;
  /** Code and reason of the close. */
  readonly closed: Promise<readonly [code: number, reason: string]>;
}

/** Opens a client; it is cut when the test ends. */
export async function open(
  t: TestContext,
  port: number,
  path = "/ws/rpc/1",
  options: WebSocket.ClientOptions = {},
): Promise<Client> {
  const ws = new WebSocket(`ws://127.0.0.1:${port}${path}`, options);
  t.after(() => ws.terminate());
  const texts: string[] = [];
  const wanted: (() => void)[] = [];
  let taken = 0;
  let headers: IncomingMessage["headers"] = {};
  ws.on("upgrade", (response) => {
    headers = response.headers;
  });
  ws.on("message", (data: Buffer) => {
    texts.push(data.toString());
    wanted.shift()?.();
  });
  const closed = new Promise<readonly [number, string]>((resolve) =>
    ws.on("close", (code, reason) => resolve([code, reason.toString()])),
  );
  await new Promise<void>((resolve, reject) => {
    ws.once("open", resolve);
    ws.once("error", reject);
  });
  ws.on("error", () => {});
  return {
    ws,
    get headers() {
      return headers;
    },
    texts,
    async next() {
      if (taken === texts.length) await new Promise<void>((resolve) => wanted.push(resolve));
      return JSON.parse(texts[taken++] ?? "null");
    },
    send: (value) => ws.send(typeof value === "string" ? value : JSON.stringify(value)),
    closed,
  };
}

/** A request with an id and these parameters. */
export function call(
  id: unknown,
  method = "eth_gasPrice",
  params: readonly unknown[] = [],
  more: Record<string, unknown> = {},
) {
  return { jsonrpc: "2.0", id, method, params, ...more };
}

/**
 * A bare connection after a WebSocket handshake, for frames that no library would send and clients
 * that do not read.
 */
export async function bare(t: TestContext, port: number, path = "/ws/rpc/1"): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  t.after(() => socket.destroy());
  socket.on("error", () => {});
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ` +
      `websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${"A".repeat(22)}==\r\n\r\n`,
  );
  await new Promise<void>((resolve) => socket.once("readable", resolve));
  socket.read();
  return socket;
}

/** A frame as a client sends it, masked with zeros. */
export function frame(opcode: number, payload: string | Buffer, fin = true): Buffer {
  const body = Buffer.from(payload);
  const first = (fin ? 0x80 : 0) | opcode;
  const size = body.length;
  const head =
    size < 126
      ? [first, 0x80 | size]
      : size < 65_536
        ? [first, 0xfe, size >> 8, size & 255]
        : [first, 0xff, 0, 0, 0, 0, size >>> 24, (size >> 16) & 255, (size >> 8) & 255, size & 255];
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), body]);
}
