// The wallet that settles channels: drafts and signs its transactions. They are valid for some
// seconds only and need no nonce of their own, so that each is in a block soon or never. Sends
// nothing.

import { Session } from "mppx/tempo";
import { encodeFunctionData, keccak256, maxUint256, numberToHex } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { Transaction } from "viem/tempo";
import { ChainFailure, type NodeError, parseQuantity, resultOf } from "../../rails/chain.ts";
import type { EvmNode } from "../../rails/evm/node.ts";
import type { Voucher } from "../channel.ts";
import { type Descriptor, type Hex, parseHex } from "../descriptor.ts";
import type { SessionTerms } from "../terms.ts";

/** What is to be settled of a channel. */
export type Settlement =
  /** Settles what the voucher promises; the channel goes on. */
  | { readonly kind: "settle"; readonly descriptor: Descriptor; readonly voucher: Voucher }
  /**
   * Closes the channel at `units` in total, at most what the voucher promises; the rest returns to
   * the payer. `voucher` null = nothing beyond what was settled before.
   */
  | {
      readonly kind: "close";
      readonly descriptor: Descriptor;
      readonly voucher: Voucher | null;
      readonly units: bigint;
    };

/** A signed transaction, to be recorded and sent. */
export interface SignedSettlement {
  readonly kind: "signed";
  readonly hash: Hex;
  /** Signed bytes. */
  readonly raw: Hex;
  /** When the chain can no longer include it, on the chain's clock. */
  readonly validUntilMs: number;
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
   * A node error = the chain would not carry it out. Throws `ChainFailure` while the chain is not
   * reached.
   */
  async sign(settlement: Settlement): Promise<SignedSettlement | NodeError> {
    const { node, terms } = this.#parts;
    const call = { to: terms.escrow, data: dataOf(settlement) };
    const { timeS, baseFeeWei } = await node.head();
    const validBefore = Number(timeS) + VALID_S;
    const asked = requestOf(call, { address: this.address, terms, validBefore });
    const sized = await node.call("eth_estimateGas", [asked, "latest"], parseQuantity);
    if (sized.kind === "node_error" && sized.reverted) return sized;
    const fees = {
      gas: (resultOf(sized, "eth_estimateGas") * 5n) / 4n,
      maxFeePerGas: 2n * (baseFeeWei ?? 0n) + TIP,
      maxPriorityFeePerGas: TIP,
    };
    if (fees.gas * fees.maxFeePerGas > MAX_FEE)
      throw new ChainFailure("The payment chain's node asks for a fee that is too high to be true");
    const transaction = {
      type: "tempo" as const,
      chainId: terms.chainId,
      calls: [call],
      nonceKey: maxUint256,
      nonce: 0,
      validBefore,
      feeToken: terms.token,
      ...fees,
    };
    const raw = parseHex(
      await this.#account.signTransaction(transaction, { serializer: Transaction.serialize }),
    );
    return { kind: "signed", hash: keccak256(raw), raw, validUntilMs: validBefore * 1_000 };
  }
}

function dataOf(settlement: Settlement): Hex {
  const { descriptor, voucher } = settlement;
  const signature = voucher === null ? NO_SIGNATURE : parseHex(voucher.signature);
  switch (settlement.kind) {
    case "settle":
      return encodeFunctionData({
        abi: Session.Precompile.escrowAbi,
        functionName: "settle",
        args: [descriptor, settlement.voucher.units, signature],
      });
    case "close":
      return encodeFunctionData({
        abi: Session.Precompile.escrowAbi,
        functionName: "close",
        args: [descriptor, voucher?.units ?? settlement.units, settlement.units, signature],
      });
  }
}

interface Envelope {
  readonly address: Hex;
  readonly terms: SessionTerms;
  readonly validBefore: number;
}

/** The transaction as a request for the node's estimate. */
function requestOf(
  { to, data }: { readonly to: Hex; readonly data: Hex },
  { address, terms, validBefore }: Envelope,
): Readonly<Record<string, unknown>> {
  return {
    type: "0x76",
    from: address,
    chainId: numberToHex(terms.chainId),
    calls: [{ to, data, value: "0x0" }],
    nonceKey: numberToHex(maxUint256),
    nonce: "0x0",
    validBefore: numberToHex(validBefore),
    feeToken: terms.token,
  };
}
