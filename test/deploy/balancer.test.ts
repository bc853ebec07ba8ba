// HAProxy with the configuration of deploy/. In front of real nodes: a node that drains gets no
// more calls, no call fails, WebSockets pass, nodes that are not ready serve where no other is, and
// metrics are not shown. In front of nodes that answer as told: what their answers do to them.
// Skipped where the machine has no HAProxy.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { type Balancer, hasBalancer, startBalancer } from "../fakes/balancer.ts";
import { configText, startService } from "../fakes/service.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const ON_HAPROXY = {
  skip: hasBalancer() ? false : "no haproxy on this machine",
  timeout: 240_000,
};
const CALL = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };

/** Starts the balancer in front of nodes, until the end of a test. */
async function balancerOf(
  t: TestContext,
  nodes: readonly number[],
  edit = (text: string): string => text,
): Promise<Balancer> {
  const balancer = await startBalancer(nodes, (text) =>
    // A machine that is busy with other tests answers late: that ends no node here.
    edit(text.replace("timeout tunnel 1h", "timeout tunnel 1h\n  timeout check 60s")),
  );
  t.after(() => balancer.close());
  return balancer;
}

/** A node that answers as told: its readiness, and everything else; it always lives. */
async function scriptedNode(t: TestContext) {
  const says = { ready: 200, calls: 200 };
  let calls = 0;
  const server = createHttpServer((request, response) => {
    request.resume();
    const { url = "" } = request;
    if (url.startsWith("/api/"))
      return void response.writeHead(url === "/api/ready" ? says.ready : 200).end();
    calls++;
    response.writeHead(url === "/rpc/broken" ? 500 : says.calls).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : assert.fail();
  return { port, says, calls: () => calls };
}

async function statusOf(url: string): Promise<number> {
  const answer = await fetch(`${url}/rpc/ethereum`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(CALL),
  }).catch(() => null);
  await answer?.text();
  return answer?.status ?? 0;
}

/** Resolves once a condition holds; the test's own time bounds it. */
async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
}

test("calls and WebSockets pass the balancer, and no call fails while a node drains", {
  ...ON_HAPROXY,
}, async (t) => {
  const upstreams = await Promise.all([scriptedUpstream(), scriptedUpstream()]);
  const nodes = await Promise.all(
    upstreams.map(({ url }) => startService(configText([{ id: "a", url }]))),
  );
  t.after(() => Promise.all([...nodes, ...upstreams].map((it) => it.close())));
  await Promise.all(nodes.map((node) => node.probed()));
  const { url } = await balancerOf(t, ports(nodes));
  const served = (): readonly number[] => upstreams.map(({ asked }) => asked.length);
  await until(async () => (await statusOf(url)) === 200);
  await until(async () => {
    await Promise.all(Array.from({ length: 8 }, () => statusOf(url)));
    return served().every((count) => count > 0);
  });

  const socket = new WebSocket(`${url.replace("http", "ws")}/ws/rpc/ethereum`);
  t.after(() => socket.terminate());
  await once(socket, "open");
  socket.send(JSON.stringify(CALL));
  const [message] = await once(socket, "message");
  assert.equal(JSON.parse(String(message)).result, "0x1");

  let isOver = false;
  const statuses = new Map<number, number>();
  const callers = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const status = await statusOf(url);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  });
  await nodes[0]?.drain();
  const before = served();
  await until(() => (served()[1] ?? 0) > (before[1] ?? 0) + 50);
  isOver = true;
  await Promise.all(callers);
  assert.deepEqual([...statuses.keys()], [200]);
  assert.equal(served()[0], before[0], "the node that drained got no more calls");
});

