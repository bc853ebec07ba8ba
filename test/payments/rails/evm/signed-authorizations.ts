// What payers and strangers can do with an authorization on its chain, as call data: cancel it,
// carry it out, move the money away.
import { Credential } from "mppx";
import { encodeFunctionData, type Hex, parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { LocalWallet } from "../../../../src/devnet/payments/wallets.ts";
import type { PaymentHeaders } from "../../../../src/payments/payments.ts";
import type { PaymentChain } from "../../../fakes/payment-chains.ts";
import { parseHex } from "./evm-fixture.ts";

const TOKEN = parseAbi([
  "function transfer(address to, uint256 value) returns (bool)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
]);

const CANCEL_TYPES = {
  CancelAuthorization: [
    { name: "authorizer", type: "address" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

interface Signed {
  readonly from: Hex;
  readonly to: Hex;
  readonly value: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: Hex;
  readonly signature: Hex;
}

/** Moves tokens. */
export function moving(to: string, units: bigint): Hex {
  return encodeFunctionData({ abi: TOKEN, functionName: "transfer", args: [parseHex(to), units] });
}

/** What names the authorization of a payment, in lower case. */
export function nonceIn(given: PaymentHeaders): string {
  return parseSigned(given).nonce.toLowerCase();
}

/** Does what a payment asks for; anybody may. */
export function carryingOut(given: PaymentHeaders): Hex {
  const { from, to, value, validAfter, validBefore, nonce, signature } = parseSigned(given);
  const args = [
    from,
    to,
    BigInt(value),
    BigInt(validAfter),
    BigInt(validBefore),
    nonce,
    signature,
  ] as const;
  return encodeFunctionData({ abi: TOKEN, functionName: "transferWithAuthorization", args });
}

/** Takes a payment back. */
export async function cancelling(
  { token, chainId }: PaymentChain,
  payer: LocalWallet,
  given: PaymentHeaders,
): Promise<Hex> {
  const { from, nonce } = parseSigned(given);
  const domain = {
    name: token.name,
    version: token.version,
    chainId,
    verifyingContract: parseHex(token.address),
  };
  const message = { authorizer: from, nonce };
  const signature = await privateKeyToAccount(payer.key).signTypedData({
    domain,
    types: CANCEL_TYPES,
    primaryType: "CancelAuthorization",
    message,
  });
  const [r, s, v] = [
    signature.slice(2, 66),
    signature.slice(66, 130),
    Number.parseInt(signature.slice(130), 16),
  ];
  return encodeFunctionData({
    abi: TOKEN,
    functionName: "cancelAuthorization",
    args: [from, nonce, v, `0x${r}`, `0x${s}`],
  });
}

function parseSigned({ protocol, text }: PaymentHeaders): Signed {
  if (protocol === "mpp") return Credential.deserialize<Signed>(text).payload;
  const { payload } = JSON.parse(Buffer.from(text, "base64").toString());
  return { ...payload.authorization, signature: payload.signature };
}
