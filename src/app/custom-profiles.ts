// Builds Custom profiles: the sealer of documents, the loader, and what the API needs to write
// them.
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import type { HostedConfig } from "../config/hosted.ts";
import type { AddressRules } from "../core/public-address.ts";
import {
  PROFILE_LOADER_LIMITS,
  ProfileLoader,
  type ServedProfiles,
} from "../hosted/profiles/profile-loader.ts";
import { SEALED_PROFILES } from "../hosted/profiles/profiles.ts";
import type { Runtime } from "../runtime.ts";
import { localSecret, Sealer } from "../secrets/sealer.ts";
import type { JobClaims } from "../shared/nodes/job-claims.ts";
import { resealOnce } from "../shared/nodes/resealing.ts";
import type { Store } from "../shared/store/store.ts";
import type { CustomParts, HandlerParts } from "../web/api/parts.ts";

/** The provider side of Custom profiles. */
export interface CustomServing {
  readonly served: ServedProfiles;
  /** Allowed addresses of their providers. */
  readonly rules: AddressRules;
  readonly check: CustomParts["check"];
  readonly status: CustomParts["status"];
  /** The configured chains, as of now. */
  readonly chains: HandlerParts["chains"];
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

/** Custom profiles, ready to be served. */
export interface CustomHosting {
  readonly loader: ProfileLoader;
  /** What the API writes profiles with. */
  readonly written: Omit<CustomParts, "changed">;
}

/**
 * Opens Custom profiles, with none loaded. Reseals documents that were sealed with the previous
 * secret.
 */
export async function openCustomProfiles(parts: CustomHostingParts): Promise<CustomHosting> {
  const { config, settings, log, store, claims, serving } = parts;
  const sealer = new Sealer(config.secret ?? localSecret(config.dataDir), config.previousSecret);
  await resealOnce({ store, claims, log, sealer }, "profiles", SEALED_PROFILES);
  const { chains, rules, served, check, status } = serving;
  const limits = { ...PROFILE_LOADER_LIMITS, maxLoaded: settings.maxLoadedProfiles };
  return {
    loader: new ProfileLoader({ ...parts, sealer, chains, rules, served, limits }),
    written: {
      sealer,
      rules,
      check,
      status,
      maxProfiles: settings.maxProfiles,
      requestsPerSecond: settings.buckets.custom.perSecond,
    },
  };
}
