// Custom profiles on their way into memory and out of it: loaded when first asked for, renewed when
// they change, evicted when idle. Bounded in number; knows no provider: serving is behind a
// port.

import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Chain } from "../../core/provider/chain.ts";
import { type Profile, profileId } from "../../core/provider/profile.ts";
import type { AddressRules } from "../../core/public-address.ts";
import type { Runtime } from "../../runtime.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import type { Store } from "../../store/store.ts";
import { readDocument, servedPart } from "./document.ts";
import { type ProfileRef, profileBySlug } from "./profiles.ts";

/** The port to what serves profiles. */
export interface ServedProfiles {
  /** Serves a profile from now on, new or in place of the one with its id. */
  put(profile: Profile): void;
  remove(...ids: readonly string[]): void;
  has(id: string): boolean;
}

/** Loads Custom profiles and keeps them current. */
export interface ProfileLoader {
  /**
   * Loads a profile. Calls back once: null = it is served now, else why not. The returned function
   * cancels.
   */
  prepare(ref: ProfileRef, done: (why: Fault | null) => void): () => void;
  /** Notes that a profile is used. */
  touch(ref: ProfileRef): void;
  /** Reloads a profile that was written or deleted, if it is in memory. */
  changed(ref: ProfileRef): Promise<void>;
  /** Profiles in memory. */
  readonly size: number;
  close(): void;
}

/** Bounds of what is kept. */
export interface ProfileLoaderLimits {
  /** Profiles in memory. */
  readonly maxLoaded: number;
  readonly idleMs: number;
  /** For how long a caller waits for a profile. */
  readonly waitMs: number;
  /** For how long one that could not be loaded is not tried again. */
  readonly failedMs: number;
}

/** The bounds used unless a test tightens them. */
export const PROFILE_LOADER_LIMITS: ProfileLoaderLimits = {
  maxLoaded: 500,
  idleMs: 600_000,
  waitMs: 2_000,
  failedMs: 5_000,
};

/** What profiles are loaded with. */
export interface ProfileLoaderParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly sealer: Sealer;
  readonly chains: readonly Chain[];
  readonly rules: AddressRules;
  readonly served: ServedProfiles;
  readonly limits: ProfileLoaderLimits;
  readonly onError: (error: unknown) => void;
}

/** A loader with nothing in memory. */
export function createProfileLoader(parts: ProfileLoaderParts): ProfileLoader {
  return new MemoryProfileLoader(parts);
}

interface LoadedProfile {
  readonly id: string;
  readonly ref: ProfileRef;
  usedAtMs: number;
  /** Under way; null = it is not. */
  loading: Promise<void> | null;
  /** It has changed since its loading began. */
  stale: boolean;
  /** Why it could not be loaded; null = it was. */
  why: Fault | null;
  failedAtMs: number;
}

const SWEEP_MS = 30_000;

class MemoryProfileLoader implements ProfileLoader {
  readonly #parts: ProfileLoaderParts;
  /** In the order of use, longest unused first. */
  readonly #entries = new Map<string, LoadedProfile>();
  #cancelSweep: () => void;

  constructor(parts: ProfileLoaderParts) {
    this.#parts = parts;
    this.#cancelSweep = parts.runtime.after(SWEEP_MS, () => this.#sweep());
  }

  get size(): number {
    return this.#entries.size;
  }

  prepare(ref: ProfileRef, done: (why: Fault | null) => void): () => void {
    const { runtime, limits } = this.#parts;
    const entry = this.#used(ref) ?? this.#begin(ref);
    if (entry === null) {
      done(TOO_MANY_PROFILES);
      return () => {};
    }
    const settled = this.#settled(entry);
    if (settled !== "unknown") {
      done(settled);
      return () => {};
    }
    let over = false;
    const answer = (why: Fault | null): void => {
      if (over) return;
      over = true;
      cancelWait();
      try {
        done(why);
      } catch (error) {
        this.#parts.onError(error);
      }
    };
    const cancelWait = runtime.after(limits.waitMs, () => answer(NOT_PREPARED));
    void this.#load(entry).then(() => answer(entry.why));
    return () => {
      over = true;
      cancelWait();
    };
  }

