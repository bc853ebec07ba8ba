// How far back an endpoint keeps each kind of data. Transactions, receipts and logs are looked for
// in blocks that hold some; a block that is missing lacks them all.
import { isRecord } from "../../core/fields.ts";
import { RESOURCES, type Resource } from "../../core/rpc/method.ts";
import type { EndpointCalls, ProbeAnswer } from "./endpoint-calls.ts";
import { type BlockPresence, oldestBlock } from "./oldest-block.ts";

/** By kind of data: the oldest block that has it; null = it is not served, or could not be seen. */
export type OldestBlocks = Readonly<Record<Resource, number | null>>;

const NOBODY = "0x0000000000000000000000000000000000000000";
/** Blocks that are asked for around a place, until one holds a transaction. */
const NEIGHBOURS = 3;
const EMPTY_BLOOM = /^0x0*$/;

/** A block as far as it matters here. */
interface SeenBlock {
  readonly number: number;
  readonly hash: string;
  /** The hash of one of its transactions; null = it has none. */
  readonly transaction: string | null;
  readonly hasLogs: boolean;
}

export const hex = (block: number): string => `0x${block.toString(16)}`;

/** Finds the oldest block of each kind of data. */
export async function oldestBlocks(calls: EndpointCalls, head: number): Promise<OldestBlocks> {
  const seen = new SeenBlocks(calls, head);
  const found = new Map<Resource, number | null>();
  for (const resource of ORDER) {
    seen.lacksAnswers = false;
    const oldest = await oldestBlock(head, (block) => PRESENCE[resource](seen, block));
    found.set(resource, seen.lacksAnswers ? null : oldest);
  }
  const all = RESOURCES.map((resource) => [resource, found.get(resource) ?? null] as const);
  return Object.fromEntries(all) as Record<Resource, number | null>;
}

/** Blocks first, since the others need them. */
const ORDER: readonly Resource[] = [
  ...["blocks", "state", "proofs", "transactions"],
  ...["receipts", "logs", "traces"],
] as const satisfies readonly Resource[];

const PRESENCE: Readonly<
  Record<Resource, (seen: SeenBlocks, block: number) => Promise<BlockPresence>>
> = {
  blocks: async (seen, block) => ((await seen.at(block)) === null ? "absent" : "present"),
  state: (seen, block) => seen.shows("eth_getBalance", [NOBODY, hex(block)]),
  proofs: (seen, block) => seen.shows("eth_getProof", [NOBODY, [], hex(block)]),
  traces: (seen, block) => seen.traces(block),
  transactions: (seen, block) => seen.ofTransaction("eth_getTransactionByHash", block),
  receipts: (seen, block) => seen.ofTransaction("eth_getTransactionReceipt", block),
  logs: (seen, block) => seen.logs(block),
};

/** Blocks that were asked for, and questions about them. */
class SeenBlocks {
  /** A request was not answered: nothing follows from it. */
  lacksAnswers = false;
  readonly #calls: EndpointCalls;
  readonly #head: number;
  readonly #blocks = new Map<number, SeenBlock | null>();
  /** The tracing method that the endpoint serves; null = not known. */
  #tracing: string | null = null;

  constructor(calls: EndpointCalls, head: number) {
    this.#calls = calls;
    this.#head = head;
  }

  /** A block; null = the endpoint lacks it. */
  async at(number: number): Promise<SeenBlock | null> {
    const known = this.#blocks.get(number);
    if (known !== undefined) return known;
    const answer = await this.#send("eth_getBlockByNumber", [hex(number), false]);
    const block = blockOf(answer, number);
    this.#blocks.set(number, block);
    return block;
  }

  async shows(method: string, params: readonly unknown[]): Promise<BlockPresence> {
    const answer = await this.#send(method, params);
    return answer.kind === "result" && answer.value !== null ? "present" : "absent";
  }

  /** Whether the endpoint finds a transaction of a block by its hash. */
  async ofTransaction(method: string, number: number): Promise<BlockPresence> {
    const block = await this.#near(number, ({ transaction }) => transaction !== null);
    if (block === null) return "absent";
    return block.transaction === null ? "empty" : this.shows(method, [block.transaction]);
  }

  async logs(number: number): Promise<BlockPresence> {
    const block = await this.#near(number, ({ hasLogs }) => hasLogs);
    const at = hex(block?.number ?? number);
    const answer = await this.#send("eth_getLogs", [{ fromBlock: at, toBlock: at }]);
    if (answer.kind === "refused" && answer.category === "result_size") return "present";
    if (answer.kind !== "result" || !Array.isArray(answer.value)) return "absent";
    if (answer.value.length > 0) return "present";
    return block === null || block.hasLogs ? "absent" : "empty";
  }

  async traces(number: number): Promise<BlockPresence> {
    const block = await this.#near(number, ({ transaction }) => transaction !== null);
    if (block === null) return "absent";
    if (block.transaction === null) return "empty";
    const methods =
      this.#tracing === null ? ["debug_traceTransaction", "trace_transaction"] : [this.#tracing];
    for (const method of methods) {
      const tracer = method.startsWith("debug_") ? [{ tracer: "callTracer" }] : [];
      const presence = await this.shows(method, [block.transaction, ...tracer]);
      if (presence === "present") {
        this.#tracing = method;
        return presence;
      }
    }
    return "absent";
  }

  async #send(method: string, params: readonly unknown[]): Promise<ProbeAnswer> {
    const answer = await this.#calls.send(method, params);
    this.lacksAnswers ||= answer.kind === "none";
    return answer;
  }

  /** A block at or shortly after a place that holds something, else the one at the place. */
  async #near(number: number, isWanted: (block: SeenBlock) => boolean): Promise<SeenBlock | null> {
    const first = await this.at(number);
    for (let at = number; at < number + NEIGHBOURS; at++) {
      const block = at <= this.#head ? await this.at(at) : null;
      if (block !== null && isWanted(block)) return block;
    }
    return first;
  }
}

function blockOf(answer: ProbeAnswer, number: number): SeenBlock | null {
  if (answer.kind !== "result" || !isRecord(answer.value)) return null;
  const { hash, transactions, logsBloom, number: own } = answer.value;
  if (typeof hash !== "string" || own !== hex(number)) return null;
  const list: readonly unknown[] = Array.isArray(transactions) ? transactions : [];
  const transaction = list.find((hash) => typeof hash === "string") ?? null;
  const hasLogs = typeof logsBloom === "string" && !EMPTY_BLOOM.test(logsBloom);
  return { number, hash, transaction, hasLogs };
}