test(
  "nodes that are ready are preferred, and all that live serve while none is",
  ON_HAPROXY,
  async (t) => {
    const upstream = await scriptedUpstream();
    const ready = await startService(configText([{ id: "a", url: upstream.url }]));
    const unready = await startService(configText([{ id: "a", url: "http://127.0.0.1:1" }]));
    t.after(() => Promise.all([ready, unready, upstream].map((it) => it.close())));
    await ready.probed();
    const { url, column } = await balancerOf(t, [ready.port, unready.port]);
    await until(async () => /^DOWN/.test((await column("ready", "status"))[1] ?? ""));
    await until(async () => (await column("living", "check_status"))[1] === "L7OK");
    for (let n = 0; n < 20; n++) assert.equal(await statusOf(url), 200);
    await ready.drain();
    await until(async () => (await column("ready", "status")).every((it) => /^DOWN/.test(it)));
    const answer = await fetch(`${url}/api/health`);
    assert.equal(answer.status, 200, "of the node that is not ready");
    const call = await fetch(`${url}/rpc/ethereum`, { method: "POST", body: JSON.stringify(CALL) });
    assert.match(await call.text(), /"jsonrpc"/, "in the service's own words");
  },
);

test("a node whose answers fail is asked at once whether it is ready", ON_HAPROXY, async (t) => {
  const nodes = await Promise.all([scriptedNode(t), scriptedNode(t)]);
  // Its next check would come after an hour.
  const { url, column } = await balancerOf(t, ports(nodes), (text) =>
    text.replaceAll("check inter 2s", "check inter 1h"),
  );
  await until(async () => (await column("ready", "check_status")).every((it) => it === "L7OK"));
  const [failing, other] = nodes;
  if (failing === undefined || other === undefined) return assert.fail();
  Object.assign(failing.says, { ready: 503, calls: 503 });
  await until(async () => {
    await statusOf(url);
    return /^DOWN/.test((await column("ready", "status"))[0] ?? "");
  });
  const before = failing.calls();
  for (let n = 0; n < 20; n++) assert.equal(await statusOf(url), 200);
  assert.equal(failing.calls(), before);
});

test("a caller whose calls all fail takes no node out", ON_HAPROXY, async (t) => {
  const nodes = await Promise.all([scriptedNode(t), scriptedNode(t)]);
  const { url, column } = await balancerOf(t, ports(nodes));
  await until(async () => (await column("ready", "check_status")).every((it) => it === "L7OK"));
  for (let n = 0; n < 400; n++)
    assert.equal((await fetch(`${url}/rpc/broken`, { method: "POST" })).status, 500);
  assert.deepEqual(await column("ready", "chkdown"), ["0", "0"], "never taken out");
  const failed = await column("ready", "hrsp_5xx");
  assert.ok(
    failed.every((count) => Number(count) > 100),
    String(failed),
  );
});

test(
  "metrics of a node are not served through the balancer, the console's documents are",
  ON_HAPROXY,
  async (t) => {
    const upstream = await scriptedUpstream();
    const node = await startService(configText([{ id: "a", url: upstream.url }]));
    t.after(() => Promise.all([node, upstream].map((it) => it.close())));
    await node.probed();
    const { url, port } = await balancerOf(t, [node.port]);
    await until(async () => (await statusOf(url)) === 200);
    assert.match((await node.get("/metrics")).text, /^svc_requests_total/m);
    const targets = [
      "/metrics",
      "/metrics?a=1",
      "//metrics",
      "/./metrics",
      "/%6detrics",
      "metrics",
    ];
    targets.push("http://a.example/metrics", "HTTP://a.example/metrics", "http:///metrics");
    for (const target of targets) {
      const answer = await rawAnswer(port, target);
      assert.match(answer, /^HTTP\/1\.\d 40[04] /, target);
      assert.doesNotMatch(answer, /svc_/, target);
    }
    const document = await fetch(`${url}/api/metrics/ethereum`);
    assert.equal(document.status, 200, await document.text());
  },
);

const ports = (nodes: readonly { readonly port: number }[]): readonly number[] =>
  nodes.map(({ port }) => port);

/** The whole answer to a GET of a target that is sent as it is written. */
async function rawAnswer(port: number, target: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(`GET ${target} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n`);
  let text = "";
  for await (const chunk of socket) text += String(chunk);
  return text;
}
