// The wallet that settles channels: drafts and signs its transactions. They are valid for some
// seconds only and need no nonce of their own, so that each is in a block soon or never. Sends
// nothing.

import { Session } from "mppx/tempo";
import { TransactionRequest } from "ox/tempo";
import { encodeFunctionData, keccak256, maxUint256 } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { Transaction } from "viem/tempo";
import { ChainFailure, parseQuantity, resultOf } from "../../rails/chain.ts";
import type { EvmNode } from "../../rails/evm/node.ts";
import type { Voucher } from "../channel.ts";
import { type Descriptor, type Hex, parseHex } from "../descriptor.ts";
import type { SessionTerms } from "../terms.ts";
import type { SignedBytes } from "./transaction-record.ts";

/** What is to be settled of a channel. */
export interface Settlement {
  /** `settle` = the channel goes on; `close` = the rest of the deposit returns to its payer. */
  readonly kind: "settle" | "close";
  readonly descriptor: Descriptor;
  /** In total: what the voucher promises, or for a close at most that. */
  readonly units: bigint;
  /** Null = a close at nothing beyond what was settled before. */
  readonly voucher: Voucher | null;
}

/** What signing needs. */
export interface SettlerParts {
  readonly node: EvmNode;
  readonly terms: SessionTerms;
  /** Secret. */
  readonly walletKey: string;
}

/** The chain accepts such transactions up to half a minute ahead. */
const VALID_S = 25;
/**
 * The highest cost of one transaction, in the chain's unit of fees: 10^18 of them are a dollar. A
 * node that asks for more is not believed.
 */
const MAX_FEE = 10n ** 18n;
const TIP = 1_000_000_000n;
const NO_SIGNATURE: Hex = "0x";

/** The address of a wallet's key, in lower case. */
export function addressOf(walletKey: string): Hex {
  return parseHex(privateKeyToAccount(parseHex(walletKey)).address);
}

/** Signs with the wallet of `walletKey`. */
export class Settler {
  readonly #parts: SettlerParts;
  readonly #account: PrivateKeyAccount;
  /** In lower case. */
  readonly address: Hex;

  constructor(parts: SettlerParts) {
    this.#parts = parts;
    this.#account = privateKeyToAccount(parseHex(parts.walletKey));
    this.address = parseHex(this.#account.address);
  }

  /**
   * Null = the chain would not carry it out. Throws `ChainFailure` while the chain is not reached.
   */
  async sign(settlement: Settlement): Promise<SignedBytes | null> {
    const { node, terms } = this.#parts;
    const { timeS, baseFeeWei } = await node.head();
    const validBefore = Number(timeS) + VALID_S;
    const unsigned = {
      type: "tempo",
      chainId: terms.chainId,
      calls: [{ to: terms.escrow, data: dataOf(settlement) }],
      nonceKey: maxUint256,
      validBefore,
      feeToken: terms.token,
    } as const;
    const asked = TransactionRequest.toRpc({ ...unsigned, from: this.address, nonce: 0n });
    const sized = await node.call("eth_estimateGas", [asked, "latest"], parseQuantity);
    if (sized.kind === "node_error" && sized.reverted) return null;
    const fees = {
      gas: (resultOf(sized, "eth_estimateGas") * 5n) / 4n,
      maxFeePerGas: 2n * (baseFeeWei ?? 0n) + TIP,
      maxPriorityFeePerGas: TIP,
    };
    if (fees.gas * fees.maxFeePerGas > MAX_FEE)
      throw new ChainFailure("The payment chain's node asks for a fee that is too high to be true");
    const transaction = { ...unsigned, ...fees, nonce: 0 };
    const raw = parseHex(
      await this.#account.signTransaction(transaction, { serializer: Transaction.serialize }),
    );
    const { units } = settlement;
    return { hash: keccak256(raw), raw, units, validUntilMs: validBefore * 1_000 };
  }
}

function dataOf({ kind, descriptor, units, voucher }: Settlement): Hex {
  const abi = Session.Precompile.escrowAbi;
  const signature = voucher === null ? NO_SIGNATURE : parseHex(voucher.signature);
  if (kind === "settle")
    return encodeFunctionData({ abi, functionName: kind, args: [descriptor, units, signature] });
  const args = [descriptor, voucher?.units ?? units, units, signature] as const;
  return encodeFunctionData({ abi, functionName: kind, args });
}
