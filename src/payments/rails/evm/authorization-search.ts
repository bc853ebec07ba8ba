// Finds the transaction that used an authorization if it is none of ours: anybody may carry it out,
// and the payer may cancel it. Searches the newest blocks first, then from the time when the
// payment was read. Bounded in calls and time: a search that was cut short throws and is no answer.
import { greaterOf } from "../../../core/billing/payment.ts";
import type { Runtime } from "../../../runtime.ts";
import { ChainFailure } from "../chain.ts";
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
const LIMITS = { maxBlocks: 5_000n, maxQuestions: 64 };
const RECENT_BLOCKS = 500n;
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

async function recentEnd({ node, material, head }: Search): Promise<EvmLog | null> {
  const fromBlock = greaterOf(head.number - RECENT_BLOCKS + 1n, 0n);
  const answer = await node.logs({ ...endsOf(material), fromBlock, toBlock: head.number });
  return answer.kind === "node_error" ? null : (answer.value[0] ?? null);
}

/** Searches from the oldest block that can hold the use, in ranges as wide as the node allows. */
async function earlierEnd(
  { node, runtime, material, head }: Search,
  untilMs: number,
): Promise<EvmLog | null> {
  const inTime = (): void => {
    if (runtime.now() >= untilMs)
      throw new ChainFailure(
        "The payment chain's node takes too long to find what used an authorization",
      );
  };
  const sinceS = BigInt(Math.floor(material.readAtMs / 1000)) - BEFORE_READ_S;
  const fromBlock = await firstBlockSince(node, sinceS, head.number, inTime);
  const query = { ...endsOf(material), fromBlock, toBlock: head.number };
  for await (const { logs } of node.logRanges(query, { ...LIMITS, check: inTime }))
    if (logs[0] !== undefined) return logs[0];
  return null;
}

function endsOf({ token, authorization }: EvmMaterial) {
  return { address: token, topics: endTopics(authorization) };
}
