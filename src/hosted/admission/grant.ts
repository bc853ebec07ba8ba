// The grant of a call with a key: how the call is served, what is held for it, and how the hold
// ends. Decides nothing: admission has decided.
import type { ServiceTier } from "../../core/billing/access.ts";
import { type ChargeKind, chargedParts, chargeKindOf } from "../../core/billing/charging.ts";
import { cachedCuOf, plainCuOf, type Tariff } from "../../core/billing/price.ts";
import type { Fault } from "../../core/faults/rpc-fault.ts";
import { NO_SOURCE, type SourceKind } from "../../core/routing/answer-source.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Credit, Wallet } from "../credit/credit.ts";
import type { KeyContext } from "../keys/key-context.ts";
import type { ProfileLoader } from "../profiles/profile-loader.ts";

/** The terms of a grant: who pays, how the call is served, and what is held for it. */
type GrantTerms = Pick<
  Grant,
  "keyContext" | "service" | "strategy" | "method" | "wallet" | "parts" | "partCu" | "heldN"
>;

/** The charge of a call. */
export interface CallCharge {
  readonly grant: Grant;
  /** Compute units of the call, also if it is not charged. */
  readonly cu: number;
  /** Nano-USD. */
  readonly chargeN: number;
  /** It is charged more than its method costs as one part with the plain strategies. */
  readonly isAbovePlain: boolean;
}

/** What settling a grant needs. */
export interface GrantParts {
  readonly credit: Pick<Credit, "settle" | "release">;
  readonly profiles: Pick<ProfileLoader, "prepare">;
  readonly settings: { readonly tariff: Tariff };
}

/** Permission to serve one call, paid by the credit of a key. Ends once: settled or released. */
export class Grant {
  readonly kind = "grant";
  readonly keyContext: KeyContext;
  readonly service: ServiceTier;
  /** The strategy that is used, which need not be the one asked for. */
  readonly strategy: Strategy;
  readonly method: Method;
  readonly wallet: Wallet;
  /** Parts in which it is planned to be asked for; each costs `partCu`. */
  readonly parts: number;
  readonly partCu: number;
  /** Compute units of all its parts. */
  readonly cu: number;
  /** Nano-USD held for it. */
  readonly heldN: number;
  readonly #parts: GrantParts;

  constructor(parts: GrantParts, terms: GrantTerms) {
    this.keyContext = terms.keyContext;
    this.service = terms.service;
    this.strategy = terms.strategy;
    this.method = terms.method;
    this.wallet = terms.wallet;
    this.parts = terms.parts;
    this.partCu = terms.partCu;
    this.cu = terms.parts * terms.partCu;
    this.heldN = terms.heldN;
    this.#parts = parts;
  }

  /**
   * The charge for an answer from this source: for a range, of at most the parts that were sent
   * (null = it was not cut). Changes nothing.
   */
  chargeFor(source: SourceKind, partsSent: number | null = null): CallCharge {
    return this.#chargeOf(chargeKindOf(source), partsSent);
  }

  #chargeOf(kind: ChargeKind, partsSent: number | null): CallCharge {
    const { tariff } = this.#parts.settings;
    const sentCu = chargedParts(this.parts, partsSent) * this.partCu;
    switch (kind) {
      case "full":
        return this.#charge(sentCu);
      case "cached":
        return this.#charge(cachedCuOf(tariff, sentCu));
      case "none":
        return { grant: this, cu: this.cu, chargeN: 0, isAbovePlain: false };
    }
  }

  #charge(cu: number): CallCharge {
    const { tariff } = this.#parts.settings;
    const chargeN = this.heldN === 0 ? 0 : cu * tariff.nanoPerCu;
    return { grant: this, cu, chargeN, isAbovePlain: cu > plainCuOf(tariff, this.method) };
  }

  /** Charges the call if an answer from this source is charged, else releases its hold. */
  settle(source: SourceKind, partsSent: number | null = null): CallCharge {
    const kind = chargeKindOf(source);
    if (kind === "none") return this.release();
    const charge = this.#chargeOf(kind, partsSent);
    const { keyContext, service, method, wallet, cu, heldN } = this;
    const heldFreeCu = freeCuOf(service, cu);
    this.#parts.credit.settle(wallet, {
      keyId: keyContext.keyId,
      method: method.name,
      cu: charge.cu,
      isCached: kind === "cached",
      heldN,
      chargeN: charge.chargeN,
      heldFreeCu,
      freeCu: charge.cu === cu ? heldFreeCu : freeCuOf(service, charge.cu),
    });
    return charge;
  }

  /** Releases its hold. */
  release(): CallCharge {
    this.#parts.credit.release(this.wallet, this.heldN, freeCuOf(this.service, this.cu));
    return this.chargeFor(NO_SOURCE);
  }

  /**
   * Loads the Custom profile that serves the call. Calls back once with why that failed, or null;
   * the returned function cancels.
   */
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
