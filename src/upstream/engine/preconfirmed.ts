// Who has told of transactions in blocks above the served tip (preconfirmed ones): for a few blocks
// another provider's `null` says nothing against it, and the one who told is asked again.
import type { Chain } from "../../core/provider/chain.ts";
import type { Call } from "../../core/rpc/call.ts";
import type { Outcome } from "./answer.ts";

/** A provider that told of a transaction. */
interface PreconfirmedAnswer {
  readonly providerId: string;
  readonly untilMs: number;
}

const MAX_ANSWERS = 4_096;
/** For so many blocks it is remembered, within these bounds. */
const BLOCKS = 5;
const LEAST_MS = 2_000;
const MOST_MS = 60_000;
/** A block further above the served tip is none that a provider can have. */
export const MAX_BLOCKS_AHEAD = 16;
/** Of an answer: the number of the block comes first in it. */
const SEARCHED_BYTES = 65_536;

/** The methods that tell of a transaction by its hash. */
const TELLING: ReadonlySet<string> = new Set([
  "eth_getTransactionReceipt",
  "eth_getTransactionByHash",
]);

/** What was told in one provider set, by request. */
export class PreconfirmedTransactions {
  readonly #answers = new Map<string, PreconfirmedAnswer>();

  /** A provider has told of a transaction. */
  add(key: string, providerId: string, { blockTimeMs }: Chain, nowMs: number): void {
    const forMs = Math.min(MOST_MS, Math.max(LEAST_MS, BLOCKS * blockTimeMs));
    this.#answers.delete(key);
    this.#answers.set(key, { providerId, untilMs: nowMs + forMs });
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= MAX_ANSWERS) break;
      this.#answers.delete(oldest);
    }
  }

  /** The id of the provider that told; null = nobody did lately. */
  providerOf(key: string, nowMs: number): string | null {
    const answer = this.#answers.get(key);
    return answer === undefined || nowMs >= answer.untilMs ? null : answer.providerId;
  }
}

/** The number of the block that an answer places its transaction in; null = it tells of none. */
export function blockNumberIn({ method }: Call, outcome: Outcome): number | null {
  if (outcome.kind !== "result" || !TELLING.has(method.name)) return null;
  const { body, start, end } = outcome;
  const searched = body.subarray(start, Math.min(end, start + SEARCHED_BYTES));
  const at = searched.indexOf(MEMBER);
  if (at === -1) return null;
  const text = searched.toString("latin1", at + MEMBER.length, at + MEMBER.length + MAX_NUMBER);
  const number = /^\s*:\s*"(0x[0-9a-fA-F]{1,13})"/.exec(text)?.[1];
  return number === undefined ? null : Number(number);
}

const MEMBER = '"blockNumber"';
const MAX_NUMBER = 32;
