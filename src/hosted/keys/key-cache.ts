// Keys and accounts by secret, in memory: looked up once, read again after a change. Knows nothing
// of calls.

import type { AddressLimit } from "../../core/billing/address-limit.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Runtime } from "../../runtime.ts";
import { readSecret } from "../../secrets/secret.ts";
import type { Contact } from "../../shared/changes/contact.ts";
import type { Store } from "../../shared/store/store.ts";
import type { Credit } from "../credit/credit.ts";
import { type OwnProfiles, ownProfiles } from "../profiles/custom-access.ts";
import {
  type AccountState,
  accountStateOf,
  endOf,
  KEY_REFUSALS,
  KeyContext,
  type KeyContextRow,
  keyRow,
  type OpenSocket,
  type SocketEnd,
  update,
} from "./key-context.ts";

/** Bounds of what is kept; tests tighten them. */
export const KEY_CACHE_LIMITS = {
  maxKeys: 250_000,
  maxUnknown: 10_000,
  unknownMs: 10_000,
  maxLookups: 256,
} as const;

export type KeyCacheLimits = Readonly<Record<keyof typeof KEY_CACHE_LIMITS, number>>;

/** What a key cache needs. */
export interface KeyCacheParts {
  readonly store: Pick<Store, "db">;
  readonly runtime: Runtime;
  readonly credit: Pick<Credit, "refresh" | "evict">;
  /** Look-ups of unknown keys: an address with too many may not look up another one. */
  readonly misses: AddressLimit;
  readonly limits: KeyCacheLimits;
  readonly onError: (error: unknown) => void;
}

/** The longest wait for a look-up. */
const LONGEST_WAIT_MS = 2_000;
/** Reads of one secret whose key keeps changing. */
const MAX_READS = 5;
/** Time to the next try to read a changed key. */
const RETRY_MS = 1_000;
/** Keys that are read again at one time. */
const READ_AT_ONCE = 8;
/** In place of a count of rechecks: the key was changed, and has to be read again. */
const CHANGED = -1;
/** Contexts examined to make room for one. */
const MAX_LOOKED_AT = 1_000;

/** A key that is to be read again. */
interface QueuedRead extends PromiseWithResolvers<void> {
  readonly keyContext: KeyContext;
  /** A key that cannot be read goes on as it was, unless it was changed. */
  readonly keepsGood: boolean;
}

type Found = (found: KeyContext | Fault) => void;

/** Finds the key context of a secret. */
export class KeyCache {
  readonly #parts: KeyCacheParts;
  readonly #contexts = new Map<string, KeyContext>();
  /**
   * Accounts that may have several keys, with the number of them in memory. An anonymous account
   * has a single key.
   */
  readonly #accounts = new Map<string, { readonly account: AccountState; keys: number }>();
  /** When a secret was found to be unknown. */
  readonly #unknown = new Map<string, number>();
  readonly #waiters = new Map<string, Set<Found>>();
  /** Secrets whose look-up was waited for in vain and is still under way. */
  readonly #late = new Set<string>();
  readonly #withSockets = new Set<KeyContext>();
  #changes = 0;
  #contact: Contact = "heard";
  #contactNow: () => Contact = () => "heard";
  /** Counts rechecks: a context with a lower number is read again before it is used. */
  #rechecks = 0;
  /**
   * A look-up during this silence was in vain. Until one succeeds or the silence ends, keys known
   * to be good go on without one.
   */
  #isInVain = false;
  /** Reads under way, and what has changed during them: by id, the count at that time. */
  #reading = 0;
  readonly #changedAt = new Map<string, number>();
  /** What is read again in the background, by its secret, and how many do that now. */
  readonly #toRead = new Map<string, QueuedRead>();
  #readers = 0;

  constructor(parts: KeyCacheParts) {
    this.#parts = parts;
  }

  /** Secrets in memory. */
  get size(): number {
    return this.#contexts.size;
  }

