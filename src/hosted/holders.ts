// Who the secrets belong to, in memory: looked up once, forgotten when they change. Knows keys and accounts, and nothing of what they ask for.

import type { AddressLimit } from "../core/address-limit.ts";
import { type Fault, fault } from "../core/fault.ts";
import type { World } from "../world.ts";
import type { Credit } from "./credit.ts";
import { type OwnProfiles, ownProfiles } from "./custom-access.ts";
import { CLOSED, endOf, type Holder, holderOf, type KeyRow, keyRow, type Payer, payerOf, type Seat, type SocketEnd, update } from "./holder.ts";
import { readSecret } from "./secret.ts";
import type { Store } from "./store.ts";

/** Finds callers. */
export interface Holders {
  /** Whose secret it is; null = that has to be looked up. `digest` is the secret's. */
  identify(secret: string, digest: string): Holder | Fault | null;
  /** Looks a secret up, by its digest, for a caller at an IP address. Calls back once, unless the returned function was called before. */
  find(digest: string, address: string, done: (found: Holder | Fault) => void): () => void;
  /** A key has changed: reads it again, and closes its sockets if they may not stay. */
  keyChanged(keyId: string): Promise<void>;
  /** An account has changed. */
  accountChanged(accountId: string): Promise<void>;
  /** Calls `run` for everyone who has open sockets. */
  eachSeated(run: (holder: Holder) => void): void;
  /** Keeps an open socket; the returned function forgets it. */
  seat(holder: Holder, seat: Seat): () => void;
  /** Secrets in memory. */
  readonly size: number;
}

/** Bounds of what is kept. */
export interface HolderLimits {
  readonly maxHolders: number;
  readonly maxUnknown: number;
  readonly unknownMs: number;
  readonly maxLookups: number;
}

/** The bounds used unless a test tightens them. */
export const HOLDER_LIMITS: HolderLimits = { maxHolders: 250_000, maxUnknown: 10_000, unknownMs: 10_000, maxLookups: 256 };

/** What holders are kept with. */
export interface HolderParts {
  readonly store: Pick<Store, "db">;
  readonly world: World;
  readonly credit: Pick<Credit, "wake" | "retire">;
  /** Look-ups that found nobody: who has had too many may not look up another. */
  readonly misses: AddressLimit;
  readonly limits: HolderLimits;
  readonly onError: (error: unknown) => void;
}

/** Nobody is known yet. */
export function createHolders(parts: HolderParts): Holders {
  return new HolderCache(parts);
}

/** The longest that somebody waits for a look-up. */
const LONGEST_WAIT_MS = 2_000;
/** Reads of one secret whose key goes on changing. */
const MAX_READS = 5;
/** Time to the next try to read what has changed. */
const DOUBT_MS = 1_000;
/** Holders looked at to make room for one. */
const MAX_LOOKED_AT = 1_000;

type Found = (found: Holder | Fault) => void;

class HolderCache implements Holders {
  readonly #parts: HolderParts;
  readonly #holders = new Map<string, Holder>();
  /** Accounts that may have several keys, with how many of them are here. An anonymous one has a single key. */
  readonly #payers = new Map<string, { readonly payer: Payer; holders: number }>();
  /** When a secret was found to be nobody's. */
  readonly #unknown = new Map<string, number>();
  readonly #waiting = new Map<string, Set<Found>>();
  readonly #seated = new Set<Holder>();
  #changes = 0;
  /** Reads under way, and what has changed during them: by id, the count at that time. */
  #reading = 0;
  readonly #changedAt = new Map<string, number>();

  constructor(parts: HolderParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#holders.size;
  }

