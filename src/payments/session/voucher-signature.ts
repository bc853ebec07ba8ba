// Verifies the signature of a voucher. Takes milliseconds of arithmetic, and therefore runs beside
// the event loop. Knows of a channel only its id. Source of the signed text: TIP-1034,
// `getVoucherDigest`.
import {
  concatHex,
  encodeAbiParameters,
  keccak256,
  numberToHex,
  recoverAddress,
  stringToHex,
} from "viem/utils";
import type { Hex } from "./descriptor.ts";

/** A voucher and its expected signer. Hex in lower case. */
export interface SignedVoucher {
  readonly chainId: number;
  readonly escrow: Hex;
  readonly channelId: Hex;
  readonly units: bigint;
  readonly signature: Hex;
  readonly signer: Hex;
}

const DOMAIN_TYPE =
  "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";
const VOUCHER_TYPE = "Voucher(bytes32 channelId,uint96 cumulativeAmount)";
const NAME = "TIP20 Channel Reserve";
const VERSION = "1";
const WORD_BYTES = 32;
const DOMAIN_PARTS = [
  { type: "bytes32" },
  { type: "bytes32" },
  { type: "bytes32" },
  { type: "uint256" },
  { type: "address" },
] as const;

/** r, s and v as 0x and hex digits. */
const ECDSA = /^0x[0-9a-f]{64}([0-9a-f]{64})(?:1b|1c)$/;
/** Of two equivalent signatures the chain accepts the one whose second half is lower. */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/** True = the chain would accept it. */
export async function isVoucherSigned(voucher: SignedVoucher): Promise<boolean> {
  const { signature, signer } = voucher;
  const s = ECDSA.exec(signature)?.[1];
  if (s === undefined) return isOtherwiseSigned(voucher);
  if (BigInt(`0x${s}`) > HALF_ORDER) return false;
  try {
    const hash = voucherDigest(voucher);
    return (await recoverAddress({ hash, signature })).toLowerCase() === signer;
  } catch {
    return false;
  }
}

/** The digest that is signed. */
function voucherDigest({
  chainId,
  escrow,
  channelId,
  units,
}: Pick<SignedVoucher, "chainId" | "escrow" | "channelId" | "units">): Hex {
  const type = (text: string): Hex => keccak256(stringToHex(text));
  const domain = encodeAbiParameters(DOMAIN_PARTS, [
    type(DOMAIN_TYPE),
    type(NAME),
    type(VERSION),
    BigInt(chainId),
    escrow,
  ]);
  const voucher = concatHex([
    type(VOUCHER_TYPE),
    channelId,
    numberToHex(units, { size: WORD_BYTES }),
  ]);
  return keccak256(concatHex(["0x1901", keccak256(domain), keccak256(voucher)]));
}

/** Passkeys and P-256 keys: their library is loaded by the first one. */
async function isOtherwiseSigned({
  escrow,
  chainId,
  channelId,
  units,
  signature,
  signer,
}: SignedVoucher): Promise<boolean> {
  const { Session } = await import("mppx/tempo");
  return Session.Precompile.Voucher.verifyVoucher(
    escrow,
    chainId,
    { channelId, cumulativeAmount: units, signature },
    signer,
  );
}
