// Checks the logs of subscriptions, one instance per profile and chain: the budget that checks
// share, the trust in the chain's blooms, which providers left logs out, and the checks in flight.
// Does not decide what subscribers receive.

import { keccak_256 } from "@noble/hashes/sha3.js";
import { FULL_MS, remaining, take } from "../../../core/billing/gcra.ts";
import { keepNewest } from "../../../core/newest.ts";
import type { Channel } from "../../../core/provider/attempt.ts";
import type { ExclusionReason } from "../../../core/provider/capability.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import type { Plan } from "../../../core/routing/plan.ts";
import { methodOf } from "../../../core/rpc/method.ts";
import { writeRequest } from "../../../core/rpc/wire-request.ts";
import { type Block, type Head, type Log, readLogKeys } from "../../../core/stream/chain-event.ts";
import {
  type BloomTrust,
  covers,
  disproved,
  type FilterBits,
  headerBloom,
  mayHold,
  NO_TRUST,
  proven,
  trustAt,
} from "../../../core/stream/log-bloom.ts";
import { type Need, verificationOf } from "../../../core/stream/log-verification.ts";
import { ALL_LOGS, type LogFilter, logsOfBlock } from "../../../core/stream/subscription.ts";
import type { Tracker } from "../../health/tracker.ts";
import { type Allowance, WHOLE_SHARES } from "../../shares.ts";
import { type CountedChain, CountsByChain } from "../counts-by-chain.ts";
import type { StreamParts } from "../source.ts";
import {
  BlockCheck,
  type BlockCheckRequest,
  type BlockCheckResult,
  type BlockLogsSource,
} from "./block-check.ts";
import {
  BlockLogs,
  LEAST_FILTERS_TOGETHER,
  matching,
  queryBlock,
  queryBlockLogs,
  type SourceBlock,
} from "./block-logs.ts";

/** Counts of the checks of one profile on one chain since the start. */
const NO_CHECKS = {
  /** Checks by result, one for each block and filter of a stream. */
  agreed: 0,
  /** Logs were left out, by the provider of the stream or by the one queried. */
  missing: 0,
  surplus: 0,
  /** Checks that too few providers answered, before a retry or finally. */
  unanswered: 0,
  givenUp: 0,
  overBudget: 0,
  /** Number of calls made for checks. */
  calls: 0,
};

/** The counts of the checks of one profile on one chain. */
type CheckCounts = typeof NO_CHECKS & CountedChain;

/** The stream that needs a check: its tracker and pinned provider. */
export interface CheckedStream {
  readonly tracker: Tracker;
  readonly pin: Provider | null;
}

/** A block to check, and how urgently. */
export interface BlockQuery extends CheckedStream, BlockCheckRequest {
  readonly block: Block;
  readonly need: Need;
}

/** What checks work with. */
type LogChecksParts = Pick<StreamParts, "runtime" | "timerWheel" | "router" | "shares" | "log">;

/** After logs were left out, every block is checked for this time. */
const ALARMED_MS = 300_000;
/**
 * A provider that left logs out is not chosen as source of log subscriptions for this time, if
 * there is another.
 */
const PENALTY_MS = 600_000;
/** Requests to check the same block are gathered for this time. */
const GATHER_MS = 20;
const MAX_BLOCKS = 64;
const BURST_SECONDS = 2;
/** Calls a second of a worker whose share is nothing. */
const LEAST_BUDGET = 0.001;
/** Calls that check one block, repeats included, and the time (ms) over which blocks count. */
const CALLS_PER_BLOCK = 4;
const PACE_MS = 10_000;
/** Most blocks that count, in multiples of those that the block time of the chain allows. */
const MOST_PACE = 2;
/** The filters of streams are known for this time after they were last seen (ms). */
const FILTER_MS = 60_000;
/** A provider that did not return all logs of a block is asked for those of filters (ms). */
const ALONE_MS = 60_000;
/** Part of the budget that routine checks leave to needed ones. */
const RESERVE = 0.5;
const LINE_EVERY_MS = 60_000;
const METHOD = methodOf("eth_getLogs");
/** Exclusions that do not end by themselves. */
const LASTING: ReadonlySet<ExclusionReason> = new Set([
  "other_region",
  "transport_missing",
  "method_unsupported",
  "category_unsupported",
  "cordoned_by_operator",
  "out_of_scope",
]);

