// Handler with which the operator removes kept answers.
import { apiFault } from "../../../core/faults/api-fault.ts";
import type { Handlers } from "../../contract/contract.ts";
import type { InstanceParts } from "../instance-parts.ts";

type CacheHandlers = Handlers<"purgeCache">;

/** Creates the handler. */
export function cacheHandlers({ purgeCache }: InstanceParts): CacheHandlers {
  return {
    async purgeCache({ query }) {
      const { profile = null, provider = null, method = null } = query;
      const chain = query.chain === undefined ? null : String(query.chain);
      const purged = await purgeCache({ profile, chain, provider, method });
      if (purged.kind === "unknown")
        return apiFault("not_found", `there is no such ${purged.what}`, {
          nextAction: "see GET /api/chains for chains, and the configuration for profiles",
        });
      const { secondTier, isComplete } = purged;
      return {
        kind: "answer",
        status: 200,
        body: {
          profile,
          chain: purged.chain,
          provider,
          method,
          complete: isComplete,
          redis: redisOf(secondTier),
        },
      };
    },
  };
}

function redisOf(secondTier: { readonly isGone: boolean } | null): "none" | "purged" | "pending" {
  if (secondTier === null) return "none";
  return secondTier.isGone ? "purged" : "pending";
}
