// The upstream of the benchmark, a process of its own: a raw HTTP/1.1 server on eight loopback
// ports, three of them behind TLS, that acts as the providers of three chains and counts every
// call. With the argument `faulty`, each port fails 1 % of calls, a different one per port, in four
// ways. Answers every message of the parent process with a snapshot of the counters.
import { readFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { isRecord } from "./child.ts";
import { MessageReader } from "./http1.ts";
import { largePrefix, largeRest, numberIn, shapeIn, smallAnswer } from "./workload.ts";

/** The counters and the CPU time of the upstream. */
export interface UpstreamSnapshot {
  /** Three ports of chain 1, then two of chain 2, then three of chain 3 behind TLS. */
  readonly ports: readonly number[];
  /** Calls by method name; names outside the standard are summed as `other`. */
  readonly calls: Readonly<Record<string, number>>;
  /** Requests: a batch is one. */
  readonly requests: number;
  /** Deliberate faults. */
  readonly faults: number;
  /** User and system CPU time of the process so far, µs. */
  readonly cpuUs: number;
}

/** Number of ports of chain 1, and of chains 1 and 2; the others belong to chain 3. */
export const CHAIN_1_PORTS = 3;
export const PLAIN_PORTS = 5;
const PORTS = 8;
/** Of the ports behind TLS; whoever asks them has to trust it. */
export const CERTIFICATE = fileURLToPath(
  new URL("../test/data/tls/certificate.pem", import.meta.url),
);
export const KEY = fileURLToPath(new URL("../test/data/tls/key.pem", import.meta.url));
/** Chunk size of answers without a length. */
const CHUNK_BYTES = 16_384;
const COUNTED = ["eth_getBalance", "eth_getBlockReceipts", "eth_chainId", "eth_blockNumber"];

/** Parses a snapshot received over IPC. */
export function parseSnapshot(message: unknown): UpstreamSnapshot {
  if (!isRecord(message) || !Array.isArray(message["ports"]))
    throw new Error("the upstream sent no snapshot");
  return message as unknown as UpstreamSnapshot;
}

interface Counters {
  readonly calls: Map<string, number>;
  requests: number;
  faults: number;
}

interface Endpoint {
  readonly index: number;
  readonly faulty: boolean;
  readonly counters: Counters;
  /** The constant part of long answers, by size. */
  readonly rests: Map<number, Buffer>;
}

function serve(socket: Socket, endpoint: Endpoint): void {
  let body = "";
  const reader = new MessageReader({
    head: () => {
      body = "";
    },
    body: (piece) => {
      body += piece.toString("latin1");
    },
    end: () => answer(socket, body, endpoint),
  });
  socket.setNoDelay(true);
  socket.on("data", (chunk) => reader.push(chunk));
  socket.on("error", () => socket.destroy());
}

function answer(socket: Socket, body: string, endpoint: Endpoint): void {
  endpoint.counters.requests++;
  if (body.startsWith("[")) {
    const calls = body.slice(1, -1).split("},{");
    const text = `[${calls.map((call) => smallResult(call, endpoint)).join(",")}]`;
    socket.write(head(text.length) + text, "latin1");
    return;
  }
  if (endpoint.faulty && faultFor(body, endpoint.index)) {
    endpoint.counters.faults++;
    count(body, endpoint.counters);
    fail(socket, body);
    return;
  }
  if (body.includes('"eth_getBlockReceipts"')) {
    count(body, endpoint.counters);
    return answerLong(socket, body, endpoint);
  }
  const text = smallResult(body, endpoint);
  socket.write(head(text.length) + text, "latin1");
}

/** An answer with the size and framing that the request states. */
function answerLong(socket: Socket, body: string, endpoint: Endpoint): void {
  const { bytes, chunked } = shapeIn(body);
  const rest = endpoint.rests.get(bytes) ?? largeRest(bytes);
  endpoint.rests.set(bytes, rest);
  const prefix = largePrefix(idIn(body), numberIn(body));
  socket.cork();
  if (chunked) {
    socket.write(
      `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: ` +
        `chunked\r\n\r\n${chunkHead(prefix.length)}${prefix}\r\n`,
      "latin1",
    );
    for (let at = 0; at < rest.length; at += CHUNK_BYTES) {
      const piece = rest.subarray(at, at + CHUNK_BYTES);
      socket.write(chunkHead(piece.length), "latin1");
      socket.write(piece);
      socket.write("\r\n", "latin1");
    }
    socket.write("0\r\n\r\n", "latin1");
  } else {
    socket.write(head(prefix.length + rest.length) + prefix, "latin1");
    socket.write(rest);
  }
  socket.uncork();
}

function chunkHead(bytes: number): string {
  return `${bytes.toString(16)}\r\n`;
}

function smallResult(body: string, endpoint: Endpoint): string {
  const method = count(body, endpoint.counters);
  const id = idIn(body);
  if (method === "eth_chainId")
    return `{"jsonrpc":"2.0","id":${id},"result":"0x${chainOf(endpoint.index)}"}`;
  if (method === "eth_blockNumber")
    return `{"jsonrpc":"2.0","id":${id},"result":"0x${Math.floor(Date.now() / 12_000).toString(16)}"}`;
  return smallAnswer(id, numberIn(body));
}

function chainOf(port: number): number {
  if (port < CHAIN_1_PORTS) return 1;
  return port < PLAIN_PORTS ? 2 : 3;
}

function count(body: string, counters: Counters): string {
  const method = /"method":\s*"([^"]*)"/.exec(body)?.[1] ?? "";
  const key = COUNTED.includes(method) ? method : "other";
  counters.calls.set(key, (counters.calls.get(key) ?? 0) + 1);
  return method;
}