/** Reasons for not checking a block: how each is counted, and the text of the log line. */
const SKIPPED = {
  over_budget: {
    count: "overBudget",
    line: "checks of logs are over verification_budget: only a sample is checked",
  },
  unanswered: { count: "unanswered", line: null },
  given_up: {
    count: "givenUp",
    line: "logs of blocks could not be checked: too few providers answered",
  },
} as const;

/** The bloom of one block, as seen so far. */
interface SeenBloom {
  readonly bloom: Buffer | null;
  /** Ids of the providers that sent this header. */
  readonly providers: Set<string>;
}

/** The checks of one profile on one chain. */
export class LogChecks {
  readonly counts: CheckCounts;
  readonly #key: string;
  readonly #parts: LogChecksParts;
  readonly #blockLogs: BlockLogs;
  readonly #blocks = new Map<string, BlockCheck>();
  readonly #seenBlooms = new Map<string, SeenBloom>();
  /** Ids of providers that sent a head recently, with the time (ms). */
  readonly #showed = new Map<string, number>();
  readonly #proven = new Set<string>();
  readonly #penalties = new Map<string, number>();
  /** The last filters of streams, with the time (ms) at which they were seen. */
  readonly #filters = new Map<string, number>();
  /** Ids of providers that did not return all logs of a block, and until when (ms). */
  readonly #alone = new Map<string, number>();
  #trust: BloomTrust = NO_TRUST;
  #fullAtMs = FULL_MS;
  /** This worker's share of the budget, in thousandths of a call a second; null = not used yet. */
  #share: Allowance | null = null;
  /** The whole budget that it is a share of. */
  #budget = 0;
  /** When the last blocks to check came (ms). */
  readonly #blocksAtMs: number[] = [];
  /** Calls that were wanted since `sinceMs`. */
  #wanted = { calls: 0, sinceMs: 0 };
  #bound: Tracker | null = null;
  #alarmedUntilMs = Number.NEGATIVE_INFINITY;
  /** When a line of each kind was last logged (ms). */
  readonly #loggedAtMs = new Map<string, number>();

  /**
   * `key` names the profile and chain in the service; `blockLogs` are answers that all profiles and
   * chains share the room of.
   */
  constructor(key: string, parts: LogChecksParts, counts: CheckCounts, blockLogs: BlockLogs) {
    this.#key = key;
    this.#parts = parts;
    this.counts = counts;
    this.#blockLogs = blockLogs;
  }

  /** Replaces the providers that may be queried. */
  bind(tracker: Tracker): void {
    this.#bound = tracker;
  }

  get alarmed(): boolean {
    return this.#parts.runtime.now() < this.#alarmedUntilMs;
  }

