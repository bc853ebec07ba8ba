// How a call met the cache: what evidence, headers and metrics tell of it.
import type { CacheClass } from "./cache-terms.ts";

/** How a call met the cache. `bypass`: its caller wanted it asked, or pinned its provider. */
export type CacheUse =
  | { readonly result: "miss" | "bypass" }
  | {
      readonly result: "hit";
      readonly ageMs: number;
      readonly class: CacheClass;
      readonly tier: CacheTier;
    };

/** Where an answer was kept: in this process, or on the server that several nodes share. */
export type CacheTier = "memory" | "redis";

export const BYPASS: CacheUse = { result: "bypass" };
export const MISS: CacheUse = { result: "miss" };