  touch(ref: ProfileRef): void {
    this.#used(ref);
  }

  async changed(ref: ProfileRef): Promise<void> {
    const entry = this.#entries.get(idOf(ref));
    if (entry === undefined) return;
    entry.stale = true;
    await this.#load(entry);
  }

  close(): void {
    this.#cancelSweep();
  }

  /** What is known of a profile without loading it. */
  #settled({ id, loading, why, failedAtMs }: LoadedProfile): Fault | null | "unknown" {
    const { served, runtime, limits } = this.#parts;
    if (served.has(id)) return null;
    return loading === null && why !== null && runtime.now() - failedAtMs < limits.failedMs
      ? why
      : "unknown";
  }

  /** The entry of a profile, as the one used last. */
  #used(ref: ProfileRef): LoadedProfile | undefined {
    const id = idOf(ref);
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    entry.usedAtMs = this.#parts.runtime.now();
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    return entry;
  }

  /** Takes a place; null = there is none. */
  #begin(ref: ProfileRef): LoadedProfile | null {
    const { runtime, limits } = this.#parts;
    const nowMs = runtime.now();
    const [oldest] = this.#entries.values();
    if (this.#entries.size >= limits.maxLoaded && oldest !== undefined) {
      if (nowMs - oldest.usedAtMs < SWEEP_MS || oldest.loading !== null) return null;
      this.#forget(oldest);
    }
    const entry: LoadedProfile = {
      id: idOf(ref),
      ref,
      usedAtMs: nowMs,
      loading: null,
      stale: false,
      why: null,
      failedAtMs: 0,
    };
    this.#entries.set(entry.id, entry);
    return entry;
  }

  #load(entry: LoadedProfile): Promise<void> {
    entry.loading ??= this.#loadUntilFresh(entry);
    return entry.loading;
  }

  async #loadUntilFresh(entry: LoadedProfile): Promise<void> {
    do {
      entry.stale = false;
      entry.why = await this.#loadOnce(entry).catch((error: unknown) => {
        this.#parts.onError(error);
        return NOT_PREPARED;
      });
    } while (entry.stale);
    if (entry.why !== null) entry.failedAtMs = this.#parts.runtime.now();
    entry.loading = null;
  }

  /**
   * Reads a profile and hands it over. What cannot be read is not served any more; a store that
   * fails changes nothing.
   */
  async #loadOnce({ id, ref }: LoadedProfile): Promise<Fault | null> {
    const { served } = this.#parts;
    const record = await profileBySlug(this.#parts, ref);
    if (this.#entries.get(id) === undefined) return NOT_PREPARED;
    const profile =
      record?.document == null
        ? null
        : readDocument(this.#parts, ref, servedPart(record.document, this.#parts.chains));
    if (profile === null || "kind" in profile) {
      served.remove(id);
      if (record === null) this.#entries.delete(id);
      return record === null ? NOT_PREPARED : UNREADABLE;
    }
    served.put(profile);
    return null;
  }

  #forget({ id }: LoadedProfile): void {
    this.#entries.delete(id);
    this.#parts.served.remove(id);
  }

  #sweep(): void {
    const { runtime, limits, served } = this.#parts;
    const idle: string[] = [];
    for (const entry of [...this.#entries.values()]) {
      if (entry.loading !== null) continue;
      if (runtime.now() - entry.usedAtMs >= limits.idleMs) {
        this.#entries.delete(entry.id);
        idle.push(entry.id);
      }
      // What serves is older than what is written down: the store failed when it should have been
      // read.
      else if (entry.why !== null && served.has(entry.id)) void this.#load(entry);
    }
    this.#cancelSweep = runtime.after(SWEEP_MS, () => this.#sweep());
    // All at once: each change of the profiles being served is felt everywhere.
    if (idle.length > 0) served.remove(...idle);
  }
}

function idOf({ accountId, slug }: ProfileRef): string {
  return profileId({ owner: accountId, slug });
}

const TOO_MANY_PROFILES = fault("not_prepared", "too many Custom profiles are in use", {
  retryAfterMs: SWEEP_MS,
});
const NOT_PREPARED = fault("not_prepared", "the profile is being loaded");
const UNREADABLE = fault("profile_config_unavailable", "the profile cannot be read right now");
