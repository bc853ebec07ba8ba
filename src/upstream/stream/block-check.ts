// Checks one block: queries the logs that filters match from providers other than those that pushed
// the block. A few filters are queried one by one; more of them by a single unfiltered query, whose
// answer is matched here. Knows no subscriber.
import type { Channel } from "../../core/provider/attempt.ts";
import { type Block, type Log, readLogKeys } from "../../core/stream/chain-event.ts";
import { matchesFilter } from "../../core/stream/log-verification.ts";
import { logsOfBlock, type Subscription } from "../../core/stream/subscription.ts";

/** The result of a check: all logs that any provider returned, or why none could be asked. */
export type BlockCheckResult =
  /**
   * `firm`: as many providers answered as the check needs. `independent`: one of them is not the
   * source.
   */
  | {
      readonly kind: "logs";
      readonly logs: readonly Log[];
      readonly firm: boolean;
      readonly independent: boolean;
    }
  | { readonly kind: "unchecked"; readonly why: "over_budget" | "unanswered" };

/** One filter to check on a block. */
export interface BlockCheckRequest {
  readonly subscription: Subscription;
  /** Id of the provider that pushed the block. */
  readonly source: string;
  /**
   * Whether an empty answer needs confirmation by a second one: `needed` when the bloom says that
   * there may be logs; `if there is room` when nothing is known.
   */
  readonly second: "needed" | "if there is room" | "no";
}

/** Access of a check to providers. */
export interface BlockLogsSource {
  /** Providers to query, best first; those in `sources`, which pushed the block, last. */
  candidates(sources: ReadonlySet<string>): readonly Channel[];
  /** Queries the logs of the block; null = the provider did not answer. */
  queryLogs(channel: Channel, params: string): Promise<readonly Log[] | null>;
  /** Whether one more call may be made now, and whether optional calls may. */
  readonly affordable: boolean;
  readonly roomy: boolean;
}

/** Most filters of one block that are queried one by one; more are queried together. */
const MOST_FILTERED = 4;
/** Most providers queried for one block, and answers that settle it. */
const MOST_ASKED = 3;
const ENOUGH_ANSWERS = 2;

/** The check of one block for all filters that need it. */
export class BlockCheck {
  readonly #block: Block;
  readonly #source: BlockLogsSource;
  readonly #filters = new Map<string, FilterCheck>();

  constructor(block: Block, logsSource: BlockLogsSource) {
    this.#block = block;
    this.#source = logsSource;
  }

  /** Adds a filter to the check. `done` is called once, not before `run`. */
  join(
    { subscription, source, second }: BlockCheckRequest,
    done: (result: BlockCheckResult) => void,
  ): void {
    const { params } = subscription;
    const known: FilterCheck = this.#filters.get(params) ?? {
      subscription,
      found: new Map(),
      sources: new Set(),
      waiters: [],
      second,
      state: "open",
    };
    this.#filters.set(params, known);
    known.sources.add(source);
    if (second === "needed") known.second = second;
    if (known.state === "open" || known.state === "asked") known.waiters.push(done);
    else done(known.state);
  }

  /** Queries all filters that were not queried yet. */
  run(): void {
    const open = [...this.#filters.values()].filter((filter) => filter.state === "open");
    for (const filter of open) filter.state = "asked";
    if (open.length > MOST_FILTERED)
      void this.#queryLogs(open, JSON.stringify([{ blockHash: this.#block.hash }]));
    else
      for (const filter of open)
        void this.#queryLogs(
          [filter],
          logsOfBlock(filter.subscription.filter ?? ANY, this.#block.hash),
        );
  }

  async #queryLogs(filters: readonly FilterCheck[], params: string): Promise<void> {
    const sources = new Set(filters.flatMap((filter) => [...filter.sources]));
    let answers = 0;
    let independent = false;
    let silent = 0;
    if (!this.#source.affordable)
      return this.#finish(filters, { kind: "unchecked", why: "over_budget" });
    for (const channel of this.#source.candidates(sources).slice(0, MOST_ASKED)) {
      const logs = await this.#source.queryLogs(channel, params);
      if (logs === null) {
        silent++;
        continue;
      }
      answers++;
      independent ||= !sources.has(channel.provider.id);
      sortOut(filters, logs);
      if (answers >= ENOUGH_ANSWERS || filters.every((filter) => this.#suffices(filter))) break;
    }
    if (answers === 0)
      return this.#finish(filters, {
        kind: "unchecked",
        why: this.#source.affordable ? "unanswered" : "over_budget",
      });
    for (const filter of filters) {
      const logs = [...filter.found.values()].sort((left, right) => left.logIndex - right.logIndex);
      const firm = answers >= ENOUGH_ANSWERS || silent === 0 || this.#suffices(filter);
      this.#finish([filter], { kind: "logs", logs, firm, independent });
    }
  }

  /** Finishes filters; one whose result is not firm may be checked again. */
  #finish(filters: readonly FilterCheck[], result: BlockCheckResult): void {
    for (const filter of filters) {
      const { waiters } = filter;
      filter.waiters = [];
      filter.state = result;
      if (result.kind === "unchecked" || !result.firm)
        this.#filters.delete(filter.subscription.params);
      for (const done of waiters) done(result);
    }
  }

  #suffices({ found, second }: FilterCheck): boolean {
    return (
      found.size > 0 || second === "no" || (second === "if there is room" && !this.#source.roomy)
    );
  }
}

const ANY = { addresses: [], topics: [] };

interface FilterCheck {
  readonly subscription: Subscription;
  /** Logs that some provider returned, by log index. */
  readonly found: Map<number, Log>;
  readonly sources: Set<string>;
  second: BlockCheckRequest["second"];
  waiters: ((result: BlockCheckResult) => void)[];
  state: "open" | "asked" | BlockCheckResult;
}

/**
 * Distributes logs to the filters that match them. Those are copied: they are remembered for longer
 * than the answer, which holds all logs of the block.
 */
function sortOut(filters: readonly FilterCheck[], logs: readonly Log[]): void {
  for (const log of logs) {
    const keys = readLogKeys(log);
    if (keys === null) continue;
    const matching = filters.filter(({ subscription }) =>
      matchesFilter(subscription.filter ?? ANY, keys),
    );
    if (matching.length === 0) continue;
    const copy = { ...log, raw: Buffer.from(log.raw) };
    for (const { found } of matching) found.set(log.logIndex, copy);
  }
}
