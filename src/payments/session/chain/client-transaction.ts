// Transactions that a payer signs and the service sends: they open a channel, or add to its
// deposit. Parsed and checked here without the chain.
import { Session } from "mppx/tempo";
import { errorText } from "../../../core/fields.ts";
import type { EvmNode } from "../../rails/evm/node.ts";
import { type BadPayment, bad } from "../../rails/rail.ts";
import { checkRaw } from "../../rails/tempo/preflight.ts";
import { parseTransaction } from "../../rails/tempo/transaction.ts";
import { type Hex, type OpenPayload, parseHex, type TopUpPayload } from "../descriptor.ts";
import type { SessionTerms } from "../terms.ts";
import type { SignedBytes } from "./transaction-record.ts";

/** A transaction that could stay pending for longer is not sent. */
const MAX_VALID_MS = 900_000;
const MAX_REASON_CHARS = 200;

/** Parses transactions of payers, and simulates them. */
export class ClientReader {
  readonly #terms: SessionTerms;
  readonly #node: EvmNode;

  constructor(terms: SessionTerms, node: EvmNode) {
    this.#terms = terms;
    this.#node = node;
  }

  /** Parses the transaction of an `open`: it opens exactly this channel, and does nothing else. */
  opening(payload: OpenPayload, nowMs: number): SignedBytes | BadPayment {
    const { chainId, escrow, token, operator, recipient } = this.#terms;
    const { descriptor, channelId } = payload;
    return this.#read(payload, nowMs, (raw) => {
      const opening = Session.Precompile.Chain.validateOpenCredentialTransaction({
        chainId,
        escrowContract: escrow,
        expectedAuthorizedSigner: descriptor.authorizedSigner,
        expectedChannelId: channelId,
        expectedCurrency: token,
        expectedOperator: operator,
        expectedPayee: recipient,
        expectedExpiringNonceHash: descriptor.expiringNonceHash,
        expectedPayer: descriptor.payer,
        serializedTransaction: raw,
      });
      return opening.openDeposit;
    });
  }

  /** Parses the transaction of a `topUp`: it adds the stated amount to exactly this channel. */
  topUp(payload: TopUpPayload, nowMs: number): SignedBytes | BadPayment {
    const { chainId, escrow, token } = this.#terms;
    const { descriptor, units, channelId } = payload;
    return this.#read(payload, nowMs, (raw) => {
      Session.Precompile.Chain.validateTopUpCredentialTransaction({
        additionalDeposit: units,
        chainId,
        descriptor,
        escrowContract: escrow,
        expectedChannelId: channelId,
        expectedCurrency: token,
        serializedTransaction: raw,
      });
      return units;
    });
  }

  /**
   * Simulates a transaction: null = the chain would carry it out now. Throws `ChainFailure` while
   * the chain is not reached.
   */
  trial({ raw }: Pick<SignedBytes, "raw">): Promise<BadPayment | null> {
    return checkRaw(this.#node, raw);
  }

  /**
   * `validate` returns what the transaction adds to the deposit, and throws if it is not the
   * expected one.
   */
  #read(
    { transaction: given, descriptor }: OpenPayload | TopUpPayload,
    nowMs: number,
    validate: (raw: Hex) => bigint,
  ): SignedBytes | BadPayment {
    const { chainId } = this.#terms;
    const transaction = parseTransaction(given);
    if ("wrong" in transaction) return bad("invalid-payload", transaction.wrong);
    const { payer, validBeforeS } = transaction;
    if (transaction.chainId !== chainId)
      return bad(
        "verification-failed",
        `The transaction is for chain ${transaction.chainId}: sign one for chain ${chainId}.`,
      );
    if (payer !== descriptor.payer)
      return bad(
        "verification-failed",
        "The transaction is not signed by the payer of the channel.",
      );
    if (validBeforeS === null || validBeforeS * 1_000 > nowMs + MAX_VALID_MS)
      return bad(
        "verification-failed",
        "The transaction has no `validBefore` within the next 15 minutes: sign one with an " +
          "expiring nonce.",
      );
    const raw = parseHex(transaction.raw);
    const hash = parseHex(transaction.hash);
    const validUntilMs = validBeforeS * 1_000;
    try {
      return { hash, raw, units: validate(raw), validUntilMs };
    } catch (error) {
      const reason = errorText(error).slice(0, MAX_REASON_CHARS);
      return bad(
        "verification-failed",
        `The transaction does not do what the credential says: ${reason}`,
      );
    }
  }
}
