// Checks one block: queries the logs that filters want from providers other than those that pushed
// the block. A few filters are queried one by one; more of them by one unfiltered query, whose
// answer is matched here. Knows no subscriber.
import type { Channel } from "../../core/provider/attempt.ts";
import { type Block, type Log, readLogKeys } from "../../core/stream/chain-event.ts";
import { wants } from "../../core/stream/log-verification.ts";
import { logsOfBlock, type Subscription } from "../../core/stream/subscription.ts";

/** What became of a check: all logs that somebody knows of, or why nobody could be asked. */
export type BlockCheckResult =
  /**
   * `firm` = as many answered as the check needs. `independent` = one of them is not the source.
   */
  | {
      readonly kind: "logs";
      readonly logs: readonly Log[];
      readonly firm: boolean;
      readonly independent: boolean;
    }
  | { readonly kind: "unchecked"; readonly why: "over_budget" | "unanswered" };

/** What is checked of a block. */
export interface BlockCheckRequest {
  readonly subscription: Subscription;
  /** Id of the provider that told of the block. */
  readonly source: string;
  /**
   * Whether an empty answer needs a second one: where the bloom says that there may be something,
   * and where nothing is known if there is room for it.
   */
  readonly second: "needed" | "if there is room" | "no";
}

/** How a check reaches providers. */
export interface BlockLogsSource {
  /** Whom to ask, best first, those that told of the block last. */
  candidates(sources: ReadonlySet<string>): readonly Channel[];
  /** Null = the provider does not say. */
  ask(channel: Channel, params: string): Promise<readonly Log[] | null>;
  /** Whether one more call may be made now, and whether calls that are not needed may. */
  readonly affordable: boolean;
  readonly roomy: boolean;
}

/** Filters of one block that are asked for one by one; more are asked for together. */
const MOST_FILTERED = 4;
/** Providers asked for one block, and answers that settle it. */
const MOST_ASKED = 3;
const ENOUGH_ANSWERS = 2;

/** One block and those who want it checked. */
export class BlockCheck {
  readonly #block: Block;
  readonly #source: BlockLogsSource;
  readonly #filters = new Map<string, FilterCheck>();

  constructor(block: Block, logsSource: BlockLogsSource) {
    this.#block = block;
    this.#source = logsSource;
  }

  /** Joins the check of a filter. `done` is called once, not before `run`. */
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

  /** Asks for everything that was not asked for yet. */
  run(): void {
    const open = [...this.#filters.values()].filter((filter) => filter.state === "open");
    for (const filter of open) filter.state = "asked";
    if (open.length > MOST_FILTERED)
      void this.#ask(open, JSON.stringify([{ blockHash: this.#block.hash }]));
    else
      for (const filter of open)
        void this.#ask([filter], logsOfBlock(filter.subscription.filter ?? ANY, this.#block.hash));
  }

  async #ask(filters: readonly FilterCheck[], params: string): Promise<void> {
    const sources = new Set(filters.flatMap((filter) => [...filter.sources]));
    let answers = 0;
    let independent = false;
    let silent = 0;
    if (!this.#source.affordable)
      return this.#finish(filters, { kind: "unchecked", why: "over_budget" });
    for (const channel of this.#source.candidates(sources).slice(0, MOST_ASKED)) {
      const logs = await this.#source.ask(channel, params);
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

  /** What is not firm may be asked for again. */
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
  /** Logs that somebody told of, by position. */
  readonly found: Map<number, Log>;
  readonly sources: Set<string>;
  second: BlockCheckRequest["second"];
  waiters: ((result: BlockCheckResult) => void)[];
  state: "open" | "asked" | BlockCheckResult;
}

/** Gives each filter the logs that it wants. */
function sortOut(filters: readonly FilterCheck[], logs: readonly Log[]): void {
  for (const log of logs) {
    const keys = readLogKeys(log);
    if (keys === null) continue;
    for (const { subscription, found } of filters)
      if (wants(subscription.filter ?? ANY, keys)) found.set(log.logIndex, log);
  }
}
