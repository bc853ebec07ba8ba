// What a call costs over TLS by HTTP/1.1 with our own client, and by HTTP/2 with undici, to one
// server that speaks both: `node bin/svc.mjs --run bench/tls-protocols.ts`. The server is a process
// of its own; only the CPU of this one counts. Rounds are interleaved.
//
// With a name behind it, by which the server is reached over a path that delays or loses packets:
// latencies of calls that come by chance. The certificate is for 127.0.0.1 and `localhost`.
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { setDefaultCACertificates } from "node:tls";
import { writeRequest } from "../src/core/rpc/wire-request.ts";
import { realRuntime } from "../src/runtime.ts";
import { HTTP_LIMITS, HttpUpstream } from "../src/upstream/http/http-upstream.ts";
import { MemoryBudget } from "../src/upstream/memory-budget.ts";
import { SsrfGuard } from "../src/upstream/ssrf-guard.ts";
import { TimerWheel } from "../src/upstream/timer-wheel.ts";
import type { AnswerListener } from "../src/upstream/transport.ts";
import { fakeProvider } from "../test/fakes/providers.ts";
import { isRecord, startChild } from "./child.ts";
import { CERTIFICATE, KEY } from "./upstream.ts";

const SERVE = "serve";
const HERE = "127.0.0.1";
const CALLERS = 100;
const ROUNDS = 9;
const CALLS = 20_000;
const ANSWER_MS = 30_000;
const CALLS_A_SECOND = 1_000;
const ROUND_MS = 5_000;
const RESULT = `0x${"0".repeat(160)}`;

/** A provider that speaks both protocols; tells its port and how many connections it has had. */
function serve(): void {
  let connections = 0;
  const identity = { key: readFileSync(KEY), cert: readFileSync(CERTIFICATE), allowHTTP1: true };
  const server = createSecureServer(identity, (request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString("latin1")));
    request.on("end", () => {
      const id = /"id":(\d+)/.exec(body)?.[1];
      const answer = `{"jsonrpc":"2.0","id":${id},"result":"${RESULT}"}`;
      response.setHeader("content-length", answer.length);
      response.end(answer);
    });
  });
  server.on("secureConnection", () => connections++);
  server.listen(0, process.argv[3]);
  process.on("message", () => {
    const address = server.address();
    const port = address !== null && typeof address === "object" ? address.port : 0;
    process.send?.({ port, connections });
  });
  process.on("disconnect", () => process.exit(0));
}

/** Calls a provider and waits for its answer. */
type CallOnce = () => Promise<void>;

function callerOf(http: HttpUpstream, url: string): CallOnce {
  const provider = fakeProvider(0, { url });
  const request = { provider, ...writeRequest("eth_gasPrice", null), mayStream: true };
  return () =>
    new Promise((resolve, reject) => {
      const listener: AnswerListener = {
        result(body, _, pool) {
          pool?.reuse(body);
          resolve();
        },
        failed: ({ kind, message }) => reject(new Error(`${kind}: ${message}`)),
        stream: () => reject(new Error("the answer is short")),
        broken: reject,
      };
      http.send(request, listener);
    });
}

/** CPU of this process in µs for each of `CALLS` calls of callers who wait for their answers. */
async function cpuPerCall(call: CallOnce): Promise<number> {
  let begun = 0;
  const caller = async (): Promise<void> => {
    while (begun++ < CALLS) await call();
  };
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: CALLERS }, caller));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

/** Latencies in ms of calls that come by chance, for as long as a round takes. */
async function latencies(call: CallOnce): Promise<readonly number[]> {
  const took: number[] = [];
  const under: Promise<void>[] = [];
  const endMs = performance.now() + ROUND_MS;
  let nextMs = performance.now();
  while (nextMs < endMs) {
    const nowMs = performance.now();
    if (nextMs > nowMs) await sleep(nextMs - nowMs);
    else {
      under.push(call().then(() => void took.push(performance.now() - nowMs)));
      nextMs -= (Math.log(1 - Math.random()) * 1_000) / CALLS_A_SECOND;
    }
  }
  await Promise.all(under);
  return took;
}

/** One of the clients, with what was measured of it. */
interface Measured {
  readonly name: string;
  readonly call: CallOnce;
  readonly values: number[];
}

/** Measures each in turn. */
async function measure(
  clients: readonly Measured[],
  round: (call: CallOnce) => Promise<readonly number[]>,
): Promise<void> {
  for (let n = 0; n < ROUNDS; n++)
    for (const { call, values } of n % 2 === 0 ? clients : clients.toReversed())
      values.push(...(await round(call)));
}

async function compare(host: string | undefined): Promise<void> {
  setDefaultCACertificates([readFileSync(CERTIFICATE, "utf8")]);
  const server = startChild("tls-protocols.ts", host === undefined ? [SERVE, HERE] : [SERVE]);
  const state = async (): Promise<Readonly<Record<string, unknown>>> => {
    const told = await server.ask("state", ANSWER_MS);
    return isRecord(told) ? told : {};
  };
  const url = `https://${host ?? HERE}:${String((await state())["port"])}/`;
  const timerWheel = new TimerWheel(realRuntime);
  const parts = { budget: MemoryBudget.unbounded(), timerWheel };
  const https = (["own", "undici"] as const).map(
    (client) => new HttpUpstream(realRuntime, HTTP_LIMITS, new SsrfGuard(), { ...parts, client }),
  );
  const clients = https.map((http, n) => {
    const name = n === 0 ? "HTTP/1.1, own client" : "HTTP/2, undici";
    return { name, call: callerOf(http, url), values: [] };
  });
  for (const { name, call } of clients) {
    const before = Number((await state())["connections"]);
    await cpuPerCall(call);
    const opened = Number((await state())["connections"]) - before;
    process.stdout.write(`${name}: ${opened} connections for ${CALLERS} callers\n`);
  }
  await (host === undefined
    ? measure(clients, async (call) => [await cpuPerCall(call)])
    : measure(clients, latencies));
  for (const { name, values } of clients)
    process.stdout.write(`${name}: ${host === undefined ? costOf(values) : spreadOf(values)}\n`);
  for (const http of https) await http.close();
  await server.stop();
}

function costOf(values: readonly number[]): string {
  const [least, middle, most] = [0, 0.5, 1].map((share) => quantile(values, share).toFixed(1));
  return `${middle} µs (${least}–${most})`;
}

function spreadOf(values: readonly number[]): string {
  const shares = [0.5, 0.9, 0.99, 0.999].map(
    (share) => `p${100 * share} ${quantile(values, share).toFixed(1)}`,
  );
  return `${shares.join(", ")} ms of ${values.length} calls`;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
}

if (process.argv[2] === SERVE) serve();
else await compare(process.argv[2]);
