// Many callers connect at the same moment, as after a restart of a balancer: none of them has to
// try again, which TCP does after a second. The service stands still meanwhile, so that all of them
// wait at once, however fast it accepts.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";
import { childrenOf, isStopped } from "../fakes/worker-load.ts";

const CALLERS = 2_500;
const LIMIT_MS = 60_000;
const SOMAXCONN = "/proc/sys/net/core/somaxconn";

for (const workers of [1, 2])
  test(`${CALLERS} callers connect at once to ${workers} workers and are all answered`, {
    skip: whyNot(),
    timeout: LIMIT_MS,
  }, async (t) => {
    const text = configText([{ id: "a", url: "http://127.0.0.1:9" }], {
      server: { port: 0, workers },
    });
    const service = await startProcess(t, text);
    const processes = [service.pid, ...(workers === 1 ? [] : childrenOf(service.pid))];
    for (const pid of processes) stop(t, pid);
    const sockets = Array.from({ length: CALLERS }, () => open(t, new URL(service.url)));
    await Promise.all(sockets.map(({ connected }) => connected));
    for (const pid of processes) process.kill(pid, "SIGCONT");
    const answers = await Promise.all(sockets.map(({ socket }) => answerOn(socket)));
    assert.equal(answers.filter((answer) => answer.startsWith("HTTP/1.1 200 ")).length, CALLERS);
  });

/** Where the kernel lets fewer wait, nobody's listener can hold them. */
function whyNot(): string | false {
  if (process.platform !== "linux") return "only Linux says how many connections may wait";
  const most = Number(readFileSync(SOMAXCONN, "utf8"));
  return most >= CALLERS ? false : `${SOMAXCONN} is ${most}`;
}

/** Stops a process; killed when the test is over, since one that is stopped would stay. */
function stop(t: TestContext, pid: number): void {
  process.kill(pid, "SIGSTOP");
  t.after(() => {
    if (isStopped(pid)) process.kill(pid, "SIGKILL");
  });
}

function open(t: TestContext, { hostname, port }: URL) {
  const socket = connect(Number(port), hostname);
  t.after(() => void socket.destroy());
  const { promise: connected, resolve, reject } = Promise.withResolvers<void>();
  socket.once("connect", resolve).once("error", reject);
  return { socket, connected };
}

/** The first bytes of the answer to a request that any instance answers. */
function answerOn(socket: Socket): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.once("data", (bytes) => resolve(bytes.toString("latin1"))).once("close", reject);
  socket.write("GET /api/health HTTP/1.1\r\nHost: svc\r\n\r\n");
  return promise;
}
