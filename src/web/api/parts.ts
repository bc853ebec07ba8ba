// What handlers of the HTTP API are made with.
import type { Chain } from "../../core/chain.ts";
import type { Tariff } from "../../core/price.ts";
import type { AccountTerms } from "../../hosted/accounts.ts";
import type { Difference } from "../../hosted/audit.ts";
import type { AddressLimit } from "../../hosted/creation-limit.ts";
import type { Changes } from "../../hosted/keys.ts";
import type { Store } from "../../hosted/store.ts";
import type { World } from "../../world.ts";

/** What handlers are made with. */
export interface HandlerParts {
  readonly world: World;
  readonly store: Store;
  readonly changes: Changes;
  /** Writes what an account (null = any) used up to now, as far as that can be done soon. False = there was nothing to write. */
  readonly settle: (accountId: string | null) => Promise<boolean>;
  readonly chains: readonly Chain[];
  /** Slugs of the profiles that every account can use. */
  readonly profiles: () => readonly string[];
  readonly settings: HandlerSettings;
  /** Keys that an address creates. */
  readonly creations: AddressLimit;
  /** Changes that an account makes. */
  readonly writes: AddressLimit;
  /** What does not add up in the books; empty = nothing. */
  readonly audit: () => Promise<readonly Difference[]>;
}

/** Settings of the hosted service that handlers read. */
export interface HandlerSettings extends AccountTerms {
  readonly startingGrantCu: number;
  readonly tariff: Tariff;
  readonly maxKeys: number;
}
