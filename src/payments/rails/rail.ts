// The port of a rail: one way in which money arrives. A rail knows its protocol and its chain; it
// writes nothing to the store and credits nobody. Expected failure is a returned value; a thrown
// error means that the chain was not reached, and says nothing about the payment.

/**
 * The offer of a rail for an amount; `request` has the fields that MPP's method of this name
 * defines.
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
 * The payment in a request, after its challenge was found to be ours (MPP), or as it came (x402).
 */
export type PaymentCredential =
  | {
      readonly protocol: "mpp";
      /** The challenge as mppx knows it: id, realm, request, expires, digest, meta. */
      readonly challenge: MppChallenge;
      /** As the client sent it, unchecked. */
      readonly payload: unknown;
      /** DID of the payer; null = not given. */
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
 * A payment after reading: everything that is needed to settle it without the request that brought
 * it.
 */
export interface Payment {
  /**
   * Equal for the same payment, however often and by any client it is sent. Unique over all
   * rails.
   */
  readonly key: string;
  /** The paying address; as claimed, until the payment has settled. */
  readonly payer: string;
  /** Base units that it moves. */
  readonly units: bigint;
  /**
   * When the chain can no longer carry it out, on the chain's clock, in milliseconds; null = never.
   */
  readonly validUntilMs: number | null;
  /**
   * True if the client has sent the transaction itself: the money moves whether the payment is
   * accepted or not.
   */
  readonly isSent: boolean;
  /** What the rail needs later, as JSON text. May hold signatures: never log or show it. */
  readonly material: string;
}

/** Why a payment is refused. The text is for the payer, and names what to change. */
export interface BadPayment {
  readonly kind: "bad_payment";
  /**
   * The last part of MPP's problem type: `verification-failed`, `payment-expired`,
   * `malformed-credential`, …
   */
  readonly problem: string;
  readonly reason: string;
  /** The offer that it claims to answer, unverified; absent if the offer is known to be ours. */
  readonly offerId?: string;
}

/** Refuses a payment; `problem` as in `BadPayment`. */
export function bad(problem: string, reason: string): BadPayment {
  return { kind: "bad_payment", problem, reason };
}

/** Addresses are equal in any case of their letters. */
export function isSameAddress(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** A purchase as its rail sees it. */
export interface RailPurchase {
  readonly id: string;
  readonly payment: Payment;
  /** Its submissions, the newest last; empty = none. */
  readonly submissions: readonly Submission[];
}

/** A transaction of ours, or one that we pass on: recorded before it is sent. */
export interface Submission {
  /** Hash of the transaction on the chain. */
  readonly txHash: string;
  /** Signed bytes, 0x…; null = the client has sent it itself. */
  readonly raw: string | null;
  /** Of our own wallet; null = the transaction is not ours. */
  readonly nonce: bigint | null;
}

/** A transaction that is complete except for the nonce of our wallet. */
export interface Draft {
  /**
   * The wallet whose nonce it takes, by `<chain id>:<address>`, and its next nonce on the chain;
   * null = it takes none.
   */
  readonly wallet: { readonly id: string; readonly chainNonce: bigint } | null;
  /**
   * Base units that the payer holds, if the transactions under way for the payer must not exceed
   * them: our wallet pays the gas of each one that reverts. Absent = the payer pays for its own.
   */
  readonly heldUnits?: bigint;
  /** Signs it, without any call. `nonce` is null exactly if `wallet` is. */
  sign(nonce: bigint | null): Promise<Submission>;
}

/** The status of a payment on its chain. */
export type ChainStatus =
  | {
      readonly kind: "settled";
      readonly txHash: string;
      readonly block: bigint;
      /** The transfer within the block; hash and index name one movement of money. */
      readonly logIndex: number;
    }
  /**
   * Not in a block yet, or not deep enough. `resend`: no submission is pending any more, or the
   * chain does not know it. `replace`: the submission's fee is too low.
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
  /** True if it cannot pay for one more settlement at the present fees. */
  readonly empty: boolean;
  /** True if a settlement at the present fees would cost more gas than allowed. */
  readonly dear: boolean;
  /** Its next nonce as of the block at the configured depth: all lower ones are used. */
  readonly nonce: bigint;
}

/** One way to pay. Every call to the chain has a deadline. */
export interface Rail {
  /** `tempo` or `evm`: the name of its MPP method. */
  readonly method: string;
  readonly chainId: number;
  /** Addresses of the token and of the recipient. */
  readonly token: string;
  readonly recipient: string;
  readonly local: boolean;
  /**
   * Distinguishes this chain from another one with the same number: its first block's hash,
   * shortened. Throws while the chain is not reached.
   */
  network(): Promise<string>;
  /** Makes a call that any node answers at once. Throws while the chain is not reached. */
  ping(): Promise<void>;
  offer(units: bigint): RailOffer;
  /** Null = the rail does not take x402. */
  x402Offer(units: bigint, validMs: number): X402Offer | null;
  /** Whether an x402 payment is meant for this rail. */
  takesX402(accepted: X402Offer): boolean;
  /**
   * Reads a payment, and checks its signatures and its contents against the offer that it answers;
   * calls no chain. `units` = the price.
   */
  read(credential: PaymentCredential, units: bigint): Promise<Payment | BadPayment>;
  /** The key of a payment without any check, to find its record; null = it has none. */
  keyOf(credential: PaymentCredential): string | null;
  /**
   * Checks whether the chain would carry the payment out now; null = it would. Throws while the
   * chain is not reached.
   */
  check(payment: Payment): Promise<BadPayment | null>;
  /**
   * Drafts the next transaction for a purchase: the first submission, a replacement of the newest
   * (same nonce, higher fee), or the next one after it. Null = the chain would not carry it out at
   * present, or the wallet cannot pay for it. Throws while the chain is not reached.
   */
  draft(purchase: RailPurchase): Promise<Draft | null>;
  /**
   * Sends a recorded submission; sending it twice changes nothing, and an error of the node is
   * ignored. Throws while the chain is not reached.
   */
  send(submission: Submission): Promise<void>;
  /** Reads the status of a purchase. Throws while the chain is not reached. */
  look(purchase: RailPurchase): Promise<ChainStatus>;
  /** The wallet that pays for gas; null = this rail needs none. */
  wallet(): Promise<WalletState | null>;
}
