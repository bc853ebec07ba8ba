// Which view of the chain a caller gets: the modes, and the one that holds where nothing else is
// said. Values only: resolves no block.
import type { Consistency } from "../provider/profile.ts";

export type { Consistency } from "../provider/profile.ts";

/** The modes, as spelled in the configuration, in keys and in requests. */
export const CONSISTENCIES: readonly Consistency[] = ["tip", "caller", "off"];

/** The mode where neither request, key, profile nor service says another. */
export const DEFAULT_CONSISTENCY: Consistency = "tip";
