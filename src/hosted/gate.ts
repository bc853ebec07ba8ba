// The gate: whether a caller's call is served, how, and who pays; afterwards, what it cost. Asks what is in memory only; knows no URL and no provider.
import { type Bucket, type Service, servicesOf } from "../core/access.ts";
import type { Strategy } from "../core/attempt.ts";
import type { BucketSize } from "../core/bucket.ts";
import { type Fault, fault } from "../core/fault.ts";
import type { Method } from "../core/method.ts";
import { cuOf, notificationCuOf, type Tariff } from "../core/price.ts";
import { type Quota, quotaOf, takeToken } from "../core/quota.ts";
import type { World } from "../world.ts";
import type { Credit, Wallet } from "./credit.ts";
import { endOf, type Holder, type Payer, type Seat, type SocketEnd } from "./holder.ts";
import type { Holders } from "./holders.ts";
import type { Preparation } from "./profiles-serving.ts";
import { isCustom, mayName, servicesFor } from "./reach.ts";
import { createWaitingBatches, type WaitingBatches } from "./waiting-batches.ts";

/** What a caller asks leave for. */
export interface Want {
  /** Slug of the profile that was asked for. */
  readonly profile: string;
  readonly method: Method;
  readonly strategy: Strategy;
}

/** Leave to be served. Has to be settled once. */
export interface Grant {
  readonly kind: "grant";
  readonly holder: Holder;
  readonly service: Service;
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
  readonly holder: Holder;
  /** The bucket that was empty, or would have bound. */
  readonly bucket: Bucket | null;
}

/** It cannot be said yet: more credit is on its way. */
export interface Wait {
  readonly kind: "wait";
  readonly wallet: Wallet;
}

/** What became of a grant. */
export interface Charge {
  readonly grant: Grant;
  /** Nano-USD. */
  readonly chargeN: number;
}

/** What came of asking leave for a call. */
export type Billing = Charge | Refusal;

/** Gives leave and settles it. */
export interface Gate {
  readonly holders: Holders;
  /** Whether callers without a key are served. */
  readonly keyless: boolean;
  /** The batches that wait for the rate limit of their account. */
  readonly batches: WaitingBatches;
  /** Asks leave for one call. `final` = it has waited already, and has to be answered now. */
  admit(holder: Holder, want: Want, final: boolean): Grant | Refusal | Wait;
  /** Calls back once, when what a `Wait` waits for has come or not; the returned function cancels. */
  waitFor(wait: Wait, run: () => void): () => void;
  /** Charges a call if a provider delivered, and gives the hold back otherwise. */
  settle(grant: Grant, delivered: boolean): Charge;
  /** Whether a caller could be served at all now; null = it could. For the handshake of a socket. */
  refusal(holder: Holder, profile: string): Fault | null;
  /** Gets a Custom profile of the caller ready to serve. Calls back once with why not, or null; the returned function cancels. */
  prepare(holder: Holder, profile: string, done: (why: Fault | null) => void): () => void;
  /** Keeps an open socket that asked for a profile; the returned function forgets it. */
  seat(holder: Holder, profile: string, close: (reason: SocketEnd) => void): () => void;
  /** Charges notifications of a subscription that was granted. Returns why its socket has to be closed: nothing pays any more, or that cannot be said for too long. */
  meter(grant: Grant, notifications: number): "balance_exhausted" | "unavailable" | null;
  quota(holder: Holder, bucket: Bucket): Quota;
  /** Milliseconds in which a bucket gets a token. */
  tokenMs(bucket: Bucket): number;
  /** Estimate of what is left, in nano-USD; null = unknown. */
  balanceN(grant: Grant): number | null;
  close(): void;
}

/** What callers are offered. */
export interface GateSettings {
  readonly keyless: boolean;
  readonly tariff: Tariff;
  readonly buckets: Readonly<Record<Bucket["size"], BucketSize>>;
  readonly freeCuPerMonth: number;
  readonly fallbackMs: number;
}

/** What the gate works with. */
export interface GateParts {
  readonly world: World;
  readonly settings: GateSettings;
  readonly credit: Credit;
  readonly holders: Holders;
  readonly profiles: Pick<Preparation, "prepare" | "touch">;
}

/** How often it is looked whether those with open sockets may keep them. */
const SWEEP_MS = 1_000;

/** A gate over what is known of callers and their credit. */
export function createGate(parts: GateParts): Gate {
  return new TheGate(parts);
}

