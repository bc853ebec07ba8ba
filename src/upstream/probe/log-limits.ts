// Limits of log queries, found by trying: the widest range, and whether a long result is refused.
// Ranges are asked for logs of an address that has none, so that a wide range costs the endpoint
// little; the size of results is tried with one query.
import type { EndpointCalls } from "./endpoint-calls.ts";
import { hex } from "./resources.ts";

/** What an endpoint accepts. */
export interface LogLimits {
  /** The widest range (last block minus first) seen to work; null = none works. */
  readonly maxBlockRange: number | null;
  /** No wider range was refused. */
  readonly isUnlimited: boolean;
  /** The most logs in one answer that were seen, of a query that asked for many. */
  readonly mostLogs: number | null;
  /** A query for many logs was refused for the size of its result. */
  readonly refusesManyLogs: boolean;
}

/** Ranges that vendors allow, as their documents say; the widest that is tried is the last. */
const USUAL_RANGES = [
  ...[5, 10, 20, 50, 100, 128, 200, 250, 256, 300, 500, 800, 1_000, 1_024, 1_500, 2_000, 2_048],
  ...[2_500, 3_000, 3_500, 4_000, 5_000, 8_000, 10_000, 15_000, 20_000, 25_000, 30_000, 50_000],
  ...[100_000],
];
/** Not the address of anybody, and no vendor's example. */
const NOBODY = "0x00000000000000000000000000000000c0ffee01";
/** Blocks below the head: not every node behind an address has the newest ones. */
const SETTLED = 4;
/** About as many logs are asked for as the usual limits of results allow. */
const MANY_LOGS = 11_000;
const MAX_LOG_BLOCKS = 500;

/** Finds the limits. */
export async function logLimits(calls: EndpointCalls, head: number): Promise<LogLimits> {
  const end = Math.max(0, head - SETTLED);
  const accepts = async (range: number): Promise<number | boolean> => {
    const from = hex(Math.max(0, end - range));
    const filter = { fromBlock: from, toBlock: hex(end), address: NOBODY };
    const answer = await calls.send("eth_getLogs", [filter]);
    return answer.kind === "result" || (answer.kind === "refused" && answer.maxBlockRange) || false;
  };
  const ranges = [1, ...USUAL_RANGES.filter((range) => range < end), end].toSorted((a, b) => a - b);
  const tried = ranges.filter((range) => range <= (USUAL_RANGES.at(-1) ?? 0));
  const found = await widest(tried, accepts);
  const size = found === null ? null : await manyLogs(calls, end, found);
  return {
    maxBlockRange: found,
    isUnlimited: found !== null && found === tried.at(-1),
    mostLogs: size?.most ?? null,
    refusesManyLogs: size?.isRefused ?? false,
  };
}

/** The widest range that is accepted, halving between those given; a refusal may name the limit. */
async function widest(
  ranges: readonly number[],
  accepts: (range: number) => Promise<number | boolean>,
): Promise<number | null> {
  const last = ranges.at(-1) ?? 0;
  const whole = await accepts(last);
  if (whole === true) return last;
  if (typeof whole === "number" && whole < last && (await accepts(whole)) === true) return whole;
  let below = -1;
  let above = ranges.length - 1;
  while (above - below > 1) {
    const middle = Math.floor((below + above) / 2);
    if ((await accepts(ranges[middle] ?? 0)) === true) below = middle;
    else above = middle;
  }
  return ranges[below] ?? null;
}

interface ManyLogs {
  readonly most: number | null;
  readonly isRefused: boolean;
}

/** Asks for the logs of one block, and then for as many blocks as should hold many. */
async function manyLogs(calls: EndpointCalls, end: number, range: number): Promise<ManyLogs> {
  const one = await calls.send("eth_getLogs", [{ fromBlock: hex(end), toBlock: hex(end) }]);
  const count = one.kind === "result" && Array.isArray(one.value) ? one.value.length : 0;
  if (count === 0) return { most: null, isRefused: false };
  const blocks = Math.min(Math.ceil(MANY_LOGS / count), range, MAX_LOG_BLOCKS, end);
  const filter = { fromBlock: hex(end - blocks), toBlock: hex(end) };
  const many = await calls.send("eth_getLogs", [filter]);
  if (many.kind === "result" && Array.isArray(many.value))
    return { most: many.value.length, isRefused: false };
  return { most: count, isRefused: many.kind === "refused" };
}
