// What workers tell each other of the health of providers, and the check of each message on
// arrival. A provider set is named by its key: profile id and chain name.
import { isRecord } from "../../core/fields.ts";
import type { Effect } from "../../core/provider/attempt.ts";
import type { Cordon } from "../../core/provider/health.ts";
import type { Transport } from "../../core/provider/profile.ts";
import { isHeight as isSafeHeight } from "../../core/rpc/block-height.ts";
import { OPTIONAL_TAGS } from "../../core/rpc/block-tag.ts";
import { type BlockRef, NO_BLOCK } from "../../core/rpc/call.ts";
import type { Topic } from "../../core/workers/bus.ts";
import type { HealthHint, Probe } from "./tracker.ts";

/** A provider of a set, over one transport. */
interface NamedChannel {
  readonly set: string;
  /** Id of the provider. */
  readonly provider: string;
  readonly transport: Transport;
}

/** What a probe found, `ageMs` ago. */
export interface ProbeMessage extends NamedChannel, Pick<Probe, "latencyMs" | "result"> {
  readonly ageMs: number;
}

/** A head that a provider pushed; `raw` null = it is too long to be passed on. */
export interface HeadMessage {
  readonly set: string;
  readonly provider: string;
  readonly height: number;
  readonly raw: Uint8Array | null;
}

/** What a provider reports as final, or as safe. */
export interface NamedBlockMessage {
  readonly set: string;
  readonly provider: string;
  readonly height: number;
}

/** Whether a provider reads state by the hash of a block. */
export interface HashReadsMessage {
  readonly set: string;
  readonly provider: string;
  readonly served: boolean;
}

/** Whether every head of a provider is heard. */
export interface ListeningMessage {
  readonly set: string;
  readonly provider: string;
  readonly listening: boolean;
}

/** What a worker has learned from calls. */
export interface HintMessage extends NamedChannel {
  readonly hint: HealthHint;
}

/** Which provider sets a worker serves: all of them, or what has changed. */
export interface ServedMessage {
  readonly whole: boolean;
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/**
 * Everything that a worker has told before, so that a lost message does no lasting harm, and a sign
 * that it still probes what belongs to it.
 */
export interface StateMessage {
  /** Keys of all sets that it serves. */
  readonly served: readonly string[];
  /** Those that it probes. */
  readonly owned: readonly string[];
  /** Providers of those whose heads it hears, by set. */
  readonly listening: readonly (readonly [set: string, provider: string])[];
}

/** The longest header that is passed on. */
export const MAX_HEAD_BYTES = 16_384;
const MAX_KEYS = 10_000;
const MAX_TEXT = 512;
const MAX_COOLDOWN_MS = 3_600_000;

export const PROBES: Topic<ProbeMessage> = {
  name: "health.probe",
  parse(value) {
    const channel = channelIn(value);
    if (channel === null || !isRecord(value)) return null;
    const { latencyMs, ageMs } = value;
    const result = resultIn(value["result"]);
    if (result === null || !isDuration(latencyMs) || !isDuration(ageMs)) return null;
    return { ...channel, latencyMs, ageMs, result };
  },
};

export const HEADS: Topic<HeadMessage> = {
  name: "health.head",
  parse(value) {
    if (!isRecord(value)) return null;
    const { set, provider, height, raw } = value;
    if (!isText(set) || !isText(provider) || !isHeight(height)) return null;
    if (raw !== null && !(raw instanceof Uint8Array && raw.length <= MAX_HEAD_BYTES)) return null;
    return { set, provider, height, raw };
  },
};

export const FINALIZED: Topic<NamedBlockMessage> = {
  name: "health.finalized",
  parse: namedBlockIn,
};

export const SAFE: Topic<NamedBlockMessage> = { name: "health.safe", parse: namedBlockIn };

export const HASH_READS: Topic<HashReadsMessage> = {
  name: "health.hash_reads",
  parse(value) {
    if (!isRecord(value)) return null;
    const { set, provider, served } = value;
    return isText(set) && isText(provider) && typeof served === "boolean"
      ? { set, provider, served }
      : null;
  },
};

export const LISTENING: Topic<ListeningMessage> = {
  name: "health.listening",
  parse(value) {
    if (!isRecord(value)) return null;
    const { set, provider, listening } = value;
    return isText(set) && isText(provider) && typeof listening === "boolean"
      ? { set, provider, listening }
      : null;
  },
};

export const HINTS: Topic<HintMessage> = {
  name: "health.hint",
  parse(value) {
    const channel = channelIn(value);
    const hint = channel === null || !isRecord(value) ? null : hintIn(value["hint"]);
    return channel === null || hint === null ? null : { ...channel, hint };
  },
};

/** A worker finds no provider of the set usable. */
export const OUTAGES: Topic<string> = {
  name: "health.outage",
  parse: (value) => (isText(value) ? value : null),
};

export const SERVED: Topic<ServedMessage> = {
  name: "health.served",
  parse(value) {
    if (!isRecord(value)) return null;
    const { whole, added, removed } = value;
    return typeof whole === "boolean" && areKeys(added) && areKeys(removed)
      ? { whole, added, removed }
      : null;
  },
};

export const STATES: Topic<StateMessage> = {
  name: "health.state",
  parse(value) {
    if (!isRecord(value)) return null;
    const { served, owned, listening } = value;
    return areKeys(served) && areKeys(owned) && arePairs(listening)
      ? { served, owned, listening }
      : null;
  },
};

function arePairs(value: unknown): value is readonly (readonly [string, string])[] {
  return (
    Array.isArray(value) &&
    value.length <= MAX_KEYS &&
    value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(isText))
  );
}

