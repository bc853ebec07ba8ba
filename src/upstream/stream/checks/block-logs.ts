// All logs of a block, as one provider returned them: asked once for everybody, and kept for a
// while for those who ask later. Knows no filter's owner and no budget.
import { type Log, readLogKeys } from "../../../core/stream/chain-event.ts";
import type { LogKeys } from "../../../core/stream/log-bloom.ts";
import { matchesFilter } from "../../../core/stream/log-verification.ts";
import type { LogFilter } from "../../../core/stream/subscription.ts";

/** From so many different filters on, all logs of a block are asked for, and matched here. */
export const LEAST_FILTERS_TOGETHER = 5;

/** A log with what filters look at. */
export interface KeyedLog {
  readonly log: Log;
  readonly keys: LogKeys;
}

/** Most bytes and answers that are kept, for all profiles and chains. */
const MAX_BYTES = 33_554_432;
const MAX_ANSWERS = 512;
/** Memory of one log beside its text. */
const LOG_OVERHEAD_BYTES = 1_024;

interface KeptAnswer {
  readonly logs: readonly KeyedLog[];
  readonly bytes: number;
}

/** The answers of providers to the question for all logs of a block. */
export class BlockLogs {
  /** Oldest first. */
  readonly #kept = new Map<string, KeptAnswer>();
  readonly #underWay = new Map<string, Promise<readonly KeyedLog[] | null>>();
  #bytes = 0;

  /** The answer under a key; null = it is not kept. */
  kept(key: string): readonly KeyedLog[] | null {
    return this.#kept.get(key)?.logs ?? null;
  }

  /** The answer under a key, asked for with `queryAlone` if need be; null = there is none. */
  fetch(
    key: string,
    queryAlone: () => Promise<readonly Log[] | null>,
  ): Promise<readonly KeyedLog[] | null> {
    const kept = this.kept(key);
    if (kept !== null) return Promise.resolve(kept);
    const known = this.#underWay.get(key);
    if (known !== undefined) return known;
    const answer = queryAlone().then((logs) => {
      this.#underWay.delete(key);
      return logs === null ? null : this.#keep(key, logs);
    });
    this.#underWay.set(key, answer);
    return answer;
  }

  #keep(key: string, answered: readonly Log[]): readonly KeyedLog[] {
    const logs = keyed(answered);
    const bytes = logs.reduce((sum, { log }) => sum + log.raw.length + LOG_OVERHEAD_BYTES, 0);
    this.#kept.set(key, { logs, bytes });
    this.#bytes += bytes;
    for (const [oldest, answer] of this.#kept) {
      if (this.#bytes <= MAX_BYTES && this.#kept.size <= MAX_ANSWERS) break;
      this.#kept.delete(oldest);
      this.#bytes -= answer.bytes;
    }
    return logs;
  }
}

/** Logs with what filters look at; those that are malformed are left out. */
export function keyed(logs: readonly Log[]): readonly KeyedLog[] {
  return logs.flatMap((log) => {
    const keys = readLogKeys(log);
    return keys === null ? [] : [{ log, keys }];
  });
}

/**
 * The logs that a filter matches. They are copied: they may be remembered for longer than the
 * answer, which holds all logs of the block.
 */
export function matching(filter: LogFilter, logs: readonly KeyedLog[]): readonly Log[] {
  return logs
    .filter(({ keys }) => matchesFilter(filter, keys))
    .map(({ log }) => ({ ...log, raw: Buffer.from(log.raw) }));
}
