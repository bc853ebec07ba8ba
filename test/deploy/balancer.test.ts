// HAProxy with the configuration of deploy/, in front of two real nodes: a node that drains gets no
// more calls, no call fails, and WebSockets pass. Skipped where the machine has no HAProxy.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { configText, type Service, startService } from "../fakes/service.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const FILE = join(import.meta.dirname, "../../deploy/haproxy.cfg");
const HAS_HAPROXY = spawnSync("haproxy", ["-v"]).status === 0;
const CALL = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };

/** The deployed configuration, for ports of this machine. */
function configurationFor(port: number, nodes: readonly number[]): string {
  const text = readFileSync(FILE, "utf8")
    .replace("maxconn 20000", "maxconn 200")
    .replace(/^resolvers docker\n(?: .*\n)+/m, "")
    .replace(/ resolvers docker init-addr libc,none/, "")
    // A machine that is busy with other tests answers late: that ends no node here.
    .replace("timeout tunnel 1h", "timeout tunnel 1h\n  timeout check 60s")
    .replace(/^ {2}bind :8080$/m, `  bind 127.0.0.1:${port}`);
  const servers = nodes.map((node, at) => `  server node${at + 1} 127.0.0.1:${node}\n`).join("");
  return text.replace(/(?: {2}server node\d .*\n)+/, servers).replace(" port 4000 check", " check");
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : assert.fail();
}

async function startBalancer(t: TestContext, nodes: readonly Service[]): Promise<string> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "svc-balancer-"));
  const file = join(folder, "haproxy.cfg");
  const ports = nodes.map((node) => node.port);
  writeFileSync(file, configurationFor(port, ports));
  const child = spawn("haproxy", ["-db", "-f", file], { stdio: "ignore" });
  const ended = once(child, "exit");
  t.after(async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true });
  });
  return `http://127.0.0.1:${port}`;
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
  skip: HAS_HAPROXY ? false : "no haproxy on this machine",
  timeout: 240_000,
}, async (t) => {
  const upstreams = await Promise.all([scriptedUpstream(), scriptedUpstream()]);
  const nodes = await Promise.all(
    upstreams.map(({ url }) => startService(configText([{ id: "a", url }]))),
  );
  t.after(() => Promise.all([...nodes, ...upstreams].map((it) => it.close())));
  await Promise.all(nodes.map((node) => node.probed()));
  const url = await startBalancer(t, nodes);
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
