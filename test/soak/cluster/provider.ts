// A provider that counts by caller what it served. Each call of the soak carries its caller and a
// number in its parameters, so that a call that was asked twice counts once. Some calls fail.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ChainQuestion, MovingChain } from "./moving-chain.ts";

/** What all providers of a site served. */
export interface ServedCalls {
  /** Calls of a caller that at least one provider answered. */
  countOf(caller: number): number;
  has(caller: number, call: number): boolean;
  /** The path at which a call was last answered; null = it was not. */
  pathOf(caller: number, call: number): string | null;
}

/** Providers that count together. */
export interface Providers {
  readonly urls: readonly string[];
  readonly served: ServedCalls;
  /** Forgets what was served. */
  forget(): void;
  close(): Promise<void>;
}

const CHAIN_ID = "0x1";
const HEIGHT = "0x64";
const CALLER_DIGITS = 6;
const CALL_DIGITS = 10;
/** Of so many calls the first provider fails one. */
const FAILS_ONE_OF = 40;
const MARK = new RegExp(`"data":"0x([0-9a-f]{${CALLER_DIGITS}})([0-9a-f]{${CALL_DIGITS}})"`);

/** What a caller sends and is answered: its number and that of the call. */
export function markOf(caller: number, call: number): string {
  const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0");
  return `0x${hex(caller, CALLER_DIGITS)}${hex(call, CALL_DIGITS)}`;
}

/** The path of the chain that moves. */
export const MOVING_PATH = "/moving";

/** Starts providers of both chains; the first of them fails now and then. */
export async function startProviders(count: number, moving: MovingChain): Promise<Providers> {
  const calls = new Map<number, Map<number, string>>();
  const servers = Array.from({ length: count }, (_, index) =>
    createServer((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      request.on("end", () =>
        request.url === MOVING_PATH
          ? answerOfMoving(moving, index, body, response)
          : answer({ body, path: request.url ?? "/", fails: index === 0, calls }, response),
      );
    }),
  );
  for (const server of servers)
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    urls: servers.map((server) => `http://127.0.0.1:${parseAddress(server.address()).port}`),
    served: {
      countOf: (caller) => calls.get(caller)?.size ?? 0,
      has: (caller, call) => calls.get(caller)?.has(call) ?? false,
      pathOf: (caller, call) => calls.get(caller)?.get(call) ?? null,
    },
    forget: () => calls.clear(),
    async close() {
      for (const server of servers) {
        server.closeAllConnections();
        await new Promise<void>((resolve) => server.close(() => resolve()));
      }
    },
  };
}

interface AskedCall {
  readonly body: string;
  readonly path: string;
  readonly fails: boolean;
  readonly calls: Map<number, Map<number, string>>;
}

function answer({ body, path, fails, calls }: AskedCall, response: ServerResponse): void {
  const { id, method }: { id: number; method: string } = JSON.parse(body);
  const reply = (result: string): void =>
    void response
      .writeHead(200, { "content-type": "application/json" })
      .end(`{"jsonrpc":"2.0","id":${id},"result":"${result}"}`);
  const mark = MARK.exec(body);
  if (mark === null) return reply(method === "eth_chainId" ? CHAIN_ID : HEIGHT);
  const caller = Number.parseInt(mark[1] ?? "", 16);
  const call = Number.parseInt(mark[2] ?? "", 16);
  if (fails && call % FAILS_ONE_OF === 0) return void response.writeHead(500).end();
  const own = calls.get(caller) ?? new Map<number, string>();
  calls.set(caller, own.set(call, path));
  reply(markOf(caller, call));
}

function answerOfMoving(
  moving: MovingChain,
  provider: number,
  body: string,
  response: ServerResponse,
): void {
  const { id, method, params }: ChainRequest = JSON.parse(body);
  if (provider === 0 && id % FAILS_ONE_OF === 0) return void response.writeHead(500).end();
  const members = moving.answer(provider, { method, params });
  response
    .writeHead(200, { "content-type": "application/json" })
    .end(`{"jsonrpc":"2.0","id":${id},${members}}`);
}

interface ChainRequest extends ChainQuestion {
  readonly id: number;
}

function parseAddress(address: string | AddressInfo | null): AddressInfo {
  return address as AddressInfo;
}
