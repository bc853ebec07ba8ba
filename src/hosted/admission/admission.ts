// Admission: decides whether the call of a key is served, how, and what is held for it. Reads
// memory only; knows no URL and no provider.
import { type RateLimit, type ServiceTier, serviceTiersOf } from "../../core/billing/access.ts";
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import { cuOf, notificationCuOf, type Tariff } from "../../core/billing/price.ts";
import {
  awaitedLimit,
  type RateLimitNow,
  type RateLimitStatus,
  rateLimitStatusOf,
  takeSharedToken,
} from "../../core/billing/rate-limit.ts";
import { type LimitSharing, SharedLimit } from "../../core/billing/shared-limit.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Holdings } from "../../core/workers/shared-holdings.ts";
import type { Runtime } from "../../runtime.ts";
import type { Credit, Wallet } from "../credit/credit.ts";
import type { KeyCache } from "../keys/key-cache.ts";
import {
  type AccountState,
  endOf,
  KEY_REFUSALS,
  type KeyContext,
  type OpenSocket,
  type SocketEnd,
} from "../keys/key-context.ts";
import type { ProfileLoader } from "../profiles/profile-loader.ts";
import { freeCuOf, Grant } from "./grant.ts";
import { isCustom, mayName, serviceTiersFor } from "./profile-access.ts";
import { WaitingBatches } from "./waiting-batches.ts";

/** A call that asks for a grant. */
export interface AdmissionRequest {
  /** Slug of the requested profile. */
  readonly profile: string;
  readonly method: Method;
  readonly strategy: Strategy;
  /**
   * Parts in which it is planned to be asked for; each costs and counts as one call. Absent = 1.
   */
  readonly parts?: number;
}

/** A refused call. */
export interface Refusal {
  readonly kind: "refusal";
  readonly fault: Fault;
  readonly keyContext: KeyContext;
  /** The rate limit that was exceeded; null = the call is refused for another reason. */
  readonly limit: ExceededLimit | null;
}

/** A rate limit without a token. */
export interface ExceededLimit {
  readonly rateLimit: RateLimit;
  /** Milliseconds until its next token. */
  readonly tokenMs: number;
}

/** The decision has to wait: credit, or tokens of a limit, are on their way. */
export interface Wait {
  readonly kind: "wait";
  /**
   * Calls back once, when the credit has arrived or cannot arrive; the returned function cancels.
   */
  refilled(run: () => void): () => void;
}

/** The terms on which callers are served. */
export interface AdmissionSettings {
  readonly keyless: boolean;
  readonly tariff: Tariff;
  readonly buckets: Readonly<Record<RateLimit["size"], RateLimitSize>>;
  readonly freeCuPerMonth: number;
  readonly fallbackMs: number;
}

type AdmissionKeys = Pick<
  KeyCache,
  "identify" | "find" | "contact" | "eachWithSockets" | "addSocket"
>;

/** What admission needs. */
export interface AdmissionParts {
  readonly runtime: Runtime;
  readonly settings: AdmissionSettings;
  readonly credit: Pick<
    Credit,
    "wallet" | "hold" | "holdFree" | "release" | "settle" | "refilled" | "estimateN" | "freeUsedCu"
  >;
  readonly keyCache: AdmissionKeys;
  /** How nodes share rate limits; absent or null = this process is alone. */
  readonly sharing?: LimitSharing | null;
  readonly profiles: Pick<ProfileLoader, "prepare" | "touch">;
  /** The batches that wait at all workers; absent = this process is alone. */
  readonly waitingBatches?: Holdings<number>;
}

/** How often open sockets are checked for whether they may stay open. */
const SWEEP_MS = 1_000;
/**
 * How often a call waits at most: a second time where other calls used up the credit while this
 * call waited for a token of its rate limit, and the account has more credit.
 */
const MOST_WAITS = 2;

