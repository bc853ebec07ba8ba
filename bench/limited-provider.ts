// Two providers, a process of its own: the first refuses what is beyond its requests a second, with
// 429, the second bears everything. Any message of the parent is answered with the ports and with
// what arrived at the first: how much, the most within any second, and what was refused.
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What is known of the providers. */
export interface LimitedSnapshot {
  readonly ports: readonly number[];
  /** Requests that arrived at the first, probes included. */
  readonly arrived: number;
  /** The most of them within any second. */
  readonly mostInASecond: number;
  readonly refused: number;
}

const PROBES: Readonly<Record<string, string>> = { eth_chainId: "0x1", eth_blockNumber: "0x64" };

async function main(rps: number): Promise<void> {
  const recent: number[] = [];
  let [arrived, mostInASecond, refused] = [0, 0, 0];
  /** Counts an arrival at the first; false = it is beyond the limit. */
  const isWithin = (): boolean => {
    const nowMs = performance.now();
    while ((recent[0] ?? nowMs) <= nowMs - 1_000) recent.shift();
    recent.push(nowMs);
    arrived++;
    mostInASecond = Math.max(mostInASecond, recent.length);
    return recent.length <= rps + 1;
  };
  const answer = (body: string, isLimited: boolean, response: ServerResponse): void => {
    const id = /"id":\s*("[^"]*"|-?\d+)/.exec(body)?.[1] ?? "null";
    response.setHeader("content-type", "application/json");
    if (isLimited && !isWithin()) {
      refused++;
      response.statusCode = 429;
      return void response.end(
        `{"jsonrpc":"2.0","id":${id},"error":{"code":-32005,"message":"rate limit exceeded"}}`,
      );
    }
    const method = /"method":"(\w+)"/.exec(body)?.[1] ?? "";
    response.end(`{"jsonrpc":"2.0","id":${id},"result":"${PROBES[method] ?? "0x1"}"}`);
  };
  const servers = [true, false].map((isLimited) =>
    createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => answer(Buffer.concat(pieces).toString(), isLimited, response));
    }),
  );
  const ports = await Promise.all(servers.map(listening));
  process.on("message", () => {
    const snapshot: LimitedSnapshot = { ports, arrived, mostInASecond, refused };
    process.send?.(snapshot);
  });
  process.on("disconnect", () => process.exit(0));
}

function listening(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

if (import.meta.main) await main(Number(process.argv[2]));
