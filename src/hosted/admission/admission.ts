// The gate: whether a caller's call is served, how, and who pays; afterwards, what it cost. Asks
// what is in memory only; knows no URL and no provider.
import { type RateLimit, type ServiceTier, serviceTiersOf } from "../../core/billing/access.ts";
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import { cuOf, notificationCuOf, type Tariff } from "../../core/billing/price.ts";
import {
  type RateLimitStatus,
  rateLimitStatusOf,
  takeToken,
} from "../../core/billing/rate-limit.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Runtime } from "../../runtime.ts";
import type { Credit, Wallet } from "../credit/credit.ts";
import type { KeyCache } from "../keys/key-cache.ts";
import {
  type AccountState,
  endOf,
  type KeyContext,
  type OpenSocket,
  type SocketEnd,
} from "../keys/key-context.ts";
import type { ProfileLoader } from "../profiles/profile-loader.ts";
import { isCustom, mayName, serviceTiersFor } from "./profile-access.ts";
import { createWaitingBatches, type WaitingBatches } from "./waiting-batches.ts";

/** What a caller asks leave for. */
export interface AdmissionRequest {
  /** Slug of the profile that was asked for. */
  readonly profile: string;
  readonly method: Method;
  readonly strategy: Strategy;
}

/** Leave to be served. Has to be settled once. */
export interface Grant {
  readonly kind: "grant";
  readonly keyContext: KeyContext;
  readonly service: ServiceTier;
  /** The strategy that is used, which need not be the one asked for. */
  readonly strategy: Strategy;
  readonly method: Method;
  readonly wallet: Wallet;
  readonly cu: number;
  /** Nano-USD held for it. */
  readonly heldN: number;
}

/** No leave. */
export interface Refusal {
  readonly kind: "refusal";
  readonly fault: Fault;
  readonly keyContext: KeyContext;
  /** The bucket that was empty, or would have bound. */
  readonly bucket: RateLimit | null;
}

/** It cannot be said yet: more credit is on its way. */
export interface Wait {
  readonly kind: "wait";
  readonly wallet: Wallet;
}

/** What became of a grant. */
export interface CallCharge {
  readonly grant: Grant;
  /** Nano-USD. */
  readonly chargeN: number;
}

/** What came of asking leave for a call. */
export type Billing = CallCharge | Refusal;

/** Gives leave and settles it. */
export interface Admission {
  readonly keyCache: KeyCache;
  /** Whether callers without a key are served. */
  readonly keyless: boolean;
  /** The batches that wait for the rate limit of their account. */
  readonly batches: WaitingBatches;
  /** Asks leave for one call. `final` = it has waited already, and has to be answered now. */
  admit(keyContext: KeyContext, want: AdmissionRequest, final: boolean): Grant | Refusal | Wait;
  /**
   * Calls back once, when what a `Wait` waits for has come or not; the returned function cancels.
   */
  waitFor(wait: Wait, run: () => void): () => void;
  /** Charges a call if a provider delivered, and gives the hold back otherwise. */
  settle(grant: Grant, delivered: boolean): CallCharge;
  /**
   * Whether a caller could be served at all now; null = it could. For the handshake of a socket.
   */
  refusal(keyContext: KeyContext, profile: string): Fault | null;
  /**
   * Gets a Custom profile of the caller ready to serve. Calls back once with why not, or null; the
   * returned function cancels.
   */
  prepare(keyContext: KeyContext, profile: string, done: (why: Fault | null) => void): () => void;
  /** Keeps an open socket that asked for a profile; the returned function forgets it. */
  seat(keyContext: KeyContext, profile: string, close: (reason: SocketEnd) => void): () => void;
  /**
   * Charges notifications of a subscription that was granted. Returns why its socket has to be
   * closed: nothing pays any more, or that cannot be said for too long.
   */
  meter(grant: Grant, notifications: number): "balance_exhausted" | "unavailable" | null;
  quota(keyContext: KeyContext, bucket: RateLimit): RateLimitStatus;
  /** Milliseconds in which a bucket gets a token. */
  tokenMs(bucket: RateLimit): number;
  /** Estimate of what is left, in nano-USD; null = unknown. */
  balanceN(grant: Grant): number | null;
  close(): void;
}

/** What callers are offered. */
export interface AdmissionSettings {
  readonly keyless: boolean;
  readonly tariff: Tariff;
  readonly buckets: Readonly<Record<RateLimit["size"], RateLimitSize>>;
  readonly freeCuPerMonth: number;
  readonly fallbackMs: number;
}

/** What the gate works with. */
export interface AdmissionParts {
  readonly runtime: Runtime;
  readonly settings: AdmissionSettings;
  readonly credit: Credit;
  readonly keyCache: KeyCache;
  readonly profiles: Pick<ProfileLoader, "prepare" | "touch">;
}

/** How often it is looked whether those with open sockets may keep them. */
const SWEEP_MS = 1_000;

/** A gate over what is known of callers and their credit. */
export function createAdmission(parts: AdmissionParts): Admission {
  return new TheGate(parts);
}