/** Grants calls of keys, and charges notifications. */
export class Admission {
  readonly keyCache: AdmissionKeys;
  /** Whether callers without a key are served. */
  readonly keyless: boolean;
  /** The batches that wait for the rate limit of their account. */
  readonly batches: WaitingBatches;
  readonly #parts: AdmissionParts;
  /** Compute units of notifications that were delivered while credit was being fetched. */
  readonly #owedCu = new Map<AccountState, number>();
  #cancelSweep: () => void;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
    this.keyCache = parts.keyCache;
    this.keyless = parts.settings.keyless;
    this.batches = new WaitingBatches(parts.waitingBatches);
    this.#cancelSweep = parts.runtime.after(SWEEP_MS, () => this.#sweep());
  }

  /** Requests a grant for one call. `waits`: how often it has waited; see `MOST_WAITS`. */
  admit(keyContext: KeyContext, call: AdmissionRequest, waits: number): Grant | Refusal | Wait {
    const { settings, credit, profiles } = this.#parts;
    const { account } = keyContext;
    const { parts = 1 } = call;
    const why = this.#endOf(keyContext) ?? mayName(keyContext, call.profile);
    if (why !== null) return refusalOf(keyContext, why);
    const wallet = this.#walletOf(account);
    let doubtful: ServiceTier | null = null;
    for (const service of serviceTiersFor(account, call.profile)) {
      const strategy = service.access === "public" ? "load-balanced" : call.strategy;
      const partCu = cuOf(settings.tariff, call.method, strategy);
      const cu = parts * partCu;
      const held = this.#hold(account, wallet, service, cu);
      if (held === "no_funds") continue;
      if (held === "no_news") {
        doubtful = service;
        continue;
      }
      if (held === "unknown") return this.#waitForCredit(keyContext, { wallet, service, waits });
      const refused = this.#takeTokens(keyContext, service, { parts, isFinal: waits > 0 });
      if (refused !== null) {
        credit.release(wallet, held, freeCuOf(service, cu));
        return refused;
      }
      if (service.access === "custom")
        profiles.touch({ accountId: account.id, slug: service.profile });
      const { method } = call;
      const price = { parts, partCu, heldN: held };
      const terms = { keyContext, service, strategy, method, wallet, ...price };
      return new Grant(this.#parts, terms);
    }
    return doubtful === null
      ? refusalOf(keyContext, EXHAUSTED)
      : this.#waitForCredit(keyContext, { wallet, service: doubtful, waits });
  }

  /**
   * Whether a caller could be served at all now; null = it could. For the handshake of a socket.
   */
  refusal(keyContext: KeyContext, profile: string): Fault | null {
    return (
      this.#endOf(keyContext) ??
      mayName(keyContext, profile) ??
      (this.#isServed(keyContext, profile) ? null : EXHAUSTED)
    );
  }

  /**
   * Loads a Custom profile of the caller. Calls back once with why that failed, or null; the
   * returned function cancels.
   */
  prepare({ account }: KeyContext, profile: string, done: (why: Fault | null) => void): () => void {
    return this.#parts.profiles.prepare({ accountId: account.id, slug: profile }, done);
  }

  /**
   * Calls `close` when a key ends or may not use a profile any more. For open sockets and filters;
   * the returned function ends the watch.
   */
  watchKey(
    keyContext: KeyContext,
    profile: string,
    close: (reason: SocketEnd) => void,
  ): () => void {
    return this.keyCache.addSocket(keyContext, {
      profile,
      custom: isCustom(keyContext.account, profile),
      close,
    });
  }

  /**
   * Charges notifications of a granted subscription. Returns why its socket has to be closed:
   * nothing pays any more, or the balance has been unknown for too long; null = it stays open.
   */
  meter(
    { keyContext, service, strategy }: Grant,
    notifications: number,
  ): "balance_exhausted" | "unavailable" | null {
    const { credit, settings } = this.#parts;
    if (this.keyCache.contact === "cut_off") return "unavailable";
    const { account, keyId } = keyContext;
    const wallet = this.#walletOf(account);
    const cu =
      notificationCuOf(settings.tariff, strategy) * notifications +
      (this.#owedCu.get(account) ?? 0);
    this.#owedCu.delete(account);
    let isKnown = true;
    // Custom access that ends between two sweeps of the sockets stays uncharged until then.
    for (const tier of service.access === "custom"
      ? [service]
      : serviceTiersOf(service.profile === "public" ? "public" : "premium")) {
      const heldN = this.#hold(account, wallet, tier, cu);
      if (heldN === "no_funds") continue;
      if (typeof heldN !== "number") {
        isKnown = false;
        if (heldN === "no_news") continue;
        break;
      }
      credit.settle(wallet, {
        keyId,
        method: "notification",
        cu,
        heldN,
        chargeN: heldN,
        freeCu: freeCuOf(tier, cu),
      });
      return null;
    }
    if (isKnown) return "balance_exhausted";
    this.#owedCu.set(account, cu);
    return cu > MOST_OWED_CU ? "unavailable" : null;
  }

  rateLimitStatus({ account }: KeyContext, rateLimit: RateLimit): RateLimitStatus {
    return rateLimitStatusOf(account, rateLimit, this.#limitNow({ rateLimit }));
  }

  /** Estimate of the remaining balance, in nano-USD; null = unknown. */
  balanceN({ wallet }: Grant): number | null {
    return this.#parts.credit.estimateN(wallet);
  }

  close(): void {
    this.#cancelSweep();
  }

  #walletOf(account: AccountState): Wallet {
    return this.#parts.credit.wallet(account.id);
  }

  /**
   * Holds the price of a call in this tier. Returns the nano-USD held, "unknown" while the balance
   * is not known, or "no_funds"; "no_news" where there were none when the store last answered, so
   * that other tiers may serve, but nobody is told that the balance is exhausted.
   */
  #hold(
    account: AccountState,
    wallet: Wallet,
    { funding }: ServiceTier,
    cu: number,
  ): number | "unknown" | "no_news" | "no_funds" {
    const { credit, settings, runtime } = this.#parts;
    switch (funding) {
      case "balance": {
        const priceN = cu * settings.tariff.nanoPerCu;
        if (credit.hold(wallet, priceN)) return priceN;
        const hadNone = wallet.wasEmpty && wallet.availableN < priceN;
        if (wallet.state !== "empty" && !hadNone) return "unknown";
        // The store records when paid credit ran out. Until it has, and while another node holds
        // the rest, the grace period counts from now.
        if (account.paid !== null)
          account.paid.exhaustedAtMs =
            wallet.exhaustedAtMs ?? account.paid.exhaustedAtMs ?? runtime.wallMs();
        return hadNone ? "no_news" : "no_funds";
      }
      case "payment":
        return runtime.wallMs() <
          (account.paid?.exhaustedAtMs ?? Number.NEGATIVE_INFINITY) + settings.fallbackMs
          ? 0
          : "no_funds";
      case "free": {
        if (account.kind !== "account") return "no_funds";
        const used = credit.freeUsedCu(wallet);
        if (used === null) return "unknown";
        if (used + cu > settings.freeCuPerMonth) return "no_funds";
        credit.holdFree(wallet, cu);
        return 0;
      }
      case "custom":
        return 0;
    }
  }

  #limitNow({ rateLimit }: Pick<ServiceTier, "rateLimit">): RateLimitNow {
    const { settings, runtime, sharing } = this.#parts;
    const size = settings.buckets[rateLimit.size];
    return { size, nowMs: runtime.now(), sharing: sharing ?? null };
  }

  /** Takes the tokens of a call, one for each of its parts; null = it has them. */
  #takeTokens(
    keyContext: KeyContext,
    service: ServiceTier,
    { parts, isFinal }: { readonly parts: number; readonly isFinal: boolean },
  ): Refusal | Wait | null {
    const { rateLimit } = service;
    const now = this.#limitNow(service);
    const tokens = Math.min(parts, now.size.burst);
    const why = takeSharedToken(keyContext.account, rateLimit, { ...now, tokens, isFinal });
    if (why === null) return null;
    if (why instanceof SharedLimit) return this.#waitFor(null, why);
    const limit = { rateLimit, tokenMs: 1_000 / now.size.perSecond };
    return { kind: "refusal", fault: why, keyContext, limit };
  }

  /** Waits for credit, and at first for what is left of the rate limit as well. */
  #waitForCredit(keyContext: KeyContext, { wallet, service, waits }: CreditWait): Refusal | Wait {
    const { account } = keyContext;
    if (waits === 0)
      return this.#waitFor(
        wallet,
        awaitedLimit(account, service.rateLimit, this.#limitNow(service)),
      );
    return waits < MOST_WAITS && wallet.state === "open"
      ? this.#waitFor(wallet, null)
      : refusalOf(keyContext, BALANCE_UNKNOWN_FAULT);
  }

  /** Waits for credit and for a token, as far as they are not known. */
  #waitFor(wallet: Wallet | null, limit: SharedLimit | null): Wait {
    const { credit, sharing } = this.#parts;
    const waits: ((run: () => void) => () => void)[] = [];
    if (wallet !== null) waits.push((run) => credit.refilled(wallet, run));
    if (limit !== null && sharing) waits.push((run) => sharing.wait(limit, run));
    return { kind: "wait", refilled: (run) => waitForAll(waits, run) };
  }

  /** Why nothing is served to a key, however it would be paid for; null = it is good. */
  #endOf(keyContext: KeyContext): Fault | null {
    if (this.keyCache.contact === "cut_off") return KEY_REFUSALS.cutOff;
    return endOf(keyContext, this.#parts.runtime.wallMs());
  }

  /** Whether anything would pay for a call of the smallest size. */
  #isServed({ account }: KeyContext, profile: string): boolean {
    if (isCustom(account, profile)) return true;
    const wallet = this.#walletOf(account);
    return serviceTiersOf("premium").some((service) => {
      const heldN = this.#hold(account, wallet, service, 1);
      if (typeof heldN === "number")
        this.#parts.credit.release(wallet, heldN, freeCuOf(service, 1));
      return heldN !== "no_funds";
    });
  }

  /** Closes the sockets of those who may not have them any more. */
  #sweep(): void {
    const wallMs = this.#parts.runtime.wallMs();
    // What somebody owes who has no socket any more is the operator's loss, and at most that.
    if (this.#owedCu.size > MOST_OWING) this.#owedCu.clear();
    this.keyCache.eachWithSockets((keyContext) => {
      const ended = endOf(keyContext, wallMs) !== null;
      for (const socket of [...(keyContext.openSockets ?? [])]) {
        const reason = ended ? "key_revoked" : this.#endOfSocket(keyContext, socket);
        if (reason !== null) socket.close(reason);
      }
    });
    this.#cancelSweep = this.#parts.runtime.after(SWEEP_MS, () => this.#sweep());
  }

  /** Why a socket may not stay open; null = it may. */
  #endOfSocket(keyContext: KeyContext, socket: OpenSocket): SocketEnd | null {
    if (mayName(keyContext, socket.profile)?.code === "forbidden") return "forbidden";
    const custom = isCustom(keyContext.account, socket.profile);
    if (socket.custom && !custom) return "custom_access_expired";
    socket.custom = custom;
    if (custom)
      this.#parts.profiles.touch({ accountId: keyContext.account.id, slug: socket.profile });
    return this.#isServed(keyContext, socket.profile) ? null : "balance_exhausted";
  }
}

