// What the processes of a service tell each other of the health of providers, and how often: a
// provider that floods one of them with heads or refusals must not flood the others. A provider set
// is named by its key: profile id and chain name.

import { FULL_MS, take } from "../../core/billing/gcra.ts";
import { setNewest } from "../../core/newest.ts";
import type { StatedHistory } from "../../core/provider/history.ts";
import type { Provider, Transport } from "../../core/provider/profile.ts";
import type { Head } from "../../core/stream/chain-event.ts";
import type { Topic } from "../../core/workers/bus.ts";
import type { HealthHint, NamedTag } from "./provider-records.ts";
import type { Probe } from "./provider-state.ts";
import type { Tracker } from "./tracker.ts";

/** What one process has found out of a provider. */
export type HealthFact =
  /** What a probe found, `ageMs` ago. */
  | ({ readonly kind: "probe"; readonly ageMs: number } & Omit<Probe, "provider">)
  /** A head that it pushed; `head` null = that is too long to be passed on. */
  | { readonly kind: "head"; readonly height: number; readonly head: Head | null }
  /** The block that it names by a tag. */
  | { readonly kind: "named"; readonly tag: NamedTag; readonly height: number }
  /** Whether it reads state by the hash of a block. */
  | { readonly kind: "hash_reads"; readonly served: boolean }
  /** What it reports of its history. */
  | { readonly kind: "history"; readonly reported: StatedHistory }
  /** Whether every head of it is heard. */
  | { readonly kind: "listening"; readonly listening: boolean }
  /** What calls have taught. */
  | { readonly kind: "hint"; readonly transport: Transport; readonly hint: HealthHint };

/** Hears what was found out here, after the tracker that it concerns. */
export type FactListener = (tracker: Tracker, provider: Provider, fact: HealthFact) => void;

/** A fact of a provider of a set, by their names. */
export interface FactMessage {
  readonly set: string;
  readonly provider: string;
  readonly fact: HealthFact;
}

/** What has changed in the provider sets that a worker serves. */
export interface ServedMessage {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/**
 * A repetition of all that a worker told before, so that a lost message does no lasting harm, and a
 * sign that the worker still probes its own sets.
 */
export interface StateMessage {
  /** Keys of all sets that it serves. */
  readonly served: readonly string[];
  /** Those that it probes. */
  readonly owned: readonly string[];
  /** Providers of those whose heads it hears, by set. */
  readonly listening: readonly (readonly [set: string, provider: string])[];
}

export const FACTS: Topic<FactMessage> = { name: "health.fact" };

/** A worker finds no provider of the set usable. */
export const OUTAGES: Topic<string> = { name: "health.outage" };

export const SERVED: Topic<ServedMessage> = { name: "health.served" };

export const STATES: Topic<StateMessage> = { name: "health.state" };

/** Far more heads of a set than the providers of the fastest chain push together. */
const HEADS = { perSecond: 200, burst: 400 };
/** The same hint at most once a second. */
const HINTS = { perSecond: 1, burst: 1 };
const MAX_REMEMBERED = 4_096;
/** The longest header that is passed on. */
const MAX_HEAD_BYTES = 16_384;

/** Bounds what one process tells the others. */
export class FactLimit {
  readonly #fullAtMs = new Map<string, number>();

  /** A fact as it may be told now; null = it may not. */
  allowed({ set, provider, fact }: FactMessage, nowMs: number): HealthFact | null {
    if (fact.kind === "hint") {
      const about = aboutOf(fact.hint);
      const key = `${set} ${provider} ${fact.transport} ${about}`;
      return about === null || this.#takes(key, HINTS, nowMs) ? fact : null;
    }
    if (fact.kind !== "head") return fact;
    if (!this.#takes(set, HEADS, nowMs)) return null;
    const isLong = (fact.head?.raw.length ?? 0) > MAX_HEAD_BYTES;
    return isLong ? { ...fact, head: null } : fact;
  }

  #takes(key: string, size: typeof HEADS, nowMs: number): boolean {
    const after = take(this.#fullAtMs.get(key) ?? FULL_MS, size, nowMs);
    if (after === null) return false;
    setNewest(this.#fullAtMs, key, after, MAX_REMEMBERED);
    return true;
  }
}

/** What a hint is about; null = a circuit, which opens and closes rarely. */
function aboutOf(hint: HealthHint): string | null {
  if (hint.kind !== "observed") return null;
  const { effect, methodName } = hint;
  return `${effect.kind === "learn" ? effect.what : effect.kind} ${methodName}`;
}