function namedBlockIn(value: unknown): NamedBlockMessage | null {
  if (!isRecord(value)) return null;
  const { set, provider, height } = value;
  return isText(set) && isText(provider) && isHeight(height) ? { set, provider, height } : null;
}

function channelIn(value: unknown): NamedChannel | null {
  if (!isRecord(value)) return null;
  const { set, provider, transport } = value;
  return isText(set) && isText(provider) && (transport === "http" || transport === "ws")
    ? { set, provider, transport }
    : null;
}

function resultIn(value: unknown): Probe["result"] | null {
  if (!isRecord(value)) return null;
  const { kind, chainId, height, category, cordon } = value;
  if (kind === "failed" && isText(category))
    return isCordon(cordon) ? { kind, category, cordon } : { kind, category };
  return kind === "ok" && isHeight(chainId) && isHeight(height) ? { kind, chainId, height } : null;
}

function hintIn(value: unknown): HealthHint | null {
  if (!isRecord(value)) return null;
  const { kind, methodName } = value;
  if (kind === "opened" || kind === "closed") return { kind };
  const effect = kind === "observed" ? effectIn(value["effect"]) : null;
  return effect === null || !isText(methodName)
    ? null
    : { kind: "observed", methodName, effect, block: blockIn(value["block"]) };
}

function effectIn(value: unknown): Effect | null {
  if (!isRecord(value)) return null;
  const { kind, ms, scope, reason, what, maxBlockRange } = value;
  switch (kind) {
    case "cooldown":
      if (!isDuration(ms) || ms > MAX_COOLDOWN_MS) return null;
      return scope === "method" ? { kind, ms, scope } : { kind, ms };
    case "cordon":
      return isCordon(reason) ? { kind, reason } : null;
    case "lag":
      return { kind };
    case "learn":
      if (what === "range")
        return maxBlockRange === null || isHeight(maxBlockRange)
          ? { kind, what, maxBlockRange }
          : null;
      return what === "method" || what === "tag" || what === "pruned" ? { kind, what } : null;
    default:
      return null;
  }
}

function isCordon(value: unknown): value is Cordon {
  return value === "auth" || value === "quota" || value === "wrong_chain";
}

/** A block that makes no sense reads as none: less is learned then. */
function blockIn(value: unknown): BlockRef {
  if (!isRecord(value)) return NO_BLOCK;
  const { kind, from, to } = value;
  if (kind === "tag") {
    const tag = OPTIONAL_TAGS.find((known) => known === value["tag"]);
    return tag === undefined ? NO_BLOCK : { kind, tag };
  }
  if (kind === "earliest" || kind === "hash") return { kind };
  if (kind === "number" && isHeight(value["number"])) return { kind, number: value["number"] };
  const isBound = (bound: unknown): bound is number | null => bound === null || isHeight(bound);
  return kind === "range" && isBound(from) && isBound(to) ? { kind, from, to } : NO_BLOCK;
}

function areKeys(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= MAX_KEYS && value.every(isText);
}

function isHeight(value: unknown): value is number {
  return typeof value === "number" && isSafeHeight(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_TEXT;
}

function isDuration(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
