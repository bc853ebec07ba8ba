// The second tier of the cache: answers that never change, kept on a server that several nodes
// share. The server may be slow, gone or full at any time, and anybody may have written to it. A
// look-up ends within its limit, is bounded in number and size, and takes nothing that is not
// exactly an answer to the question. Which answers may be stored or given is decided in `engine/`.
import { createSecretKey, hash, hkdfSync, randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";
import { isJson } from "../../core/rpc/json.ts";
import {
  GENERATION_BYTES,
  MAX_STORED_BYTES,
  MAX_VALUE_BYTES,
  type ReadAnswer,
  readStored,
  type StoredAnswer,
  type TierKey,
  type TierScope,
  writeAnswer,
} from "./stored-answer.ts";
import {
  connectRedis,
  TierLink,
  type TierLinkParts,
  type TierReply,
  type TierState,
} from "./tier-link.ts";

/** What a look-up has found. */
export interface TierFinding {
  readonly answer: StoredAnswer | null;
  /** Under which an answer may be stored; null = it may not. */
  readonly generation: Buffer | null;
}

/** What became of look-ups. `unusable`: what was found is no answer to what was asked. */
export const LOOK_UP_RESULTS = ["hit", "miss", "unusable", "timeout", "error", "skipped"] as const;
export type LookUpResult = (typeof LOOK_UP_RESULTS)[number];

/** What became of answers to be stored. `dropped`: too much was under way. */
export const STORE_RESULTS = ["stored", "dropped", "timeout", "error"] as const;
export type StoreResult = (typeof STORE_RESULTS)[number];

/** What the second tier has done, and how it is. */
export interface TierReport {
  readonly state: TierState;
  readonly lookUps: Readonly<Record<LookUpResult, number>>;
  readonly stores: Readonly<Record<StoreResult, number>>;
}

/** No operation takes longer, the reading of what was found included. */
export const TIER_LIMIT_MS = 20;
/** A purge is waited for by nobody's call. */
const PURGE_LIMIT_MS = 1_000;
/** Look-ups and stores under way; beyond, calls go on without, and answers are not stored. */
const MAX_LOOK_UPS = 128;
const MAX_JOINED = 1_000;
const MAX_STORES = 64;
/** Longer values are compressed. */
const COMPRESS_FROM_BYTES = 4_096;
/** Stored answers go after this time, and generations after a longer one. */
const LIFE_MS = 30 * 86_400_000;
const GENERATION_LIFE_MS = 2 * LIFE_MS;
/** The clocks of nodes may differ by so much. */
const CLOCK_SKEW_MS = 60_000;
/** Scopes purged by one operation. */
const PURGES_AT_ONCE = 100;
const PREFIX = "svc:cache:1:";
const KEY_BYTES = 32;
const NOTHING_FOUND: TierFinding = { answer: null, generation: null };

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/**
 * The scope of what is described by these values, none of which can be read from its name. Its key
 * follows from them and from the secret of the service (null = it was given none).
 */
export function tierScope(description: unknown, secret: string | null): TierScope {
  const text = JSON.stringify(description);
  const key = hkdfSync("sha256", text, secret ?? "", "svc cache checksum", KEY_BYTES);
  return {
    name: hash("sha256", text, "base64url").slice(0, 32),
    key: createSecretKey(Buffer.from(key)),
  };
}

/** The key of the answer that `text` and the scope decide between them. */
export function tierKey(scope: TierScope, text: string): TierKey {
  return { scope, digest: hash("sha256", `${scope.name} ${text}`, "buffer") };
}

/** A look-up, and those who wait for it. */
interface LookUp {
  readonly scope: TierScope;
  readonly waiters: Set<(finding: TierFinding) => void>;
  /** Ends it for all of them, as if nothing were stored. */
  abandon: () => void;
  cancel: () => void;
}

/** What the second tier works with. */
export interface TierParts extends Omit<TierLinkParts, "onReady" | "connect"> {
  /** Default: Redis. */
  readonly connect?: TierLinkParts["connect"];
  /** The secret of the service, one for all nodes; null = it was given none. */
  readonly secret: string | null;
}

/** Answers that never change, on a server. */
export class SecondTier {
  readonly #secret: string | null;
  readonly #runtime: TierLinkParts["runtime"];
  readonly #link: TierLink;
  /** By digest. */
  readonly #lookUps = new Map<string, LookUp>();
  /**
   * Names of scopes to be purged as soon as the server can be reached: until then they are not
   * used.
   */
  readonly #purges = new Set<string>();
  #storing = 0;
  readonly #counts = {
    lookUps: { hit: 0, miss: 0, unusable: 0, timeout: 0, error: 0, skipped: 0 },
    stores: { stored: 0, dropped: 0, timeout: 0, error: 0 },
  };

  constructor({ secret, connect = connectRedis, ...parts }: TierParts) {
    this.#secret = secret;
    this.#runtime = parts.runtime;
    this.#link = new TierLink({ ...parts, connect, onReady: () => void this.#purgePending() });
  }

  /** The server to use from now on, by its secret URL; null = none. */
  use(url: string | null): void {
    this.#link.use(url);
    if (url === null) this.#purges.clear();
  }

  /** The scope of the answers that these values describe. */
  scopeOf(description: unknown): TierScope {
    return tierScope(description, this.#secret);
  }

  /** Whether answers of this scope can be looked up now. */
  isUsable({ name }: TierScope): boolean {
    return this.#link.state === "ready" && !this.#purges.has(name);
  }

  /** Tells what is stored, within the limit and never before it returns. */
  lookUp(key: TierKey, done: (finding: TierFinding) => void): () => void {
    const name = key.digest.toString("latin1");
    const known = this.#lookUps.get(name);
    if (known === undefined ? this.#lookUps.size >= MAX_LOOK_UPS : known.waiters.size >= MAX_JOINED)
      return this.#skip(done);
    const { scope } = key;
    const lookUp = known ?? { scope, waiters: new Set(), abandon: NOTHING, cancel: NOTHING };
    const waiter = (finding: TierFinding): void => done(finding);
    lookUp.waiters.add(waiter);
    if (known === undefined) {
      this.#lookUps.set(name, lookUp);
      this.#begin(key, lookUp, () => {
        if (this.#lookUps.get(name) === lookUp) this.#lookUps.delete(name);
      });
    }
    return () => {
      if (lookUp.waiters.delete(waiter) && lookUp.waiters.size === 0) lookUp.cancel();
    };
  }

  /** What was found for a call was not an answer that it may be given. */
  countUnusable(): void {
    this.#counts.lookUps.hit -= 1;
    this.#counts.lookUps.unusable += 1;
  }

  /** Stores an answer, unless too much is under way. Nobody waits for it. */
  store(key: TierKey, generation: Buffer, answer: StoredAnswer): void {
    const { length } = answer.value;
    if (!this.isUsable(key.scope) || length > MAX_VALUE_BYTES) return;
    if (this.#storing >= MAX_STORES) {
      this.#counts.stores.dropped += 1;
      return;
    }
    this.#storing += 1;
    void this.#store(key, generation, answer).then((result) => {
      this.#storing -= 1;
      this.#counts.stores[result] += 1;
    });
  }

  /**
   * Removes what is stored of these scopes, and tells whether it is gone. Where the server cannot
   * be reached, they are not used before it has been done.
   */
  async purge(scopes: readonly TierScope[]): Promise<boolean> {
    if (this.#link.state === "off") return true;
    for (const { name } of scopes) this.#purges.add(name);
    for (const lookUp of [...this.#lookUps.values()])
      if (this.#purges.has(lookUp.scope.name)) lookUp.abandon();
    await this.#purgePending();
    return scopes.every(({ name }) => !this.#purges.has(name));
  }

  /** Null = there is no server. */
  report(): TierReport | null {
    const { state } = this.#link;
    return state === "off" ? null : { state, ...this.#counts };
  }

  close(): void {
    this.use(null);
  }

  #skip(done: (finding: TierFinding) => void): () => void {
    this.#counts.lookUps.skipped += 1;
    return this.#runtime.after(0, () => done(NOTHING_FOUND));
  }

  #begin(key: TierKey, lookUp: LookUp, close: () => void): void {
    let isOver = false;
    const end = (finding: TierFinding, result: LookUpResult): void => {
      if (isOver) return;
      isOver = true;
      cancelTimer();
      close();
      // Each who waits has had a look-up of its own.
      this.#counts.lookUps[result] += lookUp.waiters.size;
      for (const waiter of lookUp.waiters) waiter(finding);
    };
    const cancelTimer = this.#runtime.after(TIER_LIMIT_MS, () => end(NOTHING_FOUND, "timeout"));
    // One byte more than allowed is asked for, so that a value that is too long is noticed.
    const commands = [
      ["GETRANGE", generationKey(key.scope.name), "0", String(GENERATION_BYTES)],
      ["GETRANGE", answerKey(key), "0", String(MAX_STORED_BYTES)],
    ];
    const cancelSend = this.#link.send(
      { commands, limitMs: TIER_LIMIT_MS, refusalCounts: true },
      (reply) => void this.#read(key, reply).then(([finding, result]) => end(finding, result)),
    );
    lookUp.abandon = () => end(NOTHING_FOUND, "miss");
    lookUp.cancel = () => {
      isOver = true;
      cancelTimer();
      cancelSend();
      close();
    };
  }

  async #read(key: TierKey, reply: TierReply): Promise<readonly [TierFinding, LookUpResult]> {
    if (reply.kind !== "replies")
      return [NOTHING_FOUND, reply.kind === "timeout" ? "timeout" : "error"];
    const [generation, stored] = reply.values;
    if (!Buffer.isBuffer(generation) || generation.length !== GENERATION_BYTES) {
      this.#makeGeneration(key.scope);
      return [NOTHING_FOUND, "miss"];
    }
    if (!Buffer.isBuffer(stored) || stored.length === 0)
      return [{ answer: null, generation }, "miss"];
    const read = readStored(stored, key, generation);
    const answer = read === null ? null : await this.#checked(read);
    return [{ answer, generation }, answer === null ? "unusable" : "hit"];
  }

  /** The answer with its value, if that is one; null = it is not. */
  async #checked({ isCompressed, valueBytes, ...read }: ReadAnswer): Promise<StoredAnswer | null> {
    const nowMs = this.#runtime.wallMs();
    if (read.askedAtWallMs > nowMs + CLOCK_SKEW_MS || read.askedAtWallMs < nowMs - LIFE_MS)
      return null;
    const value = isCompressed ? await decompressed(read.value, valueBytes) : read.value;
    return value !== null && isJson(value) ? { ...read, value } : null;
  }

  async #store(key: TierKey, generation: Buffer, answer: StoredAnswer): Promise<StoreResult> {
    const valueBytes = answer.value.length;
    const isCompressed = valueBytes > COMPRESS_FROM_BYTES;
    const value = isCompressed ? await compress(answer.value, FAST) : answer.value;
    const stored = { ...answer, value, isCompressed, valueBytes };
    const bytes = writeAnswer(key, generation, stored);
    if (bytes === null) return "dropped";
    const command = ["SET", answerKey(key), bytes, "PX", String(LIFE_MS)];
    const { promise, resolve } = Promise.withResolvers<TierReply>();
    this.#link.send({ commands: [command], limitMs: TIER_LIMIT_MS, refusalCounts: false }, resolve);
    const { kind } = await promise;
    if (kind === "replies") return "stored";
    return kind === "timeout" ? "timeout" : "error";
  }

  /** The first to find none chooses the generation for all; what it asks is not stored yet. */
  #makeGeneration(scope: TierScope): void {
    const key = generationKey(scope.name);
    // What is there and is no generation has to go first.
    const commands = [...generationCommands(key, ["NX"]), ["STRLEN", key]];
    this.#link.send({ commands, limitMs: TIER_LIMIT_MS, refusalCounts: false }, (reply) => {
      const isForeign = reply.kind === "replies" && reply.values.at(-1) !== GENERATION_BYTES;
      if (isForeign || reply.kind === "refused") void this.purge([scope]);
    });
  }

  async #purgePending(): Promise<void> {
    const pending = [...this.#purges];
    for (
      let from = 0;
      from < pending.length && this.#link.state === "ready";
      from += PURGES_AT_ONCE
    ) {
      const names = pending.slice(from, from + PURGES_AT_ONCE);
      const commands = names.flatMap((name) => generationCommands(generationKey(name), []));
      const { promise, resolve } = Promise.withResolvers<TierReply>();
      this.#link.send({ commands, limitMs: PURGE_LIMIT_MS, refusalCounts: true }, resolve);
      if ((await promise).kind !== "replies") return;
      for (const name of names) this.#purges.delete(name);
    }
  }
}

function generationCommands(key: string, how: readonly string[]) {
  return [["SET", key, randomBytes(GENERATION_BYTES), "PX", String(GENERATION_LIFE_MS), ...how]];
}

function generationKey(scopeName: string): string {
  return `${PREFIX}${scopeName}:generation`;
}

function answerKey({ scope, digest }: TierKey): string {
  return `${PREFIX}${scope.name}:${digest.toString("base64url")}`;
}

const FAST = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** A value of exactly this length; null = it is not one. */
async function decompressed(value: Buffer, valueBytes: number): Promise<Buffer | null> {
  try {
    const plain = await decompress(value, { maxOutputLength: Math.max(1, valueBytes) });
    return plain.length === valueBytes ? plain : null;
  } catch {
    return null;
  }
}

function NOTHING(): void {}
