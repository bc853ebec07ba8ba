// The dashboard as served: locked down, self-contained, and reading no field that the endpoints do
// not have. How it looks is for eyes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { z } from "zod";
import { FAILOVER_REASONS, type StreamReport } from "../../src/upstream/stream/subscriber.ts";
import type { SocketReport } from "../../src/upstream/transport.ts";
import { operatorUsage } from "../../src/web/contract/schemas/instance.ts";
import { configText, type Service, startService } from "../fakes/service.ts";
import { type SocketUpstream, socketUpstream } from "../fakes/socket-upstream.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

/** Fields without an underscore that the page reads; those with one are found in its script. */
const WORDS =
  "chains name ready reasons version cluster enabled status profiles profile providers id " +
  "transports transport calls share cordoned p50 p95 p99 probe methods method age_ms " +
  "limits limit rps concurrency daily monthly left agreed missing surplus socket state opened subscriptions open subscribers notifications " +
  "failovers ended streams kind pinned events " +
  "from to totals cu usd hour";

/** What the endpoints may say; the compiler knows whether one is missing. */
const STREAM_STATES: Record<StreamReport["state"], true> = {
  opening: true,
  live: true,
  recovering: true,
};
const SOCKET_STATES: Record<SocketReport["state"], true> = {
  idle: true,
  connecting: true,
  open: true,
  waiting: true,
};

const OPERATOR = "operator-operator-operator";

let upstream: ScriptedUpstream;
let sockets: SocketUpstream;
let client: WebSocket;
let service: Service;
let dataDir = "";
let page = "";

before(async () => {
  upstream = await scriptedUpstream();
  sockets = await socketUpstream();
  const limits = { rps: 100, concurrency: 100, daily: 1_000, monthly: 10_000 };
  const provider = { id: "a", url: upstream.url, ws_url: sockets.url, limits };
  dataDir = mkdtempSync(join(tmpdir(), "svc-dashboard-"));
  service = await startService(
    configText([provider], { server: { port: 0, operator_token: OPERATOR }, data_dir: dataDir }),
  );
  await service.probed();
  client = await subscriber();
  page = (await service.get("/dashboard")).text;
});

after(async () => {
  client.terminate();
  await service.close();
  await sockets.close();
  await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test("the page is HTML that may load nothing, and talk to its own instance only", async () => {
  const { status, headers } = await service.get("/dashboard");
  assert.equal(status, 200);
  assert.match(headers.get("content-type") ?? "", /^text\/html; charset=utf-8$/);
  const policy = new Set((headers.get("content-security-policy") ?? "").split(/;\s*/));
  for (const rule of [
    "default-src 'none'",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ])
    assert.ok(policy.has(rule), rule);
});

test("the page is self-contained, and the instance's root leads to it", async () => {
  assert.doesNotMatch(page, /\b(src|href)\s*=\s*["']?(https?:)?\/\/|@import|url\(/i);
  const root = await fetch(service.url, { redirect: "manual" });
  assert.equal(root.headers.get("location"), "/dashboard");
});

test("a string of a provider can never become markup", () => {
  assert.doesNotMatch(
    page,
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|setHTML|srcdoc|\beval\b|new Function/,
  );
});

test("every field that the page reads exists in what the endpoints answer", async () => {
  const { status } = await service.post("/rpc/profile/team/ethereum", {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_gasPrice",
    params: [],
  });
  assert.equal(status, 200);
  const paths = ["/api/chains", "/api/ready", "/api/health", "/api/metrics/ethereum"];
  const answers = (await Promise.all(paths.map((path) => service.get(path)))).map(
    ({ json }) => json,
  );
  const authorization = `Bearer ${OPERATOR}`;
  const told = await fetch(`${service.url}/api/metrics/ethereum`, { headers: { authorization } });
  answers.push(JSON.parse(await told.text()));
  const known = new Set(
    [...answers, z.toJSONSchema(operatorUsage)].flatMap((it) => [...fieldsOf(it)]),
  );
  const read = fieldsRead(script());
  for (const field of [
    "circuit_breaker_state",
    "rate_limited_for_ms",
    "uptime_seconds",
    "by_hour",
    "key_prefix",
  ])
    assert.ok(read.has(field), `the test finds ${field} in the script`);
  const missing = [...read, ...WORDS.split(" ")].filter((field) => !known.has(field));
  assert.deepEqual(missing, []);
});

test("every state and every reason that the endpoints may tell has its words", () => {
  for (const [table, names] of Object.entries({
    STREAMS: Object.keys(STREAM_STATES),
    SOCKETS: Object.keys(SOCKET_STATES),
    FAILOVERS: FAILOVER_REASONS,
  })) {
    const entries = new RegExp(`const ${table} = {([^}]*)}`).exec(script())?.[1] ?? "";
    assert.deepEqual(
      [...entries.matchAll(/(\w+):/g)].map(([, name]) => name).sort(),
      [...names].sort(),
      table,
    );
  }
});

test("every field listed above is still read", () => {
  const unread = WORDS.split(" ").filter(
    (field) => !new RegExp(`[.{,]\\s*${field}\\b`).test(script()),
  );
  assert.deepEqual(unread, []);
});

/** A socket at the address that the page offers, once it is subscribed. */
async function subscriber(): Promise<WebSocket> {
  const ws = new WebSocket(`${service.url.replace(/^http/, "ws")}/ws/rpc/profile/team/ethereum`);
  await once(ws, "open");
  ws.send(
    JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "eth_subscribe",
      params: ["newPendingTransactions"],
    }),
  );
  const [answer] = await once(ws, "message");
  assert.match(String(answer), /"result":"0x/);
  return ws;
}

function script(): string {
  const text = /<script type="module">([\s\S]*)<\/script>/.exec(page)?.[1] ?? "";
  assert.notEqual(text, "");
  return text;
}

/** Names with an underscore that are read as a property or taken out of one. */
function fieldsRead(text: string): Set<string> {
  return new Set(
    [...text.matchAll(/[.{,]\s*([a-z]+(?:_[a-z]+)+)\b(?!\s*:)/g)].flatMap(([, name]) => name ?? []),
  );
}

function* fieldsOf(value: unknown): Generator<string> {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value)) yield key;
    yield* fieldsOf(inner);
  }
}
