// The thread that verifies signatures of vouchers, one after the other. Holds no state, knows no
// secret, and of a channel only its id.
import { parentPort } from "node:worker_threads";
import type { TypedDataDomain } from "viem";
import { hashTypedData, recoverAddress } from "viem/utils";
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

/** What of a voucher is signed, as EIP-712 names it. */
export interface VoucherTypes {
  readonly domain: TypedDataDomain;
  readonly types: Readonly<Record<"Voucher", readonly { name: string; type: string }[]>>;
}

/** A request to the thread. */
export interface VoucherSignatureRequest {
  readonly id: number;
  readonly voucher: SignedVoucher;
  readonly typed: VoucherTypes;
}

/** The thread's answer. */
export interface VoucherSignatureAnswer {
  readonly id: number;
  readonly signed: boolean;
}

parentPort?.on("message", ({ id, voucher, typed }: VoucherSignatureRequest) => {
  isVoucherSigned(voucher, typed).then(
    (signed) => parentPort?.postMessage({ id, signed } satisfies VoucherSignatureAnswer),
    () => parentPort?.postMessage({ id, signed: false } satisfies VoucherSignatureAnswer),
  );
});

/** r, s and v as 0x and hex digits. */
const ECDSA = /^0x[0-9a-f]{64}([0-9a-f]{64})(?:1b|1c)$/;
/** Of two equivalent signatures the chain accepts the one whose second half is lower. */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/** True = the chain would accept it. */
async function isVoucherSigned(voucher: SignedVoucher, typed: VoucherTypes): Promise<boolean> {
  const { channelId, units, signature, signer } = voucher;
  const s = ECDSA.exec(signature)?.[1];
  if (s === undefined) return isOtherwiseSigned(voucher);
  if (BigInt(`0x${s}`) > HALF_ORDER) return false;
  const message = { channelId, cumulativeAmount: units };
  const hash = hashTypedData({ ...typed, primaryType: "Voucher", message });
  return (await recoverAddress({ hash, signature })).toLowerCase() === signer;
}

/** Passkeys and P-256 keys: their library is large, and loaded by the first one. */
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
