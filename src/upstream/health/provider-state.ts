// What is recorded of one provider: the health of its channels, and what it has told of the blocks
// of its chain. Live and mutable; a new tracker takes it over when a profile is reloaded.
import type { Channel } from "../../core/provider/attempt.ts";
import type { BlockPace } from "../../core/provider/blocks/block-time.ts";
import { BranchView } from "../../core/provider/blocks/branch-view.ts";
import type { FinalitySample } from "../../core/provider/blocks/finality.ts";
import type { HeadSample } from "../../core/provider/blocks/head.ts";
import { LearnedRate } from "../../core/provider/budget/learned-rate.ts";
import { type Cordon, circuitOf, Health, NEVER_MS } from "../../core/provider/health.ts";
import { historyOf, type PlannedHistory, type StatedHistory } from "../../core/provider/history.ts";
import type { Provider, ProviderSet, Transport } from "../../core/provider/profile.ts";
import type { RegionPlacement } from "../../core/provider/region.ts";
import { UnservedMethods } from "../../core/provider/unserved-methods.ts";
import type { ProviderBudget, ProviderBudgets } from "../budget/provider-budget.ts";
import { AttemptsOut, type Outstanding, type WatchedChannel } from "./silence-watch.ts";

/** A block in a request: by tag as its caller wrote it, by number, or by hash (EIP-1898). */
export type BlockForm = "tag" | "number" | "hash";

/** The result of one probe. */
export interface Probe extends Channel {
  readonly latencyMs: number;
  readonly result: /** `height` null = it is not asked for one. */
    | { readonly kind: "ok"; readonly chainId: number; readonly height: number | null }
    | {
        readonly kind: "failed";
        readonly category: string;
        /** It was told the same as a call before it: why the provider is excluded. */
        readonly cordon?: Cordon;
      };
}

/** That an operator took a provider out of use. */
export interface ProviderCordon {
  readonly reason: string | null;
  /** Wall clock. */
  readonly atMs: number;
  /** When it ends by itself, by the wall clock; null = never. */
  readonly untilMs: number | null;
}

/** What belongs to the providers of a set beside their past. */
export interface RecordSettings {
  /** The id of its profile; absent = it has none. */
  readonly profileId?: string;
  readonly region: string | null;
  /** Counts what is sent to providers with limits; absent = nobody has limits. */
  readonly budgets?: Pick<ProviderBudgets, "open">;
  /** Which providers of a set, by its key, an operator took out of use; absent = none. */
  readonly cordons?: { of(key: string, provider: Provider): ProviderCordon | null };
}

/** What belongs to a provider beside its past. */
type Placement = Pick<ProviderState, "region" | "budget" | "cordon" | "pace"> &
  Pick<ProviderSet, "archivalThreshold">;

/** The record of one provider. */
export class ProviderState {
  readonly provider: Provider;
  /** Where it stands for this node. */
  readonly region: RegionPlacement;
  readonly http: Health | null;
  readonly ws: Health | null;
  /** Unlisted methods that it does not serve, on any transport. */
  readonly unserved: UnservedMethods;
  /** The channels with their attempts in flight. */
  readonly watched: Readonly<Record<Transport, WatchedChannel | null>>;
  /** Null = an operator lets it be used. */
  cordon: ProviderCordon | null;
  /** What may still be sent to it; null = it has no limits. */
  readonly budget: ProviderBudget | null;
  /** The pace of its heights; null = the block time of the chain is declared. */
  readonly pace: BlockPace | null;
  /** How many requests a second it seems to bear. */
  readonly rate: LearnedRate;
  /** True = the service is subscribed to its heads. */
  listening = false;
  sample: HeadSample | null;
  /** The highest block that it was ever known to have; -1 = none. */
  highest: number;
  /** When its height last grew. */
  roseAtMs: number;
  /** What it last reported as final. */
  finalized: FinalitySample | null;
  /** What it last reported as safe. */
  safe: FinalitySample | null;
  /** A block that the provider said it lacks; null = its height tells what it has. */
  missing: number | null = null;
  /**
   * A block number at or below its own head that the provider refused; null = it has answered at
   * such a number since.
   */
  refused: number | null = null;
  /** When it refused the number of its own head; -Infinity = never. */
  neededTagAtMs: number;
  /** It answers reads of state by the hash of a block. */
  takesHash: boolean;
  /** When it was last found whether it does; -Infinity = never. */
  hashReadsAtMs: number;
  /** What it reports of its history; null = nothing. */
  reported: StatedHistory | null;
  /** When it may be asked for that again; -Infinity = it was not asked yet. */
  reportDueAtMs: number;
  /** How far back it has what calls read, before its refusals. */
  history: PlannedHistory;
  readonly #archivalThreshold: number;
  /** The blocks that it has pushed. */
  readonly branch: BranchView = new BranchView();
  /** When it last pushed a head (ms). */
  pushedAtMs: number = NEVER_MS;
  /** The number of that head; -1 = none. */
  pushedNumber = -1;
  /** Polls running that found it further than that, as if another machine pushed. */
  pollsAhead = 0;

