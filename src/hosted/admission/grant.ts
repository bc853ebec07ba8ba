// The grant of a call with a key: how the call is served, what is held for it, and how the hold
// ends. Decides nothing: admission has decided.
import type { ServiceTier } from "../../core/billing/access.ts";
import { chargeKindOf } from "../../core/billing/charging.ts";
import { cachedCuOf, type Tariff } from "../../core/billing/price.ts";
import type { Fault } from "../../core/faults/rpc-fault.ts";
import type { SourceKind } from "../../core/routing/answer-source.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Credit, Wallet } from "../credit/credit.ts";
import type { KeyContext } from "../keys/key-context.ts";
import type { ProfileLoader } from "../profiles/profile-loader.ts";

/** The terms of a grant: who pays, how the call is served, and what is held for it. */
export interface GrantTerms {
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

/** Permission to serve one call, paid by the credit of a key. Ends once: settled or released. */
export interface Grant extends GrantTerms {
  readonly kind: "grant";
  /** What it will be charged for an answer from this source; changes nothing. */
  chargeFor(source: SourceKind): CallCharge;
  /** Charges the call if an answer from this source is charged, else releases its hold. */
  settle(source: SourceKind): CallCharge;
  /** Releases its hold. */
  release(): CallCharge;
  /**
   * Loads the Custom profile that serves the call. Calls back once with why that failed, or null;
   * the returned function cancels.
   */
  prepare(done: (why: Fault | null) => void): () => void;
}

/** The charge of a call. */
export interface CallCharge {
  readonly grant: Grant;
  /** Compute units of the call; of an uncharged one those that it would have cost. */
  readonly cu: number;
  /** Nano-USD. */
  readonly chargeN: number;
}

/** What settling a grant needs. */
export interface GrantParts {
  readonly credit: Pick<Credit, "settle" | "release">;
  readonly profiles: Pick<ProfileLoader, "prepare">;
  readonly settings: { readonly tariff: Pick<Tariff, "cachePercent" | "nanoPerCu"> };
}

/** A grant whose price is held in the wallet already. */
export class CreditGrant implements Grant {
  readonly kind = "grant";
  readonly keyContext: KeyContext;
  readonly service: ServiceTier;
  readonly strategy: Strategy;
  readonly method: Method;
  readonly wallet: Wallet;
  readonly cu: number;
  readonly heldN: number;
  readonly #parts: GrantParts;

  constructor(parts: GrantParts, terms: GrantTerms) {
    this.keyContext = terms.keyContext;
    this.service = terms.service;
    this.strategy = terms.strategy;
    this.method = terms.method;
    this.wallet = terms.wallet;
    this.cu = terms.cu;
    this.heldN = terms.heldN;
    this.#parts = parts;
  }

  chargeFor(source: SourceKind): CallCharge {
    switch (chargeKindOf(source)) {
      case "full":
        return { grant: this, cu: this.cu, chargeN: this.heldN };
      case "cached": {
        const { tariff } = this.#parts.settings;
        const cu = cachedCuOf(tariff, this.cu);
        return { grant: this, cu, chargeN: this.heldN === 0 ? 0 : cu * tariff.nanoPerCu };
      }
      case "none":
        return { grant: this, cu: this.cu, chargeN: 0 };
    }
  }

  settle(source: SourceKind): CallCharge {
    const kind = chargeKindOf(source);
    if (kind === "none") return this.release();
    const charge = this.chargeFor(source);
    const { keyContext, service, method, wallet, cu, heldN } = this;
    this.#parts.credit.settle(wallet, {
      keyId: keyContext.keyId,
      method: method.name,
      cu: charge.cu,
      isCached: kind === "cached",
      heldN,
      chargeN: charge.chargeN,
      heldFreeCu: freeCuOf(service, cu),
      freeCu: freeCuOf(service, charge.cu),
    });
    return charge;
  }

  release(): CallCharge {
    this.#parts.credit.release(this.wallet, this.heldN, freeCuOf(this.service, this.cu));
    return { grant: this, cu: this.cu, chargeN: 0 };
  }

  prepare(done: (why: Fault | null) => void): () => void {
    const { keyContext, service } = this;
    const profile = { accountId: keyContext.account.id, slug: service.profile };
    return this.#parts.profiles.prepare(profile, done);
  }
}

/** Compute units of a call that come out of the free allowance. */
export function freeCuOf({ funding }: ServiceTier, cu: number): number {
  return funding === "free" ? cu : 0;
}
