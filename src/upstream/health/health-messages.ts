// What workers tell each other of the health of providers. A provider set is named by its key:
// profile id and chain name.
import type { Transport } from "../../core/provider/profile.ts";
import type { Topic } from "../../core/workers/bus.ts";
import type { HealthHint, Probe } from "./provider-records.ts";

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

export const PROBES: Topic<ProbeMessage> = { name: "health.probe" };

export const HEADS: Topic<HeadMessage> = { name: "health.head" };

export const FINALIZED: Topic<NamedBlockMessage> = { name: "health.finalized" };

export const SAFE: Topic<NamedBlockMessage> = { name: "health.safe" };

export const HASH_READS: Topic<HashReadsMessage> = { name: "health.hash_reads" };

export const LISTENING: Topic<ListeningMessage> = { name: "health.listening" };

export const HINTS: Topic<HintMessage> = { name: "health.hint" };

/** A worker finds no provider of the set usable. */
export const OUTAGES: Topic<string> = { name: "health.outage" };

export const SERVED: Topic<ServedMessage> = { name: "health.served" };

export const STATES: Topic<StateMessage> = { name: "health.state" };
