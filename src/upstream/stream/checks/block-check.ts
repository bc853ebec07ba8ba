// Checks one block: queries the logs that filters match from providers other than those that pushed
// the block. A few filters are queried one by one; for more of them all logs of the block are
// queried, once from each provider that is asked, and matched here. Knows no subscriber.
import type { Channel } from "../../../core/provider/attempt.ts";
import type { Block, Log } from "../../../core/stream/chain-event.ts";
import { ALL_LOGS, logsOfBlock, type Subscription } from "../../../core/stream/subscription.ts";
import { type KeyedLog, keyed, LEAST_FILTERS_TOGETHER, matching } from "./block-logs.ts";

/** The result of a check: all logs that any provider returned, or why none could be asked. */
export type BlockCheckResult =
  /**
   * `firm`: as many providers answered as the check needs, among them one that is not the source
   * unless there is no other. `independent`: one of them is not the source.
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
  /** Whether there are providers besides `sources`, usable now or later. */
  hasOthers(sources: ReadonlySet<string>): boolean;
  /** Queries the logs of the block; null = the provider did not answer. */
  queryLogs(channel: Channel, params: string): Promise<readonly Log[] | null>;
  /** Queries all logs of the block, once for all who want them; null = as above. */
  queryAll(channel: Channel): Promise<readonly KeyedLog[] | null>;
  /** All logs of the block as a provider returned them before; null = they are not kept. */
  kept(channel: Channel): readonly KeyedLog[] | null;
  /** Whether one more call may be made now, and whether optional calls may. */
  isAffordable(): boolean;
  isRoomy(): boolean;
}

/** Most providers queried for one block, and answers that settle it. */
const MOST_ASKED = 3;
const ENOUGH_ANSWERS = 2;

