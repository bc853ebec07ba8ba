// What an act of the soak came to, in numbers and in words. Judges nothing.
import type { Break } from "./gate.ts";
import { type Breaches, noBreaches } from "./ledger.ts";

/**
 * How a failover was forced. `cascade`: the replacement failed as well, at once; `blackout`: all
 * failed together, for less than the bounds.
 */
export type Force = Break | "cascade" | "blackout";
/** What an act came to. */
export interface Figures {
  readonly failovers: Record<Force, number>;
  disturbances: number;
  lostNotifications: number;
  reorgs: number;
  blocks: number;
  heads: number;
  logs: number;
  takenBack: number;
  pending: number;
  calls: number;
  /** Calls refused because every circuit was open; only where sockets are the only way. */
  refused: number;
  /** Changes of providers as the service counts them: one for each subscription. */
  streamFailovers: number;
  filledBlocks: number;
  /** Longest time without heads around each failover. */
  readonly silencesMs: number[];
  readonly breaches: Breaches;
  /** Everything else that went wrong, in words. */
  readonly wrong: string[];
  rssStartBytes: number;
  rssMiddleBytes: number;
  rssEndBytes: number;
}

/** Nothing yet. */
export function noFigures(): Figures {
  return {
    failovers: { reset: 0, closed: 0, torn: 0, frozen: 0, cascade: 0, blackout: 0 },
    disturbances: 0,
    lostNotifications: 0,
    reorgs: 0,
    blocks: 0,
    heads: 0,
    logs: 0,
    takenBack: 0,
    pending: 0,
    calls: 0,
    refused: 0,
    streamFailovers: 0,
    filledBlocks: 0,
    silencesMs: [],
    breaches: noBreaches(),
    wrong: [],
    rssStartBytes: 0,
    rssMiddleBytes: 0,
    rssEndBytes: 0,
  };
}
