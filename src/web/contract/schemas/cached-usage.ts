// The fields of answers about usage that count calls answered from the cache.
import { z } from "zod";

/** Part of `calls` and of their compute units. */
export const cachedUsage = {
  cached_calls: z.int().min(0).describe("Of the calls those that were answered from the cache."),
  cached_cu: z
    .int()
    .min(0)
    .describe("Of the compute units those of calls that were answered from the cache."),
};
