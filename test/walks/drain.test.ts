// The end of the process: every accepted request is answered, nobody new is let in, the exit code
// is 0, and nothing is left behind.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { withHttpVariant } from "../fakes/http-variant.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { configText, PATIENT } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type Script, scriptedUpstream } from "../fakes/upstream.ts";

const slow: Script = ({ params }, reply) => void setTimeout(() => reply.result(`"${params}"`), 700);

function portOf({ url }: ServiceProcess): number {
  return Number(new URL(url).port);
}

/** Opens a connection that stays open, and collects what comes. */
function openConnection(
  port: number,
): Promise<{ readonly socket: Socket; readonly text: () => string }> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => resolve({ socket, text: () => text }));
    socket.on("data", (chunk) => (text += chunk.toString()));
    socket.on("error", reject);
  });
}

function rawPost(id: number): string {
  const body = `{"jsonrpc":"2.0","id":${id},"method":"eth_call","params":["${id}"]}`;
  return (
    `POST /rpc/1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ` +
    `${body.length}\r\n\r\n${body}`
  );
}

test(
  "fifty requests in flight at SIGTERM are all answered, new connections are refused, the exit " +
    "code is 0",
  async (t) => {
    const upstream = await scriptedUpstream(slow);
    t.after(() => upstream.close());
    const service = await startProcess(t, configText([{ id: "a", url: upstream.url }]));
    const calls = Array.from({ length: 50 }, (_, n) =>
      service.post("/rpc/1", { jsonrpc: "2.0", id: n, method: "eth_call", params: [`${n}`] }),
    );
    await until("all of them upstream", () => upstream.asked.length === 50);
    service.signal("SIGTERM");
    await until("the end of listening", () =>
      openConnection(portOf(service)).then(
        ({ socket }) => {
          socket.destroy();
          return false;
        },
        (error: unknown) => /ECONNREFUSED/.test(String(error)),
      ),
    );
    for (const [n, { status, text }] of (await Promise.all(calls)).entries()) {
      assert.deepEqual([status, text], [200, `{"jsonrpc":"2.0","id":${n},"result":"${n}"}`]);
    }
    assert.equal(await service.ended, 0);
    assert.ok(service.log().indexOf('"draining') < service.log().indexOf('"ended"'));
  },
);

test(
  "a request that comes on an open connection after SIGTERM is answered, and that connection " +
    "is then closed",
  async (t) => {
    const answers: (() => void)[] = [];
    const upstream = await scriptedUpstream(
      ({ params }, reply) => void answers.push(() => reply.result(`"${params}"`)),
    );
    t.after(() => upstream.close());
    const service = await startProcess(t, configText([{ id: "a", url: upstream.url }]));
    const first = await openConnection(portOf(service));
    const late = await openConnection(portOf(service));
    first.socket.write(rawPost(1));
    await until("the first request", () => upstream.asked.length === 1);
    service.signal("SIGTERM");
    await until("the drain", () => /draining/.test(service.log()));
    late.socket.write(rawPost(2));
    await until("the late request", () => upstream.asked.length === 2);
    for (const answer of answers) answer();
    for (const [n, { text }] of [first, late].entries()) {
      await until("the answer", () => text().endsWith(`"result":"${n + 1}"}`));
      assert.match(text(), /^HTTP\/1\.1 200 OK\r\n/);
    }
    assert.equal(await service.ended, 0);
    assert.match(late.text(), /connection: close/i);
  },
);

test("a long answer that is under way at SIGTERM arrives whole", async (t) => {
  const upstream = await scriptedUpstream(({ id }, reply) => {
    const answer = reply.begin(`{"jsonrpc":"2.0","id":${id},"result":"${"x".repeat(100_000)}`);
    setTimeout(() => {
      answer.write(`${"y".repeat(100_000)}"}`);
      answer.end();
    }, 800);
  });
  t.after(() => upstream.close());
  const service = await startProcess(t, configText([{ id: "a", url: upstream.url }]));
  const call = service.post("/rpc/1", { jsonrpc: "2.0", id: 1, method: "eth_call" });
  await until("the request", () => upstream.asked.length === 1);
  await sleep(100);
  service.signal("SIGTERM");
  assert.equal(JSON.parse((await call).text).result, "x".repeat(100_000) + "y".repeat(100_000));
  assert.equal(await service.ended, 0);
});

test("requests that outlast the drain time are given up, and the process still ends", async (t) => {
  const upstream = await scriptedUpstream(() => {});
  t.after(() => upstream.close());
  const service = await startProcess(
    t,
    configText([{ id: "a", url: upstream.url }], { limits: { drain_timeout_ms: 400 } }),
  );
  const call = service
    .post("/rpc/1", { jsonrpc: "2.0", id: 1, method: "eth_call" })
    .catch(() => "given up");
  await until("the request", () => upstream.asked.length === 1);
  service.signal("SIGTERM");
  assert.equal(await call, "given up");
  assert.equal(await service.ended, 0);
});

test("a signal that comes with the line that it serves ends it in order", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-signal-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "svc.yml");
  const text = configText([{ id: "a", url: "http://127.0.0.1:9" }], { data_dir: directory });
  writeFileSync(file, withHttpVariant(text));
  const main = new URL("../../src/main.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [main, "serve", "--config", file], {
    env: { ...process.env, SVC_WORKERS: "1" },
  });
  t.after(() => void child.kill("SIGKILL"));
  let log = "";
  child.stdout.on("data", (chunk: Buffer) => {
    const isServing = log.includes("svc is serving");
    log += chunk.toString();
    if (!isServing && log.includes("svc is serving")) child.kill("SIGTERM");
  });
  const [code, signal] = await once(child, "close");
  assert.deepEqual([code, signal], [0, null], log);
  assert.match(log, /"msg":"ended"/);
});

test("with local nodes running, the end of the service is the end of every node", {
  skip: process.platform !== "linux",
}, async (t) => {
  const service = await startProcess(t, JSON.stringify({ devnet: true, deadlines: PATIENT }));
  const { text } = await service.post("/rpc/local", {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_blockNumber",
  });
  assert.match(text, /"result":"0x/);
  const nodes = childrenOf(service.pid);
  assert.ok(nodes.length >= 3, `${nodes.length} children`);
  service.signal("SIGTERM");
  assert.equal(await service.ended, 0);
  await until("the end of the nodes", () => nodes.every((pid) => !isRunning(pid)));
});

function childrenOf(parent: number): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === parent)
    .map(Number);
}

function parentOf(pid: string): number | null {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]);
  } catch {
    return null;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
