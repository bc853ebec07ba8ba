// Custom profiles in the composition root: the sealer, the loader, and what the API writes them
// with.
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import type { HostedConfig } from "../config/hosted.ts";
import type { AddressRules } from "../core/public-address.ts";
import type { KeyCache } from "../hosted/keys/key-cache.ts";
import {
  createProfileLoader,
  PROFILE_LOADER_LIMITS,
  type ProfileLoader,
  type ServedProfiles,
} from "../hosted/profiles/profile-loader.ts";
import { resealProfiles } from "../hosted/profiles/profiles.ts";
import type { Runtime } from "../runtime.ts";
import { createSealer, localSecret } from "../secrets/sealer.ts";
import type { Store } from "../store/store.ts";
import type { CustomParts, HandlerParts } from "../web/api/parts.ts";

/** The side of providers, as far as Custom profiles need it. */
export interface CustomServing {
  readonly served: ServedProfiles;
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
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly store: Store;
  readonly serving: CustomServing;
  readonly onError: (error: unknown) => void;
}

/** Custom profiles, ready. */
export interface CustomHosting {
  readonly loader: ProfileLoader;
  /** What the API writes them with. */
  partsWith(keyCache: Pick<KeyCache, "accountChanged">): CustomParts;
}

/** Seals anew what was sealed with the secret before, and begins with nothing in memory. */
export async function openCustomProfiles(parts: CustomHostingParts): Promise<CustomHosting> {
  const { config, settings, runtime, log, store, serving, onError } = parts;
  const { rules, served, check, status } = serving;
  const sealer = createSealer(config.secret ?? localSecret(config.dataDir), config.previousSecret);
  if (config.previousSecret !== null)
    log.info(
      { resealed: await resealProfiles({ store, sealer }) },
      "profiles are sealed with the present secret",
    );
  const loader = createProfileLoader({
    store,
    runtime,
    sealer,
    chains: config.chains,
    rules,
    served,
    limits: PROFILE_LOADER_LIMITS,
    onError,
  });
  return {
    loader,
    partsWith: (keyCache) => ({
      sealer,
      rules,
      check,
      status,
      maxProfiles: settings.maxProfiles,
      requestsPerSecond: settings.buckets.custom.perSecond,
      async changed(ref) {
        // Key contexts first, so that no call is routed to a profile that is gone.
        await keyCache.accountChanged(ref.accountId);
        await loader.changed(ref);
      },
    }),
  };
}