class TheGate implements Admission {
  readonly keyCache: KeyCache;
  readonly keyless: boolean;
  readonly batches = createWaitingBatches();
  readonly #parts: AdmissionParts;
  /** Compute units of notifications that were delivered while credit was being fetched. */
  readonly #owedCu = new Map<AccountState, number>();
  #cancelSweep: () => void;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
    this.keyCache = parts.keyCache;
    this.keyless = parts.settings.keyless;
    this.#cancelSweep = parts.runtime.after(SWEEP_MS, () => this.#sweep());
  }

  admit(keyContext: KeyContext, want: AdmissionRequest, final: boolean): Grant | Refusal | Wait {
    const { runtime } = this.#parts;
    const ended = endOf(keyContext, runtime.wallMs());
    if (ended !== null) return { kind: "refusal", fault: ended, keyContext, bucket: null };
    const why = mayName(keyContext, want.profile);
    if (why !== null) return { kind: "refusal", fault: why, keyContext, bucket: null };
    const wallet = this.#walletOf(keyContext.payer);
    for (const service of serviceTiersFor(keyContext.payer, want.profile)) {
      const strategy = service.access === "public" ? "load-balanced" : want.strategy;
      const cu = cuOf(this.#parts.settings.tariff, want.method, strategy);
      const heldN = this.#pays(keyContext.payer, wallet, service, cu);
      if (heldN === null) continue;
      if (heldN === BALANCE_UNKNOWN) {
        if (!final) return { kind: "wait", wallet };
        return { kind: "refusal", fault: BALANCE_UNKNOWN_FAULT, keyContext, bucket: null };
      }
      const refused = this.#takeToken(keyContext, service.bucket);
      if (refused === null && service.access === "custom")
        this.#parts.profiles.touch({ accountId: keyContext.payer.id, slug: service.profile });
      if (refused === null)
        return {
          kind: "grant",
          keyContext,
          service,
          strategy,
          method: want.method,
          wallet,
          cu,
          heldN,
        };
      this.#parts.credit.release(wallet, heldN, freeCuOf(service, cu));
      return refused;
    }
    return { kind: "refusal", fault: EXHAUSTED, keyContext, bucket: null };
  }

  waitFor({ wallet }: Wait, run: () => void): () => void {
    return this.#parts.credit.refilled(wallet, run);
  }

  settle(grant: Grant, delivered: boolean): CallCharge {
    const { keyContext, service, method, wallet, cu, heldN } = grant;
    const freeCu = freeCuOf(service, cu);
    if (!delivered) {
      this.#parts.credit.release(wallet, heldN, freeCu);
      return { grant, chargeN: 0 };
    }
    this.#parts.credit.settle(wallet, {
      keyId: keyContext.keyId,
      method: method.name,
      cu,
      heldN,
      chargeN: heldN,
      freeCu,
    });
    return { grant, chargeN: heldN };
  }

  refusal(keyContext: KeyContext, profile: string): Fault | null {
    return (
      endOf(keyContext, this.#parts.runtime.wallMs()) ??
      mayName(keyContext, profile) ??
      (this.#isServed(keyContext, profile) ? null : EXHAUSTED)
    );
  }

  prepare({ payer }: KeyContext, profile: string, done: (why: Fault | null) => void): () => void {
    return this.#parts.profiles.prepare({ accountId: payer.id, slug: profile }, done);
  }

  seat(keyContext: KeyContext, profile: string, close: (reason: SocketEnd) => void): () => void {
    return this.keyCache.seat(keyContext, {
      profile,
      custom: isCustom(keyContext.payer, profile),
      close,
    });
  }

  meter(
    { keyContext, service, strategy }: Grant,
    notifications: number,
  ): "balance_exhausted" | "unavailable" | null {
    const { credit, settings } = this.#parts;
    const { payer, keyId } = keyContext;
    const wallet = this.#walletOf(payer);
    const cu =
      notificationCuOf(settings.tariff, strategy) * notifications + (this.#owedCu.get(payer) ?? 0);
    this.#owedCu.delete(payer);
    // Custom access that ends between two looks at the sockets stays uncharged until then.
    for (const it of service.access === "custom"
      ? [service]
      : serviceTiersOf(service.profile === "public" ? "public" : "premium")) {
      const heldN = this.#pays(payer, wallet, it, cu);
      if (heldN === null) continue;
      if (heldN === BALANCE_UNKNOWN) {
        this.#owedCu.set(payer, cu);
        return cu > MOST_OWED_CU ? "unavailable" : null;
      }
      credit.settle(wallet, {
        keyId,
        method: "notification",
        cu,
        heldN,
        chargeN: heldN,
        freeCu: freeCuOf(it, cu),
      });
      return null;
    }
    return "balance_exhausted";
  }

  quota({ payer }: KeyContext, bucket: RateLimit): RateLimitStatus {
    return rateLimitStatusOf(payer, bucket, {
      size: this.#parts.settings.buckets[bucket.size],
      nowMs: this.#parts.runtime.now(),
    });
  }

  tokenMs({ size }: RateLimit): number {
    return 1_000 / this.#parts.settings.buckets[size].perSecond;
  }

  balanceN({ wallet }: Grant): number | null {
    return this.#parts.credit.estimateN(wallet);
  }

  close(): void {
    this.#cancelSweep();
  }

  #walletOf(payer: AccountState): Wallet {
    return this.#parts.credit.wallet(payer.id);
  }

  /**
   * Holds the price if this service is open to the account. Returns the nano-USD held,
   * `BALANCE_UNKNOWN` when that cannot be said yet, or null.
   */
  #pays(payer: AccountState, wallet: Wallet, { means }: ServiceTier, cu: number): number | null {
    const { credit, settings, runtime } = this.#parts;
    switch (means) {
      case "balance": {
        const priceN = cu * settings.tariff.nanoPerCu;
        if (credit.hold(wallet, priceN)) return priceN;
        if (wallet.state !== "empty") return BALANCE_UNKNOWN;
        // The store says when it ran out; until it has, and while another node has the rest, it is
        // as if it had just now.
        if (payer.paid !== null)
          payer.paid.exhaustedAtMs =
            wallet.exhaustedAtMs ?? payer.paid.exhaustedAtMs ?? runtime.wallMs();
        return null;
      }
      case "payment":
        return runtime.wallMs() <
          (payer.paid?.exhaustedAtMs ?? Number.NEGATIVE_INFINITY) + settings.fallbackMs
          ? 0
          : null;
      case "free": {
        if (payer.kind !== "account") return null;
        const used = credit.freeUsedCu(wallet);
        if (used === null) return BALANCE_UNKNOWN;
        if (used + cu > settings.freeCuPerMonth) return null;
        credit.holdFree(wallet, cu);
        return 0;
      }
      case "custom":
        return 0;
    }
  }

  #takeToken(keyContext: KeyContext, bucket: RateLimit): Refusal | null {
    const why = takeToken(keyContext.payer, bucket, {
      size: this.#parts.settings.buckets[bucket.size],
      nowMs: this.#parts.runtime.now(),
    });
    return why === null ? null : { kind: "refusal", fault: why, keyContext, bucket };
  }

  /** Whether anything would pay for a call of the smallest size. */
  #isServed({ payer }: KeyContext, profile: string): boolean {
    if (isCustom(payer, profile)) return true;
    const wallet = this.#walletOf(payer);
    return serviceTiersOf("premium").some((service) => {
      const heldN = this.#pays(payer, wallet, service, 1);
      if (heldN !== null && heldN !== BALANCE_UNKNOWN)
        this.#parts.credit.release(wallet, heldN, freeCuOf(service, 1));
      return heldN !== null;
    });
  }

  /** Closes the sockets of those who may not have them any more. */
  #sweep(): void {
    const wallMs = this.#parts.runtime.wallMs();
    // What somebody owes who has no socket any more is the operator's loss, and at most that.
    if (this.#owedCu.size > MOST_OWING) this.#owedCu.clear();
    this.keyCache.eachSeated((keyContext) => {
      const ended = endOf(keyContext, wallMs) !== null;
      for (const seat of [...(keyContext.openSockets ?? [])]) {
        const reason = ended ? "key_revoked" : this.#endOfSeat(keyContext, seat);
        if (reason !== null) seat.close(reason);
      }
    });
    this.#cancelSweep = this.#parts.runtime.after(SWEEP_MS, () => this.#sweep());
  }

  /** Why a socket may not stay open; null = it may. */
  #endOfSeat(keyContext: KeyContext, seat: OpenSocket): SocketEnd | null {
    if (mayName(keyContext, seat.profile)?.code === "forbidden") return "forbidden";
    const custom = isCustom(keyContext.payer, seat.profile);
    if (seat.custom && !custom) return "custom_access_expired";
    seat.custom = custom;
    if (custom) this.#parts.profiles.touch({ accountId: keyContext.payer.id, slug: seat.profile });
    return this.#isServed(keyContext, seat.profile) ? null : "balance_exhausted";
  }
}

function freeCuOf({ means }: ServiceTier, cu: number): number {
  return means === "free" ? cu : 0;
}

/** Notifications that are delivered before they are paid for. */
const MOST_OWED_CU = 300;
const MOST_OWING = 10_000;
/** A hold that cannot be had or refused before the store has answered. */
const BALANCE_UNKNOWN = -1;

const EXHAUSTED = fault("balance_exhausted", "nothing is left to pay for this call", {
  nextAction:
    "fund the key (POST /api/v1/agent/keys/{key}/fund) or credit its account; with the key, " +
    "GET /api/v1/keys/current tells what it has, and POST /api/v1/agent/keys/{key}/claim-link " +
    "makes a link by which a person takes it over; the account itself (GET " +
    "/api/v1/accounts/current) is read with its management token",
});
const BALANCE_UNKNOWN_FAULT = fault("unavailable", "the balance cannot be read right now");
