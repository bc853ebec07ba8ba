// Loads Custom profiles into memory on demand, reloads them after changes, and evicts idle ones.
// Bounded in number. Knows no provider: profiles are served behind a port.

import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Chain } from "../../core/provider/chain.ts";
import { type Profile, profileId } from "../../core/provider/profile.ts";
import type { AddressRules } from "../../core/public-address.ts";
import type { Runtime } from "../../runtime.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import type { Store } from "../../shared/store/store.ts";
import { readDocument, servedPart } from "./document.ts";
import { type ProfileRef, profileBySlug } from "./profiles.ts";

/** The port to the registry that serves profiles. */
export interface ServedProfiles {
  /** Starts serving a profile, or replaces the one with its id. */
  put(profile: Profile): void;
  remove(...ids: readonly string[]): void;
  has(id: string): boolean;
}

/** The limits that are no setting; tests tighten them. */
export const PROFILE_LOADER_LIMITS = {
  idleMs: 600_000,
  /** Time that a caller waits for a profile. */
  waitMs: 2_000,
  /** Time before a profile that failed to load is tried again. */
  failedMs: 5_000,
} as const;

/** Beside them the number of profiles in memory. */
export type ProfileLoaderLimits = Readonly<
  Record<keyof typeof PROFILE_LOADER_LIMITS | "maxLoaded", number>
>;

export interface ProfileLoaderParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly sealer: Sealer;
  /** The configured chains, as of now. */
  readonly chains: () => readonly Chain[];
  readonly rules: AddressRules;
  readonly served: ServedProfiles;
  readonly limits: ProfileLoaderLimits;
  readonly onError: (error: unknown) => void;
}

class LoadedProfile {
  readonly id: string;
  readonly ref: ProfileRef;
  usedAtMs: number;
  /** The load under way; null = none. */
  loading: Promise<void> | null = null;
  /** True if the profile has changed since its load began. */
  stale = false;
  /** Why loading failed; null = it succeeded. */
  why: Fault | null = null;
  failedAtMs = 0;

  constructor(ref: ProfileRef, nowMs: number) {
    this.id = idOf(ref);
    this.ref = ref;
    this.usedAtMs = nowMs;
  }
}

const SWEEP_MS = 30_000;

/** Loads Custom profiles and keeps them current. */
export class ProfileLoader {
  readonly #parts: ProfileLoaderParts;
  /** In order of use, least recently used first. */
  readonly #entries = new Map<string, LoadedProfile>();
  /** Reloads profiles that were changed elsewhere. */
  #reloading: Promise<void> = Promise.resolve();
  #cancelSweep: () => void;

  constructor(parts: ProfileLoaderParts) {
    this.#parts = parts;
    this.#cancelSweep = parts.runtime.after(SWEEP_MS, () => this.#sweep());
  }

  /** Number of profiles in memory. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Loads a profile. Calls back once: null = it is being served, else why not. The returned
   * function cancels.
   */
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

  /** Marks a profile as used. */
  touch(ref: ProfileRef): void {
    this.#used(ref);
  }

  /** Reloads a profile that was changed or deleted, if it is in memory. */
  async changed(ref: ProfileRef): Promise<void> {
    const entry = this.#entries.get(idOf(ref));
    if (entry === undefined) return;
    entry.stale = true;
    await this.#load(entry);
  }

  /**
   * Reloads profiles in memory that were changed elsewhere, one after the other; null = any may
   * have been. Keeps failures to itself.
   */
  changedElsewhere(ids: ReadonlySet<string> | null): void {
    for (const [id, entry] of this.#entries) if (ids === null || ids.has(id)) entry.stale = true;
    this.#reloading = this.#reloading.then(() => this.#reloadStale());
  }

  /** Resolves when what was changed elsewhere so far is in use. */
  settled(): Promise<void> {
    return this.#reloading;
  }

  close(): void {
    this.#cancelSweep();
  }

  /** The state of a profile without loading it. */
  #settled({ id, loading, why, failedAtMs }: LoadedProfile): Fault | null | "unknown" {
    const { served, runtime, limits } = this.#parts;
    if (served.has(id)) return null;
    return loading === null && why !== null && runtime.now() - failedAtMs < limits.failedMs
      ? why
      : "unknown";
  }

  /** The entry of a profile, marked as most recently used. */
  #used(ref: ProfileRef): LoadedProfile | undefined {
    const id = idOf(ref);
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    entry.usedAtMs = this.#parts.runtime.now();
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    return entry;
  }

  /** Adds an entry; null = the loader is full. */
  #begin(ref: ProfileRef): LoadedProfile | null {
    const { runtime, limits } = this.#parts;
    const nowMs = runtime.now();
    const [oldest] = this.#entries.values();
    if (this.#entries.size >= limits.maxLoaded && oldest !== undefined) {
      if (nowMs - oldest.usedAtMs < SWEEP_MS || oldest.loading !== null) return null;
      this.#forget(oldest);
    }
    const entry = new LoadedProfile(ref, nowMs);
    this.#entries.set(entry.id, entry);
    return entry;
  }

  async #reloadStale(): Promise<void> {
    for (const entry of [...this.#entries.values()]) if (entry.stale) await this.#load(entry);
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
   * Loads a profile once. A profile that cannot be read is no longer served; if the store fails,
   * nothing changes.
   */
  async #loadOnce({ id, ref }: LoadedProfile): Promise<Fault | null> {
    const { served } = this.#parts;
    const record = await profileBySlug(this.#parts, ref);
    if (this.#entries.get(id) === undefined) return NOT_PREPARED;
    const { rules } = this.#parts;
    const chains = this.#parts.chains();
    const profile =
      record?.document == null
        ? null
        : readDocument({ chains, rules }, ref, servedPart(record.document, chains));
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
      // The served version is outdated, because the store failed during a reload: loads it again.
      else if (entry.why !== null && served.has(entry.id)) void this.#load(entry);
    }
    this.#cancelSweep = runtime.after(SWEEP_MS, () => this.#sweep());
    // Removed together, because each change of the registry invalidates caches.
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
