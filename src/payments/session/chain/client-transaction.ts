// Transactions that a payer signs and the service sends: they open a channel, or add to its
// deposit. Parsed and checked here without the chain.
import { Session } from "mppx/tempo";
import type { PaymentChain } from "../../rails/chain.ts";
import { createEvmNode } from "../../rails/evm/node.ts";
import { type BadPayment, bad } from "../../rails/rail.ts";
import { checkTransaction } from "../../rails/tempo/preflight.ts";
import { parseTransaction } from "../../rails/tempo/transaction.ts";
import {
  type Hex,
  type OpenPayload,
  parseHex,
  type SessionPayload,
  type TopUpPayload,
} from "../descriptor.ts";
import type { SessionTerms } from "../terms.ts";

/** A transaction that may be recorded and sent. */
export interface ClientTransaction {
  readonly kind: "client_transaction";
  readonly hash: Hex;
  /** Signed bytes. */
  readonly raw: Hex;
  /** What it adds to the deposit, in base units. */
  readonly units: bigint;
  /** When the chain can no longer include it, on the chain's clock. */
  readonly validUntilMs: number;
}

/** Parses transactions of payers, and simulates them. */
export interface ClientReader {
  /** Parses the transaction of an `open`: it opens exactly this channel, and does nothing else. */
  opening(payload: OpenPayload, nowMs: number): ClientTransaction | BadPayment;
  /** Parses the transaction of a `topUp`: it adds the stated amount to exactly this channel. */
  topUp(payload: TopUpPayload, nowMs: number): ClientTransaction | BadPayment;
  /**
   * Simulates a transaction: null = the chain would carry it out now. Throws `ChainFailure` while
   * the chain is not reached.
   */
  trial(transaction: ClientTransaction): Promise<BadPayment | null>;
}

/** A reader for `terms` that simulates on `chain`. */
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

/** A transaction that could stay pending for longer is not sent. */
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

/**
 * `validate` returns what the transaction adds to the deposit, and throws if it is not the expected
 * one.
 */
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
