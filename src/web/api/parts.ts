// What handlers of the HTTP API are made with.

import type { ManagedSlug } from "../../core/billing/access.ts";
import type { AddressLimit } from "../../core/billing/address-limit.ts";
import type { Invalidations } from "../../core/billing/invalidations.ts";
import type { Tariff } from "../../core/billing/price.ts";
import type { Chain } from "../../core/provider/chain.ts";
import type { Profile } from "../../core/provider/profile.ts";
import type { AddressRules } from "../../core/public-address.ts";
import type { MethodTable } from "../../core/rpc/method-table.ts";
import type { AccountTerms } from "../../hosted/accounts/accounts.ts";
import type { AuditFindings } from "../../hosted/audit/audit.ts";
import type { ProfileRef } from "../../hosted/profiles/profiles.ts";
import type { Payments } from "../../payments/payments.ts";
import type { Runtime } from "../../runtime.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import type { Store } from "../../store/store.ts";
import type { ProviderCheck } from "../../upstream/provider-check.ts";
import type { StatusOf } from "./provider-status.ts";

/** What handlers are made with. */
export interface HandlerParts {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly changes: Invalidations;
  /**
   * Writes what an account (null = any) used up to now, as far as that can be done soon. False =
   * there was nothing to write.
   */
  readonly settle: (accountId: string | null) => Promise<boolean>;
  readonly chains: readonly Chain[];
  /** Slugs of the profiles that every account can use. */
  readonly profiles: () => readonly string[];
  /**
   * Names of the chains that callers with a key are served by a managed profile, as it is
   * configured now.
   */
  readonly servedChains: (slug: ManagedSlug) => readonly string[];
  readonly settings: HandlerSettings;
  /** The method table as it is configured now. */
  readonly methods: () => MethodTable;
  readonly custom: CustomParts;
  /** An instance for development: callers on this machine may create as many keys as they like. */
  readonly devnet: boolean;
  /** Keys that an address creates. */
  readonly creations: AddressLimit;
  /** Changes that an account makes. */
  readonly writes: AddressLimit;
  /** Null = nothing can be bought. */
  readonly payments: Payments | null;
  /** What does not add up, in the books and on the payment chains. */
  readonly audit: () => Promise<AuditFindings>;
}

/** What Custom profiles are written with. */
export interface CustomParts {
  readonly sealer: Sealer;
  /** Where providers may be. */
  readonly rules: AddressRules;
  /** Profiles of one account. */
  readonly maxProfiles: number;
  /** On each Custom profile. */
  readonly requestsPerSecond: number;
  /** Asks every provider of a profile. */
  readonly check: (profile: Profile) => Promise<readonly ProviderCheck[]>;
  readonly status: StatusOf;
  /** Hears that a profile was written or deleted; done when that has taken effect. */
  readonly changed: (ref: ProfileRef) => Promise<void>;
}

/** Settings of the hosted service that handlers read. */
export interface HandlerSettings extends AccountTerms {
  readonly startingGrantCu: number;
  readonly tariff: Tariff;
  readonly maxKeys: number;
}