function idIn(body: string): string {
  return /"id":\s*("[^"]*"|-?\d+)/.exec(body)?.[1] ?? "null";
}

function head(length: number): string {
  return `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
}

/**
 * Each port fails a different hundredth of the numbers, so that a retry at another port succeeds.
 */
function faultFor(body: string, doorIndex: number): boolean {
  const number = numberIn(body);
  return number !== "" && Number(number) % 100 === doorIndex * 33;
}

function fail(socket: Socket, body: string): void {
  const html = "<html><body>502 Bad Gateway</body></html>";
  const wrong = smallAnswer("7", numberIn(body));
  switch (Math.floor(Number(numberIn(body)) / 100) % 4) {
    case 0:
      socket.write(
        `HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: ` +
          `${html.length}\r\n\r\n${html}`,
        "latin1",
      );
      return;
    case 1:
      socket.destroy();
      return;
    case 2:
      socket.end(`${head(wrong.length)}{"jsonrpc":"2.0",`, "latin1");
      return;
    default:
      socket.write(head(wrong.length) + wrong, "latin1");
  }
}

function listen(endpoint: Endpoint): Promise<Server> {
  return new Promise((resolve, reject) => {
    const take = (socket: Socket): void => serve(socket, endpoint);
    const server =
      endpoint.index < PLAIN_PORTS
        ? createServer({ noDelay: true }, take)
        : createTlsServer({ key: readFileSync(KEY), cert: readFileSync(CERTIFICATE) }, take);
    server.once("error", reject);
    server.listen(0, "127.0.0.1", 1_024, () => resolve(server));
  });
}

async function main(): Promise<void> {
  const counters: Counters = { calls: new Map(), requests: 0, faults: 0 };
  const shared = {
    faulty: process.argv.includes("faulty"),
    counters,
    rests: new Map<number, Buffer>(),
  };
  const servers = await Promise.all(
    Array.from({ length: PORTS }, (_, index) => listen({ index, ...shared })),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    return address !== null && typeof address === "object" ? address.port : 0;
  });
  process.on("message", () => {
    const cpu = process.cpuUsage();
    const snapshot: UpstreamSnapshot = {
      ports,
      calls: Object.fromEntries(counters.calls),
      requests: counters.requests,
      faults: counters.faults,
      cpuUs: cpu.user + cpu.system,
    };
    process.send?.(snapshot);
  });
  process.on("disconnect", () => process.exit(0));
}

if (import.meta.main) await main();
