// The port of a rail: one way in which money arrives. A rail knows its protocol and its chain; it
// writes nothing to the store and credits nobody. Expected failure is a returned value; what throws
// is trouble on the way to the chain, and says nothing about the payment.

/**
 * What a rail offers for an amount; the fields of a challenge's `request`, as MPP's method of this
 * name defines them.
 */
export interface RailOffer {
  /** MPP method and intent. */
  readonly method: string;
  readonly intent: string;
  readonly request: Readonly<Record<string, unknown>>;
}

/** An entry of x402's `accepts`. */
export interface X402Offer {
  readonly scheme: "exact";
  /** CAIP-2. */
  readonly network: string;
  /** Base units. */
  readonly amount: string;
  readonly asset: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: Readonly<Record<string, unknown>>;
}

/**
 * What a client sent to pay, after its challenge was found to be ours (MPP), or as it came (x402).
 */
export type PaymentCredential =
  | {
      readonly protocol: "mpp";
      /** The challenge as mppx knows it: id, realm, request, expires, digest, meta. */
      readonly challenge: MppChallenge;
      /** As the client sent it: unchecked. */
      readonly payload: unknown;
      /** DID of the payer; null = not said. */
      readonly source: string | null;
    }
  | { readonly protocol: "x402"; readonly accepted: X402Offer; readonly payload: unknown };

/** A challenge of ours: its HMAC was right. */
export interface MppChallenge {
  readonly id: string;
  readonly realm: string;
  readonly method: string;
  readonly intent: string;
  readonly request: Readonly<Record<string, unknown>>;
  /** ISO 8601; null = never. */
  readonly expires: string | null;
}

/**
 * A payment as it was read: everything that is needed to settle it, whatever becomes of the request
 * that brought it.
 */
export interface Payment {
  /**
   * The same for the same payment, however often and by whomever it is sent. Unique over all rails.
   */
  readonly key: string;
  /** Address that pays; as given, on the chain's authority only once settled. */
  readonly payer: string;
  /** Base units that it moves. */
  readonly units: bigint;
  /**
   * From when on the chain cannot carry it out any more, on the chain's clock, milliseconds; null =
   * never.
   */
  readonly validUntilMs: number | null;
  /**
   * True where the client has sent the money itself: it has moved, or will, whether the payment is
   * taken or not.
   */
  readonly isSent: boolean;
  /** What the rail needs of it later, as JSON text. May hold signatures: never log or show it. */
  readonly material: string;
}

/** Why a payment cannot be taken. The text is for the payer, and names what to change. */
export interface BadPayment {
  readonly kind: "bad_payment";
  /**
   * The last part of MPP's problem type: `verification-failed`, `payment-expired`,
   * `malformed-credential`, …
   */
  readonly problem: string;
  readonly reason: string;
  /**
   * Of the offer that it says to answer, where that is not known to be ours (any more): checked by
   * nobody.
   */
  readonly offerId?: string;
}

/** A purchase as its rail sees it. */
export interface RailPurchase {
  readonly id: string;
  readonly payment: Payment;
  /** What was sent for it, the newest last; empty = nothing. */
  readonly submissions: readonly Submission[];
}

/** A transaction of ours, or one that we pass on: kept before it is sent. */
export interface Submission {
  /** Hash that the chain will know it by. */
  readonly txHash: string;
  /** Signed bytes, 0x…; null where the client has sent it itself. */
  readonly raw: string | null;
  /** Of our own wallet; null = the transaction is not ours. */
  readonly nonce: bigint | null;
}

/** A transaction that is ready but for the nonce of our wallet. */
export interface Draft {
  /**
   * Wallet whose nonce it takes, by `<chain id>:<address>`, and what the chain says is its next
   * one; null = it takes none.
   */
  readonly wallet: { readonly id: string; readonly chainNonce: bigint } | null;
  /**
   * Base units that the payer holds, where what is sent for it at once has to fit into that: what
   * reverts is paid for by our wallet. Absent = it is the payer's own to pay.
   */
  readonly heldUnits?: bigint;
  /** Signs it; asks nobody. `nonce` is null exactly where `wallet` is. */
  sign(nonce: bigint | null): Promise<Submission>;
}

/** What the chain says of a payment. */
export type ChainStatus =
  | {
      readonly kind: "settled";
      readonly txHash: string;
      readonly block: bigint;
      /** The transfer within the block; with the hash it names one movement of money. */
      readonly logIndex: number;
    }
  /**
   * Not there yet, or not deep enough. `resend`: nothing of what was sent waits for a block any
   * more, or the chain does not know it. `replace`: what was sent pays too little to be taken.
   */
  | { readonly kind: "open"; readonly resend: boolean; readonly replace: boolean }
  /** It will never settle. */
  | { readonly kind: "failed"; readonly reason: string };

/** A wallet of ours that pays for gas. */
export interface WalletState {
  /** `<chain id>:<address>`. */
  readonly id: string;
  readonly balanceWei: bigint;
  readonly low: boolean;
  /** True where it cannot pay for one more settlement at the present fees. */
  readonly empty: boolean;
  /** True where a settlement would cost more gas at the present fees than it may. */
  readonly dear: boolean;
  /**
   * Its next nonce as of the block at the configured depth: lower ones are used up, by whatever
   * transaction.
   */
  readonly nonce: bigint;
}

/** One way to pay. Every call to the chain has a deadline. */
export interface Rail {
  /** `tempo` or `evm`: the name of its MPP method. */
  readonly method: string;
  readonly chainId: number;
  /** Address of the token, and of who receives. */
  readonly token: string;
  readonly recipient: string;
  readonly local: boolean;
  /**
   * Tells this chain from another one with the same number: its first block's hash, shortened.
   * Throws while the chain is not reached.
   */
  network(): Promise<string>;
  /** Asks the chain for something that any node knows at once. Throws while it is not reached. */
  ping(): Promise<void>;
  offer(units: bigint): RailOffer;
  /** Null = it is not paid by x402. */
  x402Offer(units: bigint, validMs: number): X402Offer | null;
  /** Whether an x402 payment is meant for this rail. */
  takesX402(accepted: X402Offer): boolean;
  /**
   * Reads a payment, checks signatures and what it says against the offer it answers; asks no
   * chain. `units` = what has to be paid.
   */
  read(credential: PaymentCredential, units: bigint): Promise<Payment | BadPayment>;
  /** The key of a payment without any check, to find it again; null = it has none. */
  keyOf(credential: PaymentCredential): string | null;
  /**
   * Asks the chain whether it would carry the payment out now. Throws where the chain cannot be
   * asked.
   */
  check(payment: Payment): Promise<BadPayment | null>;
  /**
   * Makes the next transaction for a purchase: the first one, or one that may replace the newest
   * submission (same nonce, higher fee) or follow it. Null = the chain would not carry it out at
   * present, or the wallet cannot pay for it: there is nothing to send now. Throws where the chain
   * cannot be asked.
   */
  draft(purchase: RailPurchase): Promise<Draft | null>;
  /**
   * Sends what was written; harmless when it was sent before, and whatever the chain says of it.
   * Throws where the chain cannot be reached.
   */
  send(submission: Submission): Promise<void>;
  /** What the chain says. Throws where it cannot be asked. */
  look(purchase: RailPurchase): Promise<ChainStatus>;
  /** The wallet that pays for gas; null = this rail needs none. */
  wallet(): Promise<WalletState | null>;
}
