// Custom profiles in the composition root: their sealing, their way into memory, and what the API writes them with.
import type { Logger } from "pino";
import type { HostedConfig } from "./config/hosted.ts";
import type { Config } from "./config.ts";
import type { AddressRules } from "./core/public-address.ts";
import type { Holders } from "./hosted/holders.ts";
import { resealProfiles } from "./hosted/profiles.ts";
import { createPreparation, PREPARATION_LIMITS, type Preparation, type Shelf } from "./hosted/profiles-serving.ts";
import { createSealer, localSecret } from "./hosted/sealed.ts";
import type { Store } from "./hosted/store.ts";
import type { CustomParts, HandlerParts } from "./web/api/parts.ts";
import type { World } from "./world.ts";

/** The side of providers, as far as Custom profiles need it. */
export interface CustomServing {
  readonly shelf: Shelf;
  /** Where their providers may be. */
  readonly rules: AddressRules;
  readonly check: CustomParts["check"];
  readonly status: CustomParts["status"];
  /** Names of the chains of a managed profile. */
  readonly servedChains: HandlerParts["servedChains"];
}

/** What they are built with. */
export interface CustomHostingParts {
  readonly config: Config;
  readonly settings: HostedConfig;
  readonly world: World;
  readonly log: Logger;
  readonly store: Store;
  readonly serving: CustomServing;
  readonly onError: (error: unknown) => void;
}

/** Custom profiles, ready. */
export interface CustomHosting {
  readonly preparation: Preparation;
  /** What the API writes them with. */
  partsWith(holders: Pick<Holders, "accountChanged">): CustomParts;
}

/** Seals anew what was sealed with the secret before, and begins with nothing in memory. */
export async function openCustomProfiles(parts: CustomHostingParts): Promise<CustomHosting> {
  const { config, settings, world, log, store, serving, onError } = parts;
  const { rules, shelf, check, status } = serving;
  const sealer = createSealer(config.secret ?? localSecret(config.dataDir), config.previousSecret);
  if (config.previousSecret !== null) log.info({ resealed: await resealProfiles({ store, sealer }) }, "profiles are sealed with the present secret");
  const preparation = createPreparation({ store, world, sealer, chains: config.chains, rules, shelf, limits: PREPARATION_LIMITS, onError });
  return {
    preparation,
    partsWith: (holders) => ({
      sealer,
      rules,
      check,
      status,
      maxProfiles: settings.maxProfiles,
      requestsPerSecond: settings.buckets.custom.perSecond,
      async changed(ref) {
        // First who is sent where, so that nobody is sent to a profile that is gone.
        await holders.accountChanged(ref.accountId);
        await preparation.changed(ref);
      },
    }),
  };
}
