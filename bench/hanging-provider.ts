// Providers that hang, a process of its own: HTTP servers that answer within a few milliseconds,
// but for a share of the calls, chosen by a seed. Probes are always answered. A message of the
// parent sets the shares and the time; it is answered with the ports and the calls so far.
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { seededChance } from "./arrivals.ts";
import { isRecord } from "./child.ts";

/** How one provider behaves. */
export interface Hanging {
  /** Share of its answers that hang. */
  readonly share: number;
  /** For how long (ms); null = for ever. */
  readonly forMs: number | null;
}

/** What is known of the providers. */
export interface HangingSnapshot {
  readonly ports: readonly number[];
  /** Calls, probes left out. */
  readonly calls: number;
}

const USUAL_MS = { least: 4, most: 12 };
const PROBES = /"eth_chainId"|"eth_blockNumber"/;

async function main(seed: number, count: number): Promise<void> {
  const chance = seededChance(seed);
  let behaviour: readonly Hanging[] = [];
  let calls = 0;
  const answer = (body: string, at: number, response: ServerResponse): void => {
    const id = /"id":\s*("[^"]*"|-?\d+)/.exec(body)?.[1] ?? "null";
    const send = (result: string): void => {
      response.setHeader("content-type", "application/json");
      response.end(`{"jsonrpc":"2.0","id":${id},"result":"${result}"}`);
    };
    if (PROBES.test(body)) return send(body.includes('"eth_chainId"') ? "0x1" : "0x64");
    calls++;
    const { share, forMs } = behaviour[at] ?? { share: 0, forMs: null };
    const usualMs = USUAL_MS.least + chance() * (USUAL_MS.most - USUAL_MS.least);
    const hangs = chance() < share;
    if (hangs && forMs === null) return;
    setTimeout(() => send("0x1"), hangs && forMs !== null ? forMs : usualMs);
  };
  const servers = Array.from({ length: count }, (_, at) =>
    createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => answer(Buffer.concat(pieces).toString(), at, response));
    }),
  );
  const ports = await Promise.all(servers.map(listening));
  process.on("message", (message: unknown) => {
    if (isRecord(message) && Array.isArray(message["behaviour"]))
      behaviour = message["behaviour"] as readonly Hanging[];
    const snapshot: HangingSnapshot = { ports, calls };
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

if (import.meta.main) await main(Number(process.argv[2]), Number(process.argv[3]));
