// An act of the soak under way: what everybody in it shares. Does nothing itself.
import type { Audience } from "./audience.ts";
import type { LiveChain } from "./chain.ts";
import type { Figures } from "./figures.ts";
import type { Site } from "./site.ts";

/** What an act is to be. */
export interface ActPlan {
  readonly failovers: number;
  readonly random: () => number;
  /** With `priority` every subscription is on one provider, and all are lost at once. */
  readonly strategy: "load-balanced" | "priority";
  readonly socketsOnly: boolean;
  /** Whether the service listens to the heads of every provider. */
  readonly socketHeads: boolean;
  readonly onRound: (figures: Figures) => void;
}
/** An act under way. */
export interface ActFixture {
  readonly chain: LiveChain;
  readonly site: Site;
  readonly audience: Audience;
  readonly plan: ActPlan;
  readonly figures: Figures;
  /** Providers that are never broken for long: somebody listens to them and to no other. */
  readonly pinned: readonly string[];
}