/** A call whose price could not be held. */
interface CreditWait {
  readonly wallet: Wallet;
  readonly service: ServiceTier;
  readonly waits: number;
}

/** Calls back once when all of them have; the returned function cancels. */
function waitForAll(
  waits: readonly ((run: () => void) => () => void)[],
  run: () => void,
): () => void {
  let left = waits.length;
  const arrived = (): void => {
    if (--left === 0) run();
  };
  const cancels = waits.map((wait) => wait(arrived));
  return () => {
    for (const cancel of cancels) cancel();
  };
}

function refusalOf(keyContext: KeyContext, why: Fault): Refusal {
  return { kind: "refusal", fault: why, keyContext, limit: null };
}

/** Notifications that are delivered before they are paid for. */
const MOST_OWED_CU = 300;
const MOST_OWING = 10_000;

const EXHAUSTED = fault("balance_exhausted", "nothing is left to pay for this call", {
  nextAction:
    "fund the key (POST /api/v1/agent/keys/{key}/fund) or credit its account; with the key, " +
    "GET /api/v1/keys/current tells what it has, and POST /api/v1/agent/keys/{key}/claim-link " +
    "makes a link by which a person takes it over; the account itself (GET " +
    "/api/v1/accounts/current) is read with its management token",
});
const BALANCE_UNKNOWN_FAULT = fault("unavailable", "the balance cannot be read right now");
