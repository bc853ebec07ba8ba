// Finds the transaction that used an authorization if it is none of ours: anybody may carry it out,
// and the payer may cancel it. Searches the newest blocks first, then from the time when the
// payment was read. Bounded in calls and time: a search that was cut short throws and is no answer.
import type { Runtime } from "../../../runtime.ts";
import { ChainFailure, chainFailureOf, type NodeError } from "../chain.ts";
import type { EvmMaterial } from "./authorization.ts";
import { type EvmBlock, type EvmLog, type EvmNode, firstBlockSince } from "./node.ts";
import { type AuthorizationUse, endTopics, useIn } from "./token.ts";

/** What to search, and in which chain. */
export interface Search {
  readonly node: EvmNode;
  readonly runtime: Runtime;
  readonly material: EvmMaterial;
  readonly head: EvmBlock;
}

/** Blocks of one log query, until the node refuses such a range. */
const MAX_BLOCKS = 5_000n;
const RECENT_BLOCKS = 500n;
const MAX_QUESTIONS = 64;
/** Less than a whole look may take. */
const MAX_SEARCH_MS = 15_000;
/**
 * Offers last an hour at most, so nothing that was read now was signed and used earlier. Clocks
 * differ by less.
 */
const BEFORE_READ_S = 3_600n;

/**
 * How an authorization was used that the token reports as used or cancelled; null = no use since
 * its offer could have been made.
 */
export async function searchUse(search: Search): Promise<AuthorizationUse | null> {
  const { node, runtime, material } = search;
  const untilMs = runtime.now() + MAX_SEARCH_MS;
  const end = (await recentEnd(search)) ?? (await earlierEnd(search, untilMs));
  if (end === null) return null;
  const receipt = await node.receipt(end.txHash);
  const use = receipt === null ? null : useIn(receipt, material.token, material.authorization);
  if (use === null)
    throw new ChainFailure(
      "The payment chain's node has an event of an authorization, and not the receipt that it is in",
    );
  return use;
}

async function recentEnd(search: Search): Promise<EvmLog | null> {
  const { number } = search.head;
  const answer = await endIn(
    search,
    number < RECENT_BLOCKS ? 0n : number - RECENT_BLOCKS + 1n,
    number,
  );
  return answer.kind === "node_error" ? null : answer.end;
}

/** Searches from the oldest block that can hold the use, in ranges as wide as the node allows. */
async function earlierEnd(search: Search, untilMs: number): Promise<EvmLog | null> {
  const { runtime, material, head } = search;
  const sinceS = BigInt(Math.floor(material.readAtMs / 1000)) - BEFORE_READ_S;
  let from = await firstBlockSince(search.node, sinceS, head.number, () => {
    if (runtime.now() >= untilMs) throw tooSlow();
  });
  let blocks = MAX_BLOCKS;
  for (
    let asked = 0;
    asked < MAX_QUESTIONS && from <= head.number && runtime.now() < untilMs;
    asked += 1
  ) {
    const last = from + blocks - 1n < head.number ? from + blocks - 1n : head.number;
    const answer = await endIn(search, from, last);
    if (answer.kind === "node_error") {
      if (blocks === 1n) throw chainFailureOf(answer, "eth_getLogs");
      blocks = blocks / 4n > 0n ? blocks / 4n : 1n;
    } else if (answer.end !== null) return answer.end;
    else from = last + 1n;
  }
  if (from <= head.number) throw tooSlow();
  return null;
}

function tooSlow(): ChainFailure {
  return new ChainFailure(
    "The payment chain's node takes too long, or too few blocks at once, to find what used an " +
      "authorization",
  );
}

async function endIn(
  { node, material }: Search,
  fromBlock: bigint,
  toBlock: bigint,
): Promise<{ readonly kind: "searched"; readonly end: EvmLog | null } | NodeError> {
  const answer = await node.logs({
    address: material.token,
    topics: endTopics(material.authorization),
    fromBlock,
    toBlock,
  });
  return answer.kind === "node_error" ? answer : { kind: "searched", end: answer.value[0] ?? null };
}
