// Regions: how near a provider is to this node, and whether it may be asked from here. The only
// place that compares regions. Knows neither strategies nor health.

/** What a node does about the regions of providers. The first one is the default. */
export const REGION_PREFERENCES = ["prefer", "only", "off"] as const;
/**
 * `prefer`: providers of its own region come first where the strategy has no better reason. `only`:
 * no others are asked. `off`: regions are ignored.
 */
export type RegionPreference = (typeof REGION_PREFERENCES)[number];

/** Where a provider stands for a node. */
export interface RegionPlacement {
  /** Lower is nearer: the node's own region, then no stated region, then another one. */
  readonly regionRank: number;
  /** Why the node does not ask it; null = it may. */
  readonly reason: "other_region" | null;
}

/**
 * Where a provider stands for a node of the region `own` (null = it has none). Under `only`, a
 * provider without a region counts as one of another: nothing tells where it is.
 */
export function regionPlacement(
  { region }: { readonly region: string | null },
  preference: RegionPreference,
  own: string | null,
): RegionPlacement {
  if (preference === "off" || own === null || region === own)
    return { regionRank: 0, reason: null };
  if (preference === "only") return { regionRank: 2, reason: "other_region" };
  return { regionRank: region === null ? 1 : 2, reason: null };
}
