// Builds Custom profiles: the sealer of documents, the loader, and what the API needs to write
// them.
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import type { HostedConfig } from "../config/hosted.ts";
import type { AddressRules } from "../core/public-address.ts";
import type { KeyCache } from "../hosted/keys/key-cache.ts";
import {
  PROFILE_LOADER_LIMITS,
  ProfileLoader,
  type ServedProfiles,
} from "../hosted/profiles/profile-loader.ts";
import { resealProfiles } from "../hosted/profiles/profiles.ts";
import type { Runtime } from "../runtime.ts";
import { localSecret, Sealer } from "../secrets/sealer.ts";
import type { JobClaims } from "../shared/nodes/job-claims.ts";
import type { Store } from "../shared/store/store.ts";
import type { CustomParts, HandlerParts } from "../web/api/parts.ts";

/** The provider side of Custom profiles. */
export interface CustomServing {
  readonly served: ServedProfiles;
  /** Allowed addresses of their providers. */
  readonly rules: AddressRules;
  readonly check: CustomParts["check"];
  readonly status: CustomParts["status"];
  /** Names of the chains of a managed profile. */
  readonly servedChains: HandlerParts["servedChains"];
}

export interface CustomHostingParts {
  readonly config: Config;
  readonly settings: HostedConfig;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly store: Store;
  /** Which node seals anew. */
  readonly claims: JobClaims;
  readonly serving: CustomServing;
  readonly onError: (error: unknown) => void;
}

/**
 * Opens Custom profiles, with none loaded. Reseals documents that were sealed with the previous
 * secret.
 */
export async function openCustomProfiles(parts: CustomHostingParts): Promise<CustomHosting> {
  const { config, log, store, claims } = parts;
  const sealer = new Sealer(config.secret ?? localSecret(config.dataDir), config.previousSecret);
  if (config.previousSecret !== null)
    await claims.runIfDue({
      name: "reseal_profiles",
      everyMs: 0,
      run: async () =>
        log.info(
          { resealed: await resealProfiles({ store, sealer }) },
          "profiles are sealed with the present secret",
        ),
    });
  return new CustomHosting(parts, sealer);
}

/** Custom profiles, ready to be served. */
export class CustomHosting {
  readonly loader: ProfileLoader;
  readonly #parts: CustomHostingParts;
  readonly #sealer: Sealer;

  constructor(parts: CustomHostingParts, sealer: Sealer) {
    const { config, settings, runtime, store, serving, onError } = parts;
    this.#parts = parts;
    this.#sealer = sealer;
    this.loader = new ProfileLoader({
      store,
      runtime,
      sealer,
      chains: config.chains,
      rules: serving.rules,
      served: serving.served,
      limits: { ...PROFILE_LOADER_LIMITS, maxLoaded: settings.maxLoadedProfiles },
      onError,
    });
  }

  /** Takes a change of a profile in this process. */
  changedWith(keyCache: Pick<KeyCache, "accountChanged">): CustomParts["changed"] {
    return async (ref) => {
      // Key contexts first, so that no call is routed to a profile that is gone.
      await keyCache.accountChanged(ref.accountId);
      await this.loader.changed(ref);
    };
  }

  /** The parts with which the API writes profiles; `changed` tells of a change. */
  partsWith(changed: CustomParts["changed"]): CustomParts {
    const { serving, settings } = this.#parts;
    const { rules, check, status } = serving;
    return {
      sealer: this.#sealer,
      rules,
      check,
      status,
      maxProfiles: settings.maxProfiles,
      requestsPerSecond: settings.buckets.custom.perSecond,
      changed,
    };
  }
}
