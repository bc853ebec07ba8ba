// A scripted node for probes: a chain of any height that is made up as it is asked for, and habits:
// how far back it keeps what, what it limits, and what it refuses, in the words of real nodes.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isRecord } from "../../src/core/fields.ts";
import { RESOURCES, type Resource } from "../../src/core/rpc/method.ts";
import { KEPT_OPEN_MS } from "./upstream.ts";

/** What a node does. */
export interface NodeHabits {
  readonly chainId: number;
  readonly head: number;
  /** The oldest block of each kind of data; left out = the first. `null` = it serves none. */
  readonly oldest: Partial<Readonly<Record<Resource, number | null>>>;
  /** The widest range of `eth_getLogs`; infinite = any. */
  readonly logRange: number;
  /** What it says beyond that range. */
  readonly rangeError: string;
  /** Most logs in an answer. */
  readonly mostLogs: number;
  readonly batches: boolean;
  /** Prefixes and names of methods that it does not have. */
  readonly without: readonly string[];
  /** Tags that it does not know. */
  readonly withoutTags: readonly string[];
  /** Every so many-th request is refused as one too many; 0 = none. */
  readonly limitEvery: number;
  /** Answers every request like this. */
  readonly status: number;
}

/** A running node. */
export interface ProbedNode {
  readonly url: string;
  /** Methods in the order in which they were asked for. */
  readonly methods: readonly string[];
  /** The most requests that were under way at once. */
  readonly most: () => number;
  close(): Promise<void>;
}

export const ARCHIVE: NodeHabits = {
  chainId: 1,
  head: 20_000_000,
  oldest: {},
  logRange: Number.POSITIVE_INFINITY,
  rangeError: "",
  mostLogs: Number.POSITIVE_INFINITY,
  batches: true,
  without: [],
  withoutTags: [],
  limitEvery: 0,
  status: 200,
};

const LOGS_IN_BLOCK = 200;
/** Blocks that tags are behind the newest one. */
const BEHIND: ReadonlyMap<unknown, number> = new Map([
  ["finalized", 64],
  ["safe", 32],
]);
/** Blocks below this are empty, as those of Ethereum's first month. */
const FIRST_USED = 46_147;

type Reply = { readonly result: unknown } | { readonly error: { code: number; message: string } };