  /**
   * Records the header of a block from a provider. If two providers send different blooms for one
   * block, one of them is false.
   */
  see(provider: Provider, hash: string, raw: Buffer): void {
    const nowMs = this.#parts.runtime.now();
    this.#showed.set(provider.id, nowMs);
    const known = this.#seenBlooms.get(hash);
    if (known?.providers.has(provider.id) === true) return;
    const bloom = headerBloom(raw);
    if (known !== undefined) {
      known.providers.add(provider.id);
      if (isOther(known.bloom, bloom)) this.distrust(hash);
      return;
    }
    this.#seenBlooms.set(hash, { bloom, providers: new Set([provider.id]) });
    keepNewest(this.#seenBlooms, MAX_BLOCKS * 2);
  }

  /** Whether the block may hold matching logs, as far as its bloom can be trusted. */
  mayHold(hash: string, bits: FilterBits): "yes" | "no" | "unknown" {
    const seen = this.#seenBlooms.get(hash);
    const trust = this.#trustNow();
    if (seen === undefined || seen.bloom === null || trust.kind === "off") return "unknown";
    if (mayHold(seen.bloom, bits)) return "yes";
    return trust.kind === "trusted" && this.#isConfirmed(seen) ? "no" : "unknown";
  }

  /** Whether routine checks may be made. */
  isRoomy(tracker: Tracker): boolean {
    return this.#tokens(tracker) >= this.#size(tracker).burst * RESERVE;
  }

  /** Checks a block. `done` is called once, unless the service stops first. */
  check(
    { block, tracker, pin, need, ...request }: BlockQuery,
    done: (result: BlockCheckResult) => void,
  ): void {
    const key = pin === null ? block.hash : `${block.hash} ${pin.id}`;
    const known = this.#blocks.get(key);
    if (known === undefined) this.#noteBlock();
    this.#noteFilter(JSON.stringify(request.subscription.filter));
    if (need === "routine" && known?.isWhole !== true && !this.isRoomy(tracker))
      return done({ kind: "unchecked", why: "over_budget" });
    const check = known ?? new BlockCheck(block, this.#askerFor(block, { tracker, pin }));
    this.#blocks.set(key, check);
    keepNewest(this.#blocks, MAX_BLOCKS);
    check.join(request, done);
    this.#parts.timerWheel.set(GATHER_MS, () => check.run());
  }

  /**
   * The logs of a block that a provider has and a filter matches, for a stream whose source it is.
   * While many filters are open, all logs are queried once for everybody; where the provider does
   * not return them, and else, `queryAlone` queries those of the filter.
   */
  async logsFrom(
    source: SourceBlock,
    filter: LogFilter,
    queryAlone: () => Promise<readonly Log[] | null>,
  ): Promise<readonly Log[] | null> {
    const { provider } = source.channel;
    const { id } = provider;
    this.#noteFilter(JSON.stringify(filter));
    const key = this.#keyOf(provider, source.block);
    const isTogether =
      this.#blockLogs.kept(key) !== null ||
      (this.#filters.size >= LEAST_FILTERS_TOGETHER && !this.#isAskedAlone(id));
    if (!isTogether) return queryAlone();
    const all = await this.#blockLogs.fetch(key, async () => {
      const said = await queryBlock(this.#parts, source);
      if (said === "failed") this.#alone.set(id, this.#parts.runtime.now() + ALONE_MS);
      return typeof said === "string" ? null : said;
    });
    if (all !== null) return matching(filter, all);
    return this.#isAskedAlone(id) ? queryAlone() : null;
  }

  /** Records that two providers agreed on a block: its bloom is then confirmed or disproved. */
  agree(hash: string, logs: readonly Log[], independent: boolean): void {
    this.counts.agreed++;
    const seen = this.#seenBlooms.get(hash);
    if (seen === undefined || seen.bloom === null || logs.length === 0) return;
    const { bloom: bytes } = seen;
    const right = logs.every((log) => {
      const keys = readLogKeys(log);
      return keys !== null && covers(bytes, keys, keccak_256);
    });
    if (!right) return this.distrust(hash);
    if (!independent || this.#proven.has(hash)) return;
    this.#proven.add(hash);
    keepNewest(this.#proven, MAX_BLOCKS);
    this.#trust = proven(this.#trustNow());
  }

  /**
   * Records a disagreement about a stream's block: logs that its provider left out, and how many
   * the others left out.
   */
  disagree(
    provider: Provider,
    block: Block,
    { missing, surplus }: { readonly missing: number; readonly surplus: number },
  ): void {
    const nowMs = this.#parts.runtime.now();
    this.#alarmedUntilMs = nowMs + ALARMED_MS;
    if (surplus > 0) this.counts.surplus++;
    if (missing === 0) return;
    this.counts.missing++;
    this.#penalties.set(provider.id, nowMs + PENALTY_MS);
    const { profile, chain } = this.counts;
    this.#parts.log?.warn(
      { profile, chain, provider: provider.id, block: block.number, logs: missing },
      "a provider left logs out of a subscription; they were told",
    );
  }

  /** Records that a block was not checked. */
  skip(why: keyof typeof SKIPPED): void {
    const { count, line } = SKIPPED[why];
    this.counts[count]++;
    const nowMs = this.#parts.runtime.now();
    if (
      line === null ||
      nowMs - (this.#loggedAtMs.get(why) ?? Number.NEGATIVE_INFINITY) < LINE_EVERY_MS
    )
      return;
    this.#loggedAtMs.set(why, nowMs);
    const { profile, chain, overBudget, givenUp } = this.counts;
    this.#parts.log?.warn({ profile, chain, over_budget: overBudget, given_up: givenUp }, line);
  }

  /** Ids of providers that recently left logs out. */
  penalised(): readonly string[] {
    const nowMs = this.#parts.runtime.now();
    for (const [id, untilMs] of this.#penalties) if (nowMs >= untilMs) this.#penalties.delete(id);
    return [...this.#penalties.keys()];
  }

  /** Whether a provider does not return all logs of a block, so that filters are queried alone. */
  #isAskedAlone(id: string): boolean {
    const nowMs = this.#parts.runtime.now();
    for (const [other, untilMs] of this.#alone) if (nowMs >= untilMs) this.#alone.delete(other);
    return this.#alone.has(id);
  }

  /** Remembers the filters of streams; one that was not seen for a while is gone. */
  #noteFilter(text: string): void {
    const nowMs = this.#parts.runtime.now();
    this.#filters.delete(text);
    this.#filters.set(text, nowMs);
    for (const [oldest, atMs] of this.#filters) {
      if (nowMs - atMs < FILTER_MS && this.#filters.size <= LEAST_FILTERS_TOGETHER) break;
      this.#filters.delete(oldest);
    }
  }

  #askerFor(block: Block, { tracker, pin }: CheckedStream): BlockLogsSource {
    const keyOf = ({ provider }: Channel): string => this.#keyOf(provider, block);
    const queryLogs: BlockLogsSource["queryLogs"] = (channel, params) => {
      // Removed meanwhile: a query would open an unnecessary connection.
      const spend = (): boolean => this.#serves(channel.provider) && this.#spend(tracker);
      const of = { tracker: this.#bound ?? tracker, channel, block, params, spend };
      return queryBlockLogs(this.#parts, of);
    };
    return {
      candidates: (sources) => {
        const all = this.#candidates(block, { tracker: this.#bound ?? tracker, pin });
        const isSource = ({ provider: { id } }: Channel): number => (sources.has(id) ? 1 : 0);
        return all.toSorted((left, right) => isSource(left) - isSource(right));
      },
      hasOthers: (sources) => {
        const plans = this.#plans(block, { tracker: this.#bound ?? tracker, pin });
        const others = plans.flatMap(({ candidates, excluded }) => [
          ...candidates,
          ...excluded.filter(({ reason }) => !LASTING.has(reason)),
        ]);
        return others.some(({ provider }) => !sources.has(provider.id));
      },
      queryLogs,
      queryAll: (channel) =>
        this.#blockLogs.fetch(keyOf(channel), () =>
          queryLogs(channel, logsOfBlock(ALL_LOGS, block.hash)),
        ),
      kept: (channel) => this.#blockLogs.kept(keyOf(channel)),
      isAffordable: () => this.#tokens(tracker) >= 1,
      isRoomy: () => this.isRoomy(tracker),
    };
  }

  /** Of one provider's answer with all logs of a block. */
  #keyOf({ id }: Provider, { hash }: Block): string {
    return `${this.#key} ${id} ${hash}`;
  }

  /** Providers that are known to have the block first. */
  #candidates(block: Block, stream: CheckedStream): readonly Channel[] {
    const all = this.#plans(block, stream).flatMap(({ candidates }) => candidates);
    // Both plans may hold one and the same channel: each provider is asked once.
    return [...Map.groupBy(all, ({ provider }) => provider.id).values()].flatMap((channels) =>
      channels.slice(0, 1).flatMap((channel) => this.#reachable(channel)),
    );
  }

  /** Whom the block can be asked of, by its number and by its hash. */
  #plans({ number }: Block, { tracker, pin }: CheckedStream): readonly Plan[] {
    const call = { methodName: METHOD.name, method: METHOD, ...writeRequest(METHOD.name, null) };
    const selection = { strategy: "load-balanced", transport: null, pin } as const;
    return [{ kind: "number", number } as const, { kind: "hash" } as const].map((at) =>
      tracker.plan({ ...call, block: at }, selection),
    );
  }

  #serves({ id, url, wsUrl }: Provider): boolean {
    return (
      this.#bound === null ||
      this.#bound.set.providers.some(
        (provider) => provider.id === id && provider.url === url && provider.wsUrl === wsUrl,
      )
    );
  }

  #reachable({ provider, transport }: Channel): readonly Channel[] {
    if (transport === "ws" || this.#parts.router.reaches("http")) return [{ provider, transport }];
    return provider.wsUrl === null ? [] : [{ provider, transport: "ws" }];
  }

  #spend(tracker: Tracker): boolean {
    const fullAtMs = take(this.#fullAtMs, this.#size(tracker), this.#parts.runtime.now());
    this.#wanted.calls++;
    if (fullAtMs === null) return false;
    this.#fullAtMs = fullAtMs;
    this.counts.calls++;
    return true;
  }

  #tokens(tracker: Tracker): number {
    return remaining(this.#fullAtMs, this.#size(tracker), this.#parts.runtime.now());
  }

  #size({ set }: Tracker) {
    const { verificationBudget, chain } = set;
    const share = this.#shareOf(verificationBudget);
    const needed = verificationOf(set) === "strict" ? this.#callsForBlocks(chain.blockTimeMs) : 0;
    const perSecond = Math.max(LEAST_BUDGET, share.limit / 1_000, needed);
    return { perSecond, burst: Math.max(1, perSecond * BURST_SECONDS) };
  }

  /** Records that a block has to be checked. */
  #noteBlock(): void {
    this.#blocksAtMs.push(this.#parts.runtime.now());
    if (this.#blocksAtMs.length > MAX_BLOCKS) this.#blocksAtMs.shift();
  }

  /**
   * Calls a second that are needed if every block is checked: at the pace of the chain, or that of
   * its blocks of late if they come faster. A provider may invent any number of blocks, so that no
   * more count than the chain can have.
   */
  #callsForBlocks(blockTimeMs: number): number {
    const sinceMs = this.#parts.runtime.now() - PACE_MS;
    while ((this.#blocksAtMs[0] ?? sinceMs) < sinceMs) this.#blocksAtMs.shift();
    const usual = PACE_MS / blockTimeMs;
    const blocks = Math.max(usual, Math.min(this.#blocksAtMs.length, usual * MOST_PACE));
    return (blocks * CALLS_PER_BLOCK * 1_000) / PACE_MS;
  }

  #shareOf(budget: number): Allowance {
    if (this.#share !== null && this.#budget === budget) return this.#share;
    const { shares = WHOLE_SHARES, runtime } = this.#parts;
    this.#budget = budget;
    this.#share = shares.of(`log checks ${this.#key}`, budget * 1_000, {
      used: () => 0,
      wanted: () => {
        const { calls, sinceMs } = this.#wanted;
        this.#wanted = { calls: 0, sinceMs: runtime.now() };
        return (calls * 1_000_000) / Math.max(1_000, runtime.now() - sinceMs);
      },
    });
    return this.#share;
  }

  #trustNow(): BloomTrust {
    this.#trust = trustAt(this.#trust, this.#parts.runtime.now());
    return this.#trust;
  }

  /** Records that the bloom of a block excludes a log of it. */
  distrust(hash: string): void {
    const { profile, chain } = this.counts;
    if (this.#trustNow().kind !== "off")
      this.#parts.log?.warn(
        { profile, chain, block_hash: hash },
        "a logs bloom is wrong: blooms of this chain are not used for a day",
      );
    this.#trust = disproved(this.#parts.runtime.now());
  }

  /**
   * Whether a bloom that excludes logs is confirmed: two providers sent it, unless only one sends
   * heads at all.
   */
  #isConfirmed({ providers }: SeenBloom): boolean {
    if (providers.size > 1) return true;
    const sinceMs = this.#parts.runtime.now() - ALARMED_MS;
    for (const [id, atMs] of this.#showed) if (atMs < sinceMs) this.#showed.delete(id);
    return this.#showed.size <= 1;
  }
}

function isOther(left: Buffer | null, right: Buffer | null): boolean {
  return left !== null && right !== null && !left.equals(right);
}

/** Most profiles and chains that are remembered; beyond that the oldest starts from nothing. */
const MAX_REMEMBERED = 10_000;

/** The log checks of every profile and chain that has streams, and their counts for display. */
export class LogCheckRegistry {
  readonly #parts: LogChecksParts;
  readonly #blockLogs = new BlockLogs();
  readonly #byKey = new Map<string, LogChecks>();
  readonly #byTracker = new WeakMap<Tracker, Set<LogChecks>>();
  readonly #counts = new CountsByChain(() => ({ ...NO_CHECKS }));

  constructor(parts: LogChecksParts) {
    this.#parts = parts;
  }

  /** The checks of one profile on the chain of a tracker. */
  of(profile: string, tracker: Tracker): LogChecks {
    const key = `${profile} ${tracker.set.chain.chainName}`;
    const checks =
      this.#byKey.get(key) ??
      new LogChecks(key, this.#parts, this.#counts.of(profile, tracker), this.#blockLogs);
    checks.bind(tracker);
    this.#byKey.set(key, checks);
    this.#byTracker.set(tracker, (this.#byTracker.get(tracker) ?? new Set()).add(checks));
    keepNewest(this.#byKey, MAX_REMEMBERED);
    return checks;
  }

  /** Records a head that a provider pushed. */
  see(tracker: Tracker, provider: Provider, head: Head): void {
    if (verificationOf(tracker.set) === "off") return;
    for (const checks of this.#byTracker.get(tracker) ?? [])
      checks.see(provider, head.hash, head.raw);
  }

  counts() {
    return this.#counts.all();
  }

  forgetChains(names: ReadonlySet<string>): void {
    this.#counts.forgetChains(names);
    for (const key of this.#byKey.keys())
      if (names.has(key.slice(key.indexOf(" ") + 1))) this.#byKey.delete(key);
  }
}