  /** `before`: the record of the provider with the same id, before profiles changed. */
  constructor(provider: Provider, placement: Placement, before: ProviderState | null) {
    const http = before?.provider.url === provider.url ? before.http : null;
    const ws = before?.provider.wsUrl === provider.wsUrl ? before.ws : null;
    const past = http === null && ws === null ? null : before;
    const known = placement.cordon === null ? past : null;
    this.provider = provider;
    this.region = placement.region;
    this.budget = placement.budget;
    this.pace = placement.pace;
    this.cordon = placement.cordon;
    this.http = provider.url === null ? null : (http ?? new Health());
    this.ws = provider.wsUrl === null ? null : (ws ?? new Health());
    this.watched = {
      http: watchedOf({ provider, transport: "http" }, this.http, before),
      ws: watchedOf({ provider, transport: "ws" }, this.ws, before),
    };
    this.unserved = past?.unserved ?? new UnservedMethods();
    this.rate = past?.rate ?? new LearnedRate();
    this.sample = known?.sample ?? null;
    this.finalized = known?.finalized ?? null;
    this.safe = known?.safe ?? null;
    this.highest = known?.highest ?? -1;
    this.roseAtMs = before?.roseAtMs ?? NEVER_MS;
    this.neededTagAtMs = past?.neededTagAtMs ?? NEVER_MS;
    this.takesHash = past?.takesHash === true;
    this.hashReadsAtMs = past?.hashReadsAtMs ?? NEVER_MS;
    this.reported = past?.reported ?? null;
    this.reportDueAtMs = past?.reportDueAtMs ?? NEVER_MS;
    this.#archivalThreshold = placement.archivalThreshold;
    this.history = historyOf(provider, this.#archivalThreshold, this.reported);
  }

  /** Takes over what it reports of its history. */
  report(reported: StatedHistory): void {
    this.reported = reported;
    this.history = historyOf(this.provider, this.#archivalThreshold, reported);
  }

  /** This node may ask it without a pin, and no operator took it out of use. */
  get isPlaced(): boolean {
    return this.region.reason === null && this.cordon === null;
  }

  /** Whether one of its transports serves another chain. */
  get isWrongChain(): boolean {
    return this.http?.wrongChain === true || this.ws?.wrongChain === true;
  }

  /** Whether it may be asked, on a transport that is like this. */
  isUsable(nowMs: number, isSo = isUsable): boolean {
    return this.isPlaced && (isSo(this.http, nowMs) || isSo(this.ws, nowMs));
  }

  /** Whether others are asked first, so that it keeps credits or need not refuse. */
  isSpared(nowMs: number): boolean {
    return this.budget?.isAheadOfPace(nowMs) === true || this.rate.isBeyond(nowMs);
  }
}

/** Whether a channel may be asked: its circuit is not open, and nothing excludes it. */
export function isUsable(health: Health | null, nowMs: number): boolean {
  return (
    health !== null &&
    !health.wrongChain &&
    health.cordon === null &&
    circuitOf(health, nowMs).kind !== "open"
  );
}

/** The channel of a successor with the same health keeps the attempts in flight. */
function watchedOf(
  channel: Channel,
  health: Health | null,
  before: ProviderState | null,
): WatchedChannel | null {
  if (health === null) return null;
  const known = before?.watched[channel.transport] ?? null;
  if (known?.health === health) return { ...known, ...channel };
  const out = new AttemptsOut<Outstanding>();
  return { ...channel, health, out, askedAtMs: NEVER_MS, unheardSinceMs: NEVER_MS };
}