/** Starts a node with these habits; the others are an archive's. */
export async function probedNode(habits: Partial<NodeHabits>): Promise<ProbedNode> {
  const node = new Node({ ...ARCHIVE, ...habits });
  const server = createServer({ keepAliveTimeout: KEPT_OPEN_MS }, (request, response) => {
    if (request.method !== "POST") return void response.writeHead(404).end();
    const chunks: Buffer[] = [];
    node.open++;
    node.mostOpen = Math.max(node.mostOpen, node.open);
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      node.open--;
      node.serve(JSON.parse(Buffer.concat(chunks).toString()), response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    methods: node.methods,
    most: () => node.mostOpen,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

class Node {
  readonly methods: string[] = [];
  open = 0;
  mostOpen = 0;
  readonly #habits: NodeHabits;
  #requests = 0;

  constructor(habits: NodeHabits) {
    this.#habits = habits;
  }

  serve(body: unknown, response: ServerResponse): void {
    const { limitEvery, status, batches } = this.#habits;
    this.#requests++;
    const isLimited = limitEvery > 0 && this.#requests % limitEvery === 0;
    const write = (value: unknown, code: number): void =>
      void response
        .writeHead(code, { "content-type": "application/json" })
        .end(JSON.stringify(value));
    if (status !== 200) return write({ error: "invalid api key" }, status);
    if (isLimited) return write(failure(null, -32005, "too many requests, slow down"), 429);
    if (Array.isArray(body) && !batches)
      return write(failure(null, -32600, "batch requests are not supported"), 200);
    const calls: readonly unknown[] = Array.isArray(body) ? body : [body];
    const answers = calls.map((call) => this.#answer(call));
    write(Array.isArray(body) ? answers : answers[0], 200);
  }

  #answer(call: unknown): object {
    const { id, method, params } = isRecord(call) ? call : {};
    const name = String(method);
    this.methods.push(name);
    const list: readonly unknown[] = Array.isArray(params) ? params : [];
    const { without } = this.#habits;
    const reply = without.some((prefix) => name.startsWith(prefix))
      ? refused(-32601, `the method ${name} does not exist/is not available`)
      : this.#reply(name, list);
    return { jsonrpc: "2.0", id, ...reply };
  }

  #reply(method: string, params: readonly unknown[]): Reply {
    const { chainId, head } = this.#habits;
    const [first, second, third] = params;
    switch (method) {
      case "eth_chainId":
        return { result: hex(chainId) };
      case "eth_blockNumber":
        return { result: hex(head) };
      case "web3_clientVersion":
        return { result: "Geth/v1.16.4-stable/linux-amd64/go1.25" };
      case "eth_getBlockByNumber":
        return this.#block(first);
      case "eth_getBalance":
      case "eth_call":
        return this.#old("state", second, "missing trie node 0a1b (path ) state is not available");
      case "eth_getProof":
        return this.#old("proofs", third, "distance to target block exceeds maximum proof window");
      case "eth_getTransactionByHash":
        return this.#ofTransaction("transactions", first);
      case "eth_getTransactionReceipt":
        return this.#ofTransaction("receipts", first);
      case "debug_traceTransaction":
      case "trace_transaction":
        return this.#traced(first);
      case "eth_getLogs":
        return this.#logs(isRecord(first) ? first : {});
      default:
        return { result: "0x1" };
    }
  }

  #isKept(resource: Resource, block: number): boolean {
    const oldest = this.#habits.oldest[resource];
    return oldest === undefined || (oldest !== null && block >= oldest);
  }

  #numberOf(tag: unknown): number {
    return typeof tag === "string" && tag.startsWith("0x") ? Number(tag) : this.#habits.head;
  }

  #block(tag: unknown): Reply {
    const { head, withoutTags } = this.#habits;
    if (withoutTags.includes(String(tag))) return refused(-39001, "unknown block");
    const number = this.#numberOf(tag) - (BEHIND.get(tag) ?? 0);
    if (number > head || !this.#isKept("blocks", number)) return { result: null };
    const isUsed = number >= FIRST_USED;
    return {
      result: {
        number: hex(number),
        hash: hashOf(number),
        logsBloom: isUsed ? "0x01" : "0x00",
        transactions: isUsed ? [hashOf(number)] : [],
      },
    };
  }

  #old(resource: Resource, tag: unknown, message: string): Reply {
    return this.#isKept(resource, this.#numberOf(tag))
      ? { result: "0x0" }
      : refused(-32000, message);
  }

  #ofTransaction(resource: Resource, hash: unknown): Reply {
    const block = Number(String(hash));
    return { result: this.#isKept(resource, block) ? { blockNumber: hex(block) } : null };
  }

  #traced(hash: unknown): Reply {
    return this.#isKept("traces", Number(String(hash)))
      ? { result: { type: "CALL" } }
      : refused(-32000, "historical state is not available");
  }

  #logs({ fromBlock, toBlock, address }: Readonly<Record<string, unknown>>): Reply {
    const { logRange, rangeError, mostLogs } = this.#habits;
    const [from, to] = [this.#numberOf(fromBlock), this.#numberOf(toBlock)];
    if (to - from > logRange) return refused(-32000, rangeError);
    const kept = this.#isKept("logs", from);
    const blocks = address === undefined && kept && from >= FIRST_USED ? to - from + 1 : 0;
    const count = blocks * LOGS_IN_BLOCK;
    if (count > mostLogs) return refused(-32005, "query returned more than 10000 results");
    return { result: Array.from({ length: count }, () => ({ blockNumber: hex(from) })) };
  }
}

/** A hash whose number is that of its block. */
function hashOf(block: number): string {
  return `0x${block.toString(16).padStart(64, "0")}`;
}

function hex(number: number): string {
  return `0x${number.toString(16)}`;
}

function refused(code: number, message: string): Reply {
  return { error: { code, message } };
}

function failure(id: unknown, code: number, message: string): object {
  return { jsonrpc: "2.0", id, error: { code, message } };
}

/** Every kind of data from one block. */
export function allFrom(block: number): Readonly<Record<Resource, number>> {
  const all = RESOURCES.map((resource) => [resource, block] as const);
  return Object.fromEntries(all) as Record<Resource, number>;
}
