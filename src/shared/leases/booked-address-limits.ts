// Rate limits by network address that hold exactly for several processes: each token is asked of
// the book before it is taken. For what is rare and costs money: new keys with starting credit.
import { AddressLimit, networkOf } from "../../core/billing/address-limit.ts";
import { equalPartOf, type RequestTokens } from "../../core/billing/shared-limit.ts";
import type { OpenCreationLimit } from "../../core/workers/shared-address-limits.ts";
import { limitDigest } from "./rate-shares.ts";

/** Scopes of addresses begin with this: addresses are many, and must not displace accounts. */
export const ADDRESS_SCOPE = "address ";

/** What limits are opened with. */
export interface BookedLimitParts {
  readonly request: RequestTokens;
  /** Processes that take of the limits. */
  readonly members: () => number;
}

/** Limits whose book is asked by `request`. */
export function bookedAddressLimits({ request, members }: BookedLimitParts): OpenCreationLimit {
  return (name, size) => {
    const alone = new AddressLimit(equalPartOf(size, Math.max(1, members())));
    return {
      async take(address, nowMs) {
        const scope = ADDRESS_SCOPE + limitDigest(`${name} ${networkOf(address)}`);
        try {
          const [grant] = await request([{ scope, size, wanted: 1, owed: 0 }]);
          if (grant !== undefined) return grant.granted > 0 ? 0 : Math.max(1, grant.waitMs);
        } catch {
          // Requests for limits of accounts report this; here an equal part holds.
        }
        return alone.take(address, nowMs);
      },
    };
  };
}
