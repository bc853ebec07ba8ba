// The services and settings that handlers of the HTTP API are built from.

import type { ManagedSlug } from "../../core/billing/access.ts";
import type { AddressLimit, AwaitedAddressLimit } from "../../core/billing/address-limit.ts";
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
import type { RecordAction } from "./action-log.ts";
import type { StatusOf } from "./provider-status.ts";

export interface HandlerParts {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly changes: Invalidations;
  /**
   * Writes the usage of an account (null = of all) to the store, within a short time if possible.
   * False = nothing was pending.
   */
  readonly settle: (accountId: string | null) => Promise<boolean>;
  readonly chains: readonly Chain[];
  /** Slugs of the profiles that every account can use. */
  readonly profiles: () => readonly string[];
  /**
   * Names of the chains that a managed profile serves to callers with a key, in the current
   * configuration.
   */
  readonly servedChains: (slug: ManagedSlug) => readonly string[];
  readonly settings: HandlerSettings;
  /** The method table of the current configuration. */
  readonly methods: () => MethodTable;
  readonly custom: CustomParts;
  /** True = a development instance: callers on this machine may create any number of keys. */
  readonly devnet: boolean;
  /** Limits created keys by address. */
  readonly creations: AwaitedAddressLimit;
  /** Limits changes by account. */
  readonly writes: AddressLimit;
  /** Null = nothing can be bought. */
  readonly payments: Payments | null;
  /** Writes a line for each change by the operator. */
  readonly recordAction: RecordAction;
  /** Runs the audit: compares the books with each other and with the payment chains. */
  readonly audit: () => Promise<AuditFindings>;
}

/** What operations on Custom profiles need. */
export interface CustomParts {
  readonly sealer: Sealer;
  /** Which addresses providers may have. */
  readonly rules: AddressRules;
  /** Profiles per account. */
  readonly maxProfiles: number;
  /** Rate limit of each Custom profile. */
  readonly requestsPerSecond: number;
  /** Contacts every provider of a profile. */
  readonly check: (profile: Profile) => Promise<readonly ProviderCheck[]>;
  readonly status: StatusOf;
  /** Called after a profile was written or deleted; resolves once that has taken effect. */
  readonly changed: (ref: ProfileRef) => Promise<void>;
}

/** Settings of the hosted service that handlers read. */
export interface HandlerSettings extends AccountTerms {
  readonly startingGrantCu: number;
  readonly tariff: Tariff;
  readonly maxKeys: number;
}
