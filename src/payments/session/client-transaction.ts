// The transactions that a payer signs and we send: the one that opens a channel, and those that put
// more into it. Read and checked here without asking a chain.
import { Session } from "mppx/tempo";
import type { PaymentChain } from "../rails/chain.ts";
import { createEvmNode } from "../rails/evm/node.ts";
import type { BadPayment } from "../rails/rail.ts";
import { checkTransaction } from "../rails/tempo/preflight.ts";
import { parseTransaction } from "../rails/tempo/transaction.ts";
import { type Hex, parseHex, type SessionPayload } from "./descriptor.ts";
import type { SessionTerms } from "./terms.ts";

/** A transaction that may be written down and sent. */
export interface ClientTransaction {
  readonly kind: "client_transaction";
  readonly hash: Hex;
  /** Signed bytes. */
  readonly raw: Hex;
  /** What it puts into the channel. */
  readonly units: bigint;
  /** From when on the chain takes it no more, on the chain's clock. */
  readonly validUntilMs: number;
}

/** Reads what payers have signed, and tries it out. */
export interface ClientReader {
  /** The transaction of an `open`: it opens just this channel, and does nothing else. */
  opening(payload: OpenPayload, nowMs: number): ClientTransaction | BadPayment;
  /** The transaction of a `topUp`: it puts into just this channel what it says. */
  topUp(payload: TopUpPayload, nowMs: number): ClientTransaction | BadPayment;
  /** Null = the chain would carry it out now. Throws `ChainFailure` where it cannot be asked. */
  trial(transaction: ClientTransaction): Promise<BadPayment | null>;
}

/** What opens a channel. */
export type OpenPayload = Extract<SessionPayload, { readonly action: "open" }>;
/** What puts more into one. */
export type TopUpPayload = Extract<SessionPayload, { readonly action: "top_up" }>;

/** Reads transactions for `terms`, and tries them out on `chain`. */
export function createClientReader(terms: SessionTerms, chain: PaymentChain): ClientReader {
  const asking = { chain, node: createEvmNode(chain) };
  return {
    opening: (payload, nowMs) => readOpening(terms, payload, nowMs),
    topUp: (payload, nowMs) => readTopUp(terms, payload, nowMs),
    trial: ({ raw }) => {
      const transaction = parseTransaction(raw);
      if ("wrong" in transaction) throw new Error("what was read once cannot be read any more");
      return checkTransaction(asking, transaction);
    },
  };
}

/** A transaction that could stay undecided for longer is not sent. */
const MAX_VALID_MS = 900_000;
const MAX_REASON_CHARS = 200;

function readOpening(
  terms: SessionTerms,
  payload: OpenPayload,
  nowMs: number,
): ClientTransaction | BadPayment {
  const { descriptor, channelId } = payload;
  return read(terms, { payload, nowMs }, (raw) => {
    const opening = Session.Precompile.Chain.validateOpenCredentialTransaction({
      chainId: terms.chainId,
      escrowContract: terms.escrow,
      expectedAuthorizedSigner: descriptor.authorizedSigner,
      expectedChannelId: channelId,
      expectedCurrency: terms.token,
      expectedOperator: terms.operator,
      expectedPayee: terms.recipient,
      expectedExpiringNonceHash: descriptor.expiringNonceHash,
      expectedPayer: descriptor.payer,
      serializedTransaction: raw,
    });
    return opening.openDeposit;
  });
}

function readTopUp(
  terms: SessionTerms,
  payload: TopUpPayload,
  nowMs: number,
): ClientTransaction | BadPayment {
  const { descriptor, units } = payload;
  return read(terms, { payload, nowMs }, (raw) => {
    Session.Precompile.Chain.validateTopUpCredentialTransaction({
      additionalDeposit: units,
      chainId: terms.chainId,
      descriptor,
      escrowContract: terms.escrow,
      expectedChannelId: payload.channelId,
      expectedCurrency: terms.token,
      serializedTransaction: raw,
    });
    return units;
  });
}

interface Given {
  readonly payload: Extract<SessionPayload, { readonly transaction: Hex }>;
  readonly nowMs: number;
}

/** `validate` says what the transaction puts in, and throws where it is not what it should be. */
function read(
  terms: SessionTerms,
  { payload, nowMs }: Given,
  validate: (raw: Hex) => bigint,
): ClientTransaction | BadPayment {
  const transaction = parseTransaction(payload.transaction);
  if ("wrong" in transaction) return bad("invalid-payload", transaction.wrong);
  const { chainId, payer, validBeforeS } = transaction;
  if (chainId !== terms.chainId)
    return bad(
      "verification-failed",
      `The transaction is for chain ${chainId}: sign one for chain ${terms.chainId}.`,
    );
  if (payer !== payload.descriptor.payer)
    return bad("verification-failed", "The transaction is not signed by the payer of the channel.");
  if (validBeforeS === null || validBeforeS * 1_000 > nowMs + MAX_VALID_MS)
    return bad(
      "verification-failed",
      "The transaction has no `validBefore` within the next 15 minutes: sign one with an " +
        "expiring nonce.",
    );
  const raw = parseHex(transaction.raw);
  try {
    return {
      kind: "client_transaction",
      hash: parseHex(transaction.hash),
      raw,
      units: validate(raw),
      validUntilMs: validBeforeS * 1_000,
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message.slice(0, MAX_REASON_CHARS) : "";
    return bad(
      "verification-failed",
      `The transaction does not do what the credential says: ${reason}`,
    );
  }
}

function bad(problem: string, reason: string): BadPayment {
  return { kind: "bad_payment", problem, reason };
}