  /** The key context of a secret; null = call `find`. `digest` is the secret's. */
  identify(secret: string, digest: string): KeyContext | Fault | null {
    const keyContext = this.#contexts.get(digest);
    const contact = this.#contactNow();
    if (contact === "cut_off" || this.#contact === "cut_off") return KEY_REFUSALS.cutOff;
    // Nobody has had the keys checked yet.
    if (contact === "silent" && this.#contact === "heard") return null;
    if (keyContext?.bounds.doubtful === true) return null;
    if (keyContext !== undefined && keyContext.checked !== this.#rechecks)
      return this.#isInVain ? this.#knownGood(digest) : null;
    if (keyContext !== undefined)
      return endOf(keyContext, this.#parts.runtime.wallMs()) ?? keyContext;
    const kind = readSecret(secret);
    if (kind === null) return KEY_REFUSALS.malformed;
    if (kind !== "key") return kind === "token" ? KEY_REFUSALS.notAKey : KEY_REFUSALS.malformed;
    const atMs = this.#unknown.get(digest);
    if (atMs === undefined) return null;
    if (this.#parts.runtime.now() - atMs < this.#parts.limits.unknownMs)
      return KEY_REFUSALS.unknown;
    this.#unknown.delete(digest);
    return null;
  }

  /**
   * Looks a secret up, by its digest, for a caller at an IP address. Calls back once, unless the
   * returned function was called before.
   */
  find(digest: string, address: string, done: Found): () => void {
    const waiters = this.#waiters.get(digest);
    const late = this.#late.has(digest) ? KEY_REFUSALS.unreachable : null;
    const why = waiters === undefined ? this.#mayLookUp(address) : late;
    if (why !== null) {
      done(this.#knownGood(digest) ?? why);
      return () => {};
    }
    const list = waiters ?? new Set();
    list.add(done);
    if (waiters === undefined) {
      this.#waiters.set(digest, list);
      void this.#lookUp(digest, address);
    }
    return () => list.delete(done);
  }

  /**
   * Keys and accounts were changed, here or elsewhere; `ids` has the ids of both. From now on a
   * request with one of these keys waits until the key was read again, and sockets that may not
   * stay are closed then. Resolves when all of them were read.
   */
  async changed(ids: ReadonlySet<string>): Promise<void> {
    this.#changes++;
    for (const id of ids) {
      this.#parts.credit.refresh(id);
      // What is being read now may have been read before this change.
      if (this.#reading > 0) this.#changedAt.set(id, this.#changes);
    }
    const reads: Promise<void>[] = [];
    for (const [digest, keyContext] of this.#contexts) {
      if (!ids.has(keyContext.keyId) && !ids.has(keyContext.account.id)) continue;
      keyContext.checked = CHANGED;
      reads.push(this.#readLater(digest, keyContext, false));
    }
    this.#readInBackground();
    await Promise.all(reads);
  }

  /**
   * Has every key read again: once, when it is used next, and in the background where sockets are
   * open.
   */
  recheck(): void {
    this.#rechecks++;
    this.#unknown.clear();
    const keepsGood = this.#contact === "silent";
    for (const [digest, keyContext] of this.#contexts)
      if (this.#withSockets.has(keyContext)) void this.#readLater(digest, keyContext, keepsGood);
    this.#readInBackground();
  }

  /**
   * What is not known of changes elsewhere: `heard` = nothing; `silent` = keys known to be good go
   * on, once they could not be read; `cut_off` = no key is good.
   */
  setContact(contact: Contact): void {
    this.#contact = contact;
    this.#isInVain = false;
  }

  /**
   * Asks this at each use of a key: a process that stood still learns so before `setContact` is
   * called.
   */
  watch(now: () => Contact): void {
    this.#contactNow = now;
  }

  get contact(): Contact {
    return this.#contact;
  }

  /** Calls `run` for each key context with open sockets. */
  eachWithSockets(run: (keyContext: KeyContext) => void): void {
    for (const keyContext of [...this.#withSockets]) run(keyContext);
  }

  /** Registers an open socket; the returned function removes it. */
  addSocket(keyContext: KeyContext, socket: OpenSocket): () => void {
    keyContext.openSockets ??= new Set();
    keyContext.openSockets.add(socket);
    this.#withSockets.add(keyContext);
    return () => {
      keyContext.openSockets?.delete(socket);
      if (keyContext.openSockets?.size === 0) this.#withSockets.delete(keyContext);
    };
  }

  #mayLookUp(address: string): Fault | null {
    if (this.#waiters.size >= this.#parts.limits.maxLookups) return KEY_REFUSALS.busy;
    const retryAfterMs = this.#parts.misses.waitMs(address, this.#parts.runtime.now());
    return retryAfterMs === 0
      ? null
      : fault(
          "rate_limit_exceeded",
          "too many keys that do not exist were tried from this address",
          { retryAfterMs },
        );
  }

  async #lookUp(digest: string, address: string): Promise<void> {
    const tooLate = this.#parts.runtime.after(LONGEST_WAIT_MS, () => {
      this.#late.add(digest);
      this.#answer(digest, this.#foundInVain(digest));
    });
    let found: KeyContext | Fault;
    try {
      found = await this.#read(digest);
      this.#isInVain = false;
    } catch (error) {
      this.#parts.onError(error);
      found = this.#foundInVain(digest);
    }
    tooLate();
    if (found === KEY_REFUSALS.unknown) this.#parts.misses.take(address, this.#parts.runtime.now());
    this.#answer(digest, found);
    this.#waiters.delete(digest);
    this.#late.delete(digest);
  }

  /** What follows from a look-up that failed, or that was waited for in vain. */
  #foundInVain(digest: string): KeyContext | Fault {
    this.#isInVain = this.#contact === "silent";
    const good = this.#knownGood(digest);
    if (good?.kind === "key") good.checked = this.#rechecks;
    return good ?? KEY_REFUSALS.unreachable;
  }

  /**
   * While nothing is heard, a key that was good goes on once keys could not be read; null = there
   * is none, or it was changed and has to be read.
   */
  #knownGood(digest: string): KeyContext | Fault | null {
    const keyContext = this.#contexts.get(digest);
    const isSilent = this.#contact === "silent" || this.#contactNow() === "silent";
    if (!isSilent || keyContext === undefined) return null;
    if (keyContext.bounds.doubtful || keyContext.checked === CHANGED) return null;
    return endOf(keyContext, this.#parts.runtime.wallMs()) ?? keyContext;
  }

  /** Calls back every waiter of a secret; an exception of one does not affect the others. */
  #answer(digest: string, found: KeyContext | Fault): void {
    const waiters = this.#waiters.get(digest);
    const callbacks = [...(waiters ?? [])];
    waiters?.clear();
    for (const done of callbacks) {
      try {
        done(found);
      } catch (error) {
        this.#parts.onError(error);
      }
    }
  }

  /**
   * What the store says of a secret; remembered either way. What was read while this key or its
   * account changed is read again.
   */
  async #read(digest: string): Promise<KeyContext | Fault> {
    this.#reading++;
    try {
      for (let tries = 0; tries < MAX_READS; tries++) {
        const since = this.#changes;
        const rechecks = this.#rechecks;
        const row = await keyRow(this.#parts.store, digest);
        if (row === undefined) return this.#rememberUnknown(digest);
        const own =
          row.kind === "account"
            ? await ownProfiles(this.#parts.store, row.account_id, this.#parts.runtime.wallMs)
            : null;
        if (
          (this.#changedAt.get(row.key_id) ?? 0) <= since &&
          (this.#changedAt.get(row.account_id) ?? 0) <= since
        )
          return this.#contextOf(digest, row, { own, rechecks });
      }
      throw new Error("a key changes faster than it can be read");
    } finally {
      if (--this.#reading === 0) this.#changedAt.clear();
    }
  }

  #rememberUnknown(digest: string): Fault {
    if (this.#unknown.size >= this.#parts.limits.maxUnknown) this.#unknown.clear();
    this.#unknown.set(digest, this.#parts.runtime.now());
    const known = this.#contexts.get(digest);
    if (known !== undefined) this.#forget(digest, known);
    return KEY_REFUSALS.unknown;
  }

  #contextOf(
    digest: string,
    row: KeyContextRow,
    { own, rechecks }: { readonly own: OwnProfiles | null; readonly rechecks: number },
  ): KeyContext | Fault {
    const account = this.#accounts.get(row.account_id)?.account ?? accountStateOf(row);
    const known = this.#contexts.get(digest);
    const keyContext = known ?? new KeyContext(row.key_id, account);
    const isClaimed = known !== undefined && known.account.id !== row.account_id;
    if (isClaimed) this.#moveToAccount(digest, known, account);
    update(keyContext, row, own);
    keyContext.checked = rechecks;
    const end = endOf(keyContext, this.#parts.runtime.wallMs());
    if (end === null && (known === undefined || isClaimed)) this.#keep(digest, keyContext);
    if (end !== null && known !== undefined && !isClaimed) this.#forget(digest, keyContext);
    return end ?? keyContext;
  }

  /**
   * Moves a key to another account after a claim; the former account's lease is returned. The
   * caller stores the context again after this.
   */
  #moveToAccount(digest: string, keyContext: KeyContext, account: AccountState): void {
    this.#parts.credit.evict(keyContext.account.id);
    this.#forget(digest, keyContext);
    keyContext.account = account;
  }

  #keep(digest: string, keyContext: KeyContext): void {
    let looked = 0;
    for (const [oldest, context] of this.#contexts) {
      if (this.#contexts.size < this.#parts.limits.maxKeys || looked++ > MAX_LOOKED_AT) break;
      // Sockets that are open must be closed when their key changes: their contexts stay.
      if (context.openSockets === null || context.openSockets.size === 0)
        this.#forget(oldest, context);
    }
    this.#contexts.set(digest, keyContext);
    const { account } = keyContext;
    if (account.kind === "anonymous") return;
    const shared = this.#accounts.get(account.id);
    if (shared === undefined) this.#accounts.set(account.id, { account, keys: 1 });
    else shared.keys++;
  }

  #forget(digest: string, keyContext: KeyContext): void {
    this.#contexts.delete(digest);
    const shared = this.#accounts.get(keyContext.account.id);
    if (shared !== undefined && --shared.keys === 0) this.#accounts.delete(keyContext.account.id);
  }

  /** Queues a key to be read again; resolves when that was done. */
  #readLater(digest: string, keyContext: KeyContext, keepsGood: boolean): Promise<void> {
    const known = this.#toRead.get(digest);
    const read = known ?? Promise.withResolvers<void>();
    const keeps = keepsGood && known?.keepsGood !== false;
    this.#toRead.set(digest, { ...read, keyContext, keepsGood: keeps });
    return read.promise;
  }

  /** However many changes come, no more are read at one time than may be. */
  #readInBackground(): void {
    while (this.#readers < READ_AT_ONCE && this.#toRead.size > 0) void this.#readQueued();
  }

  /** Takes the first one before it returns. */
  async #readQueued(): Promise<void> {
    this.#readers++;
    for (const [digest, { keyContext, keepsGood, resolve }] of this.#toRead) {
      this.#toRead.delete(digest);
      await this.#refresh(digest, keyContext, keepsGood).catch(this.#parts.onError);
      resolve();
    }
    this.#readers--;
  }

  /** One that cannot be read opens nothing until it can, unless it is kept as good. */
  async #refresh(digest: string, keyContext: KeyContext, keepsGood = false): Promise<void> {
    const { defaultProfile } = keyContext;
    try {
      const found = await this.#read(digest);
      if (found.kind === "fault") this.#closeAll(keyContext, "key_revoked");
      else if (found.defaultProfile !== defaultProfile)
        this.#closeAll(keyContext, "default_profile_changed");
    } catch (error) {
      this.#parts.onError(error);
      if (keepsGood && keyContext.checked !== CHANGED) return;
      keyContext.bounds = { ...keyContext.bounds, doubtful: true };
      if (keyContext.openSockets !== null)
        this.#parts.runtime.after(RETRY_MS, () => void this.#refresh(digest, keyContext));
    }
  }

  #closeAll({ openSockets }: KeyContext, reason: SocketEnd): void {
    for (const socket of [...(openSockets ?? [])]) socket.close(reason);
  }
}