class TheGate implements Gate {
  readonly holders: Holders;
  readonly keyless: boolean;
  readonly batches = createWaitingBatches();
  readonly #parts: GateParts;
  /** Compute units of notifications that were delivered while credit was being fetched. */
  readonly #owedCu = new Map<Payer, number>();
  #cancelSweep: () => void;

  constructor(parts: GateParts) {
    this.#parts = parts;
    this.holders = parts.holders;
    this.keyless = parts.settings.keyless;
    this.#cancelSweep = parts.world.after(SWEEP_MS, () => this.#sweep());
  }

  admit(holder: Holder, want: Want, final: boolean): Grant | Refusal | Wait {
    const { world } = this.#parts;
    const ended = endOf(holder, world.wallMs());
    if (ended !== null) return { kind: "refusal", fault: ended, holder, bucket: null };
    const why = mayName(holder, want.profile);
    if (why !== null) return { kind: "refusal", fault: why, holder, bucket: null };
    const wallet = this.#walletOf(holder.payer);
    for (const service of servicesFor(holder.payer, want.profile)) {
      const strategy = service.access === "public" ? "load-balanced" : want.strategy;
      const cu = cuOf(this.#parts.settings.tariff, want.method, strategy);
      const heldN = this.#pays(holder.payer, wallet, service, cu);
      if (heldN === null) continue;
      if (heldN === LATER) {
        if (!final) return { kind: "wait", wallet };
        return { kind: "refusal", fault: NOT_NOW, holder, bucket: null };
      }
      const refused = this.#takeToken(holder, service.bucket);
      if (refused === null && service.access === "custom") this.#parts.profiles.touch({ accountId: holder.payer.id, slug: service.profile });
      if (refused === null) return { kind: "grant", holder, service, strategy, method: want.method, wallet, cu, heldN };
      this.#parts.credit.release(wallet, heldN, freeCuOf(service, cu));
      return refused;
    }
    return { kind: "refusal", fault: EXHAUSTED, holder, bucket: null };
  }

  waitFor({ wallet }: Wait, run: () => void): () => void {
    return this.#parts.credit.refilled(wallet, run);
  }

  settle(grant: Grant, delivered: boolean): Charge {
    const { holder, service, method, wallet, cu, heldN } = grant;
    const freeCu = freeCuOf(service, cu);
    if (!delivered) {
      this.#parts.credit.release(wallet, heldN, freeCu);
      return { grant, chargeN: 0 };
    }
    this.#parts.credit.settle(wallet, { keyId: holder.keyId, method: method.name, cu, heldN, chargeN: heldN, freeCu });
    return { grant, chargeN: heldN };
  }

  refusal(holder: Holder, profile: string): Fault | null {
    return endOf(holder, this.#parts.world.wallMs()) ?? mayName(holder, profile) ?? (this.#isServed(holder, profile) ? null : EXHAUSTED);
  }

  prepare({ payer }: Holder, profile: string, done: (why: Fault | null) => void): () => void {
    return this.#parts.profiles.prepare({ accountId: payer.id, slug: profile }, done);
  }

  seat(holder: Holder, profile: string, close: (reason: SocketEnd) => void): () => void {
    return this.holders.seat(holder, { profile, custom: isCustom(holder.payer, profile), close });
  }

  meter({ holder, service, strategy }: Grant, notifications: number): "balance_exhausted" | "unavailable" | null {
    const { credit, settings } = this.#parts;
    const { payer, keyId } = holder;
    const wallet = this.#walletOf(payer);
    const cu = notificationCuOf(settings.tariff, strategy) * notifications + (this.#owedCu.get(payer) ?? 0);
    this.#owedCu.delete(payer);
    // Custom access that ends between two looks at the sockets stays uncharged until then.
    for (const it of service.access === "custom" ? [service] : servicesOf(service.profile === "public" ? "public" : "premium")) {
      const heldN = this.#pays(payer, wallet, it, cu);
      if (heldN === null) continue;
      if (heldN === LATER) {
        this.#owedCu.set(payer, cu);
        return cu > MOST_OWED_CU ? "unavailable" : null;
      }
      credit.settle(wallet, { keyId, method: "notification", cu, heldN, chargeN: heldN, freeCu: freeCuOf(it, cu) });
      return null;
    }
    return "balance_exhausted";
  }

  quota({ payer }: Holder, bucket: Bucket): Quota {
    return quotaOf(payer, bucket, { size: this.#parts.settings.buckets[bucket.size], nowMs: this.#parts.world.now() });
  }

  tokenMs({ size }: Bucket): number {
    return 1_000 / this.#parts.settings.buckets[size].perSecond;
  }

  balanceN({ wallet }: Grant): number | null {
    return this.#parts.credit.estimateN(wallet);
  }

  close(): void {
    this.#cancelSweep();
  }

  #walletOf(payer: Payer): Wallet {
    return this.#parts.credit.wallet(payer.id);
  }

  /** Holds the price if this service is open to the account. Returns the nano-USD held, `LATER` when that cannot be said yet, or null. */
  #pays(payer: Payer, wallet: Wallet, { means }: Service, cu: number): number | null {
    const { credit, settings, world } = this.#parts;
    switch (means) {
      case "balance": {
        const priceN = cu * settings.tariff.nanoPerCu;
        if (credit.hold(wallet, priceN)) return priceN;
        if (wallet.state !== "empty") return LATER;
        // The store says when it ran out; until it has, and while another node has the rest, it is as if it had just now.
        if (payer.paid !== null) payer.paid.exhaustedAtMs = wallet.exhaustedAtMs ?? payer.paid.exhaustedAtMs ?? world.wallMs();
        return null;
      }
      case "payment":
        return world.wallMs() < (payer.paid?.exhaustedAtMs ?? Number.NEGATIVE_INFINITY) + settings.fallbackMs ? 0 : null;
      case "free": {
        if (payer.kind !== "account") return null;
        const used = credit.freeUsedCu(wallet);
        if (used === null) return LATER;
        if (used + cu > settings.freeCuPerMonth) return null;
        credit.holdFree(wallet, cu);
        return 0;
      }
      case "custom":
        return 0;
    }
  }

  #takeToken(holder: Holder, bucket: Bucket): Refusal | null {
    const why = takeToken(holder.payer, bucket, { size: this.#parts.settings.buckets[bucket.size], nowMs: this.#parts.world.now() });
    return why === null ? null : { kind: "refusal", fault: why, holder, bucket };
  }

  /** Whether anything would pay for a call of the smallest size. */
  #isServed({ payer }: Holder, profile: string): boolean {
    if (isCustom(payer, profile)) return true;
    const wallet = this.#walletOf(payer);
    return servicesOf("premium").some((service) => {
      const heldN = this.#pays(payer, wallet, service, 1);
      if (heldN !== null && heldN !== LATER) this.#parts.credit.release(wallet, heldN, freeCuOf(service, 1));
      return heldN !== null;
    });
  }

  /** Closes the sockets of those who may not have them any more. */
  #sweep(): void {
    const wallMs = this.#parts.world.wallMs();
    // What somebody owes who has no socket any more is the operator's loss, and at most that.
    if (this.#owedCu.size > MOST_OWING) this.#owedCu.clear();
    this.holders.eachSeated((holder) => {
      const ended = endOf(holder, wallMs) !== null;
      for (const seat of [...(holder.seats ?? [])]) {
        const reason = ended ? "key_revoked" : this.#endOfSeat(holder, seat);
        if (reason !== null) seat.close(reason);
      }
    });
    this.#cancelSweep = this.#parts.world.after(SWEEP_MS, () => this.#sweep());
  }

  /** Why a socket may not stay open; null = it may. */
  #endOfSeat(holder: Holder, seat: Seat): SocketEnd | null {
    if (mayName(holder, seat.profile)?.code === "forbidden") return "forbidden";
    const custom = isCustom(holder.payer, seat.profile);
    if (seat.custom && !custom) return "custom_access_expired";
    seat.custom = custom;
    if (custom) this.#parts.profiles.touch({ accountId: holder.payer.id, slug: seat.profile });
    return this.#isServed(holder, seat.profile) ? null : "balance_exhausted";
  }
}

function freeCuOf({ means }: Service, cu: number): number {
  return means === "free" ? cu : 0;
}

/** Notifications that are delivered before they are paid for. */
const MOST_OWED_CU = 300;
const MOST_OWING = 10_000;
/** A hold that cannot be had or refused before the store has answered. */
const LATER = -1;

const EXHAUSTED = fault("balance_exhausted", "nothing is left to pay for this call", {
  nextAction:
    "fund the key (POST /api/v1/agent/keys/{key}/fund) or credit its account; with the key, GET /api/v1/keys/current tells what it has, and POST /api/v1/agent/keys/{key}/claim-link makes a link by which a person takes it over; the account itself (GET /api/v1/accounts/current) is read with its management token",
});
const NOT_NOW = fault("unavailable", "the balance cannot be read right now");