/** The check of one block for all filters that need it. */
export class BlockCheck {
  readonly #block: Block;
  readonly #source: BlockLogsSource;
  readonly #filters = new Map<string, FilterCheck>();
  /** Many filters: all logs of the block are queried, so that one that joins costs no call. */
  isWhole = false;
  #isAsking = false;

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
    const known = this.#filters.get(params) ?? new FilterCheck(subscription, second);
    this.#filters.set(params, known);
    known.sources.add(source);
    if (second === "needed") known.second = second;
    if (typeof known.state === "string") known.waiters.push(done);
    else done(known.state);
  }

  /** Queries all filters that were not queried yet. */
  run(): void {
    const open = [...this.#filters.values()].filter((filter) => filter.state === "open");
    this.isWhole ||=
      this.#filters.size >= LEAST_FILTERS_TOGETHER || (open.length > 1 && !this.#source.isRoomy());
    if (this.isWhole) return void this.#queryAll();
    for (const filter of open) {
      filter.state = "alone";
      void this.#queryOne(filter);
    }
  }

  async #queryOne(filter: FilterCheck): Promise<void> {
    const { subscription, sources } = filter;
    const params = logsOfBlock(subscription.filter ?? ALL_LOGS, this.#block.hash);
    let silent = 0;
    if (!this.#source.isAffordable())
      return this.#finish(filter, { kind: "unchecked", why: "over_budget" });
    for (const channel of this.#source.candidates(sources).slice(0, MOST_ASKED)) {
      const logs = await this.#source.queryLogs(channel, params);
      if (logs === null) silent++;
      else takeAnswer(filter, channel.provider.id, keyed(logs));
      if (this.#isSettled(filter)) break;
    }
    this.#conclude(filter, silent === 0);
  }

  /**
   * Settles open filters, also those that join meanwhile, by questions for all logs of the block:
   * one provider after the other, and each at most once.
   */
  async #queryAll(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const answers = new Map<string, readonly KeyedLog[]>();
    const silent = new Set<string>();
    for (
      let open = this.#openOnes(answers);
      open[0] !== undefined;
      open = this.#openOnes(answers)
    ) {
      const [filter] = open;
      const channel = this.#nextFor(filter, silent, answers);
      if (channel === null) {
        this.#conclude(filter, silent.size === 0);
        continue;
      }
      const { id } = channel.provider;
      const logs = answers.get(id) ?? (await this.#source.queryAll(channel));
      if (logs === null) silent.add(id);
      else {
        answers.set(id, logs);
        takeAnswer(filter, id, logs);
      }
    }
    this.#isAsking = false;
  }

  /** The filters that are still open after the answers of providers that are not their source. */
  #openOnes(answers: ReadonlyMap<string, readonly KeyedLog[]>): readonly FilterCheck[] {
    const left: FilterCheck[] = [];
    for (const filter of this.#filters.values()) {
      if (filter.state === "open") filter.state = "together";
      if (filter.state !== "together") continue;
      for (const [id, logs] of answers) if (!filter.sources.has(id)) takeAnswer(filter, id, logs);
      if (this.#isSettled(filter)) this.#conclude(filter, true);
      else left.push(filter);
    }
    return left;
  }

  /**
   * The next provider to ask for a filter: not its source; preferably one that has answered
   * already, or one that is no filter's source. Null = nobody, or no further call may be made.
   */
  #nextFor(
    { sources, answeredBy }: FilterCheck,
    silent: ReadonlySet<string>,
    answers: ReadonlyMap<string, unknown>,
  ): Channel | null {
    const all = new Set([...this.#filters.values()].flatMap((filter) => [...filter.sources]));
    const left = this.#source
      .candidates(sources)
      .filter(({ provider: { id } }) => !silent.has(id) && !answeredBy.has(id));
    const isThere = (channel: Channel): boolean =>
      answers.has(channel.provider.id) || this.#source.kept(channel) !== null;
    const others = left.filter(({ provider: { id } }) => !sources.has(id));
    const next =
      others.find(isThere) ?? others.find(({ provider: { id } }) => !all.has(id)) ?? left[0];
    if (next === undefined || isThere(next)) return next ?? null;
    return this.#source.isAffordable() && silent.size + answers.size < MOST_ASKED ? next : null;
  }

  /** Finishes a filter with what was answered. `isComplete`: everybody who was asked answered. */
  #conclude(filter: FilterCheck, isComplete: boolean): void {
    const { found, answeredBy, sources } = filter;
    const affordable = this.#source.isAffordable();
    const why = affordable ? "unanswered" : "over_budget";
    if (answeredBy.size === 0) return this.#finish(filter, { kind: "unchecked", why });
    const logs = [...found.values()].sort((left, right) => left.logIndex - right.logIndex);
    const independent = !answeredBy.isSubsetOf(sources);
    const isEnough = this.#isSettled(filter) || (isComplete && affordable);
    const firm = isEnough && (independent || !this.#source.hasOthers(sources));
    this.#finish(filter, { kind: "logs", logs, firm, independent });
  }

  /** Finishes a filter; one whose result is not firm may be checked again. */
  #finish(filter: FilterCheck, result: BlockCheckResult): void {
    const { waiters } = filter;
    filter.waiters = [];
    filter.state = result;
    if (result.kind === "unchecked" || !result.firm)
      this.#filters.delete(filter.subscription.params);
    for (const done of waiters) done(result);
  }

  #isSettled({ found, answeredBy, second }: FilterCheck): boolean {
    if (answeredBy.size >= ENOUGH_ANSWERS) return true;
    const isEnough =
      found.size > 0 ||
      second === "no" ||
      (second === "if there is room" && !this.#source.isRoomy());
    return answeredBy.size > 0 && isEnough;
  }
}

/** The check of one filter. */
class FilterCheck {
  readonly subscription: Subscription;
  second: BlockCheckRequest["second"];
  /** Logs that some provider returned, by log index. */
  readonly found = new Map<number, Log>();
  readonly sources = new Set<string>();
  /** Ids of providers. */
  readonly answeredBy = new Set<string>();
  waiters: ((result: BlockCheckResult) => void)[] = [];
  /** `alone`, `together`: how it is asked for. */
  state: "open" | "alone" | "together" | BlockCheckResult = "open";

  constructor(subscription: Subscription, second: BlockCheckRequest["second"]) {
    this.subscription = subscription;
    this.second = second;
  }
}

function takeAnswer(
  { subscription, found, answeredBy }: FilterCheck,
  id: string,
  logs: readonly KeyedLog[],
): void {
  if (answeredBy.has(id)) return;
  answeredBy.add(id);
  for (const log of matching(subscription.filter ?? ALL_LOGS, logs)) found.set(log.logIndex, log);
}