  identify(secret: string, digest: string): Holder | Fault | null {
    const holder = this.#holders.get(digest);
    if (holder?.bounds.doubtful === true) return null;
    if (holder !== undefined) return endOf(holder, this.#parts.world.wallMs()) ?? holder;
    const kind = readSecret(secret);
    if (kind === null) return CLOSED.malformed;
    if (kind !== "key") return kind === "token" ? CLOSED.notAKey : CLOSED.malformed;
    const atMs = this.#unknown.get(digest);
    if (atMs === undefined) return null;
    if (this.#parts.world.now() - atMs < this.#parts.limits.unknownMs) return CLOSED.unknown;
    this.#unknown.delete(digest);
    return null;
  }

  find(digest: string, address: string, done: Found): () => void {
    const waiting = this.#waiting.get(digest);
    const why = waiting === undefined ? this.#mayLookUp(address) : null;
    if (why !== null) {
      done(why);
      return () => {};
    }
    const list = waiting ?? new Set();
    list.add(done);
    if (waiting === undefined) {
      this.#waiting.set(digest, list);
      void this.#lookUp(digest, address);
    }
    return () => list.delete(done);
  }

  keyChanged(keyId: string): Promise<void> {
    return this.#readAgain(keyId, (it) => it.keyId === keyId);
  }

  accountChanged(accountId: string): Promise<void> {
    this.#parts.credit.wake(accountId);
    return this.#readAgain(accountId, (it) => it.payer.id === accountId);
  }

  eachSeated(run: (holder: Holder) => void): void {
    for (const holder of [...this.#seated]) run(holder);
  }

  seat(holder: Holder, seat: Seat): () => void {
    holder.seats ??= new Set();
    holder.seats.add(seat);
    this.#seated.add(holder);
    return () => {
      holder.seats?.delete(seat);
      if (holder.seats?.size === 0) this.#seated.delete(holder);
    };
  }

  #mayLookUp(address: string): Fault | null {
    if (this.#waiting.size >= this.#parts.limits.maxLookups) return CLOSED.busy;
    const retryAfterMs = this.#parts.misses.waitMs(address, this.#parts.world.now());
    return retryAfterMs === 0 ? null : fault("rate_limit_exceeded", "too many keys that do not exist were tried from this address", { retryAfterMs });
  }

  async #lookUp(digest: string, address: string): Promise<void> {
    const tooLate = this.#parts.world.after(LONGEST_WAIT_MS, () => this.#answer(digest, CLOSED.unreachable));
    let found: Holder | Fault;
    try {
      found = await this.#read(digest);
    } catch (error) {
      this.#parts.onError(error);
      found = CLOSED.unreachable;
    }
    tooLate();
    if (found === CLOSED.unknown) this.#parts.misses.take(address, this.#parts.world.now());
    this.#answer(digest, found);
    this.#waiting.delete(digest);
  }

  /** Tells everyone who waits for a secret; a throw of one is not the others' business. */
  #answer(digest: string, found: Holder | Fault): void {
    const waiting = this.#waiting.get(digest);
    const told = [...(waiting ?? [])];
    waiting?.clear();
    for (const done of told) {
      try {
        done(found);
      } catch (error) {
        this.#parts.onError(error);
      }
    }
  }

  /** What the store says of a secret; remembered either way. What was read while this key or its account changed is read again. */
  async #read(digest: string): Promise<Holder | Fault> {
    this.#reading++;
    try {
      for (let tries = 0; tries < MAX_READS; tries++) {
        const since = this.#changes;
        const row = await keyRow(this.#parts.store, digest);
        if (row === undefined) return this.#nobody(digest);
        const own = row.kind === "account" ? await ownProfiles(this.#parts.store, row.account_id, this.#parts.world.wallMs) : null;
        if ((this.#changedAt.get(row.key_id) ?? 0) <= since && (this.#changedAt.get(row.account_id) ?? 0) <= since) return this.#holderOf(digest, row, own);
      }
      throw new Error("a key changes faster than it can be read");
    } finally {
      if (--this.#reading === 0) this.#changedAt.clear();
    }
  }

  #nobody(digest: string): Fault {
    if (this.#unknown.size >= this.#parts.limits.maxUnknown) this.#unknown.clear();
    this.#unknown.set(digest, this.#parts.world.now());
    return CLOSED.unknown;
  }

  #holderOf(digest: string, row: KeyRow, own: OwnProfiles | null): Holder | Fault {
    const payer = this.#payers.get(row.account_id)?.payer ?? payerOf(row);
    const known = this.#holders.get(digest);
    const holder = known ?? holderOf(row.key_id, payer);
    const isClaimed = known !== undefined && known.payer.id !== row.account_id;
    if (isClaimed) this.#changePayer(digest, known, payer);
    update(holder, row, own);
    const end = endOf(holder, this.#parts.world.wallMs());
    if (end === null && (known === undefined || isClaimed)) this.#keep(digest, holder);
    if (end !== null && known !== undefined && !isClaimed) this.#forget(digest, holder);
    return end ?? holder;
  }

  /** The key of a caller has come to another account: who paid until now gives back what is leased. The caller is kept anew after this. */
  #changePayer(digest: string, holder: Holder, payer: Payer): void {
    this.#parts.credit.retire(holder.payer.id);
    this.#forget(digest, holder);
    holder.payer = payer;
  }

  #keep(digest: string, holder: Holder): void {
    let looked = 0;
    for (const [oldest, it] of this.#holders) {
      if (this.#holders.size < this.#parts.limits.maxHolders || looked++ > MAX_LOOKED_AT) break;
      // Whoever has open sockets has to hear of changes.
      if (it.seats === null || it.seats.size === 0) this.#forget(oldest, it);
    }
    this.#holders.set(digest, holder);
    const { payer } = holder;
    if (payer.kind === "anonymous") return;
    const shared = this.#payers.get(payer.id);
    if (shared === undefined) this.#payers.set(payer.id, { payer, holders: 1 });
    else shared.holders++;
  }

  #forget(digest: string, holder: Holder): void {
    this.#holders.delete(digest);
    const shared = this.#payers.get(holder.payer.id);
    if (shared !== undefined && --shared.holders === 0) this.#payers.delete(holder.payer.id);
  }

  /** Reads those in memory again that a change is about. Whatever cannot be read opens nothing until it can. */
  async #readAgain(id: string, concerns: (holder: Holder) => boolean): Promise<void> {
    this.#changes++;
    if (this.#reading > 0) this.#changedAt.set(id, this.#changes);
    const concerned: (readonly [string, Holder])[] = [];
    for (const each of this.#holders) if (concerns(each[1])) concerned.push(each);
    for (const [digest, holder] of concerned) await this.#refresh(digest, holder);
  }

  async #refresh(digest: string, holder: Holder): Promise<void> {
    const { home } = holder;
    try {
      const found = await this.#read(digest);
      if (found.kind === "fault") this.#closeAll(holder, "key_revoked");
      else if (found.home !== home) this.#closeAll(holder, "default_profile_changed");
    } catch (error) {
      this.#parts.onError(error);
      holder.bounds = { ...holder.bounds, doubtful: true };
      if (holder.seats !== null) this.#parts.world.after(DOUBT_MS, () => void this.#refresh(digest, holder));
    }
  }

  #closeAll({ seats }: Holder, reason: SocketEnd): void {
    for (const seat of [...(seats ?? [])]) seat.close(reason);
  }
}
