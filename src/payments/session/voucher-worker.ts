// The thread that verifies signatures of vouchers, one after the other. Holds no state and knows no
// secret.
import { parentPort } from "node:worker_threads";
import { isVoucherSigned, type SignedVoucher } from "./voucher-signature.ts";

/** A request to the thread. */
export interface VoucherSignatureRequest {
  readonly id: number;
  readonly voucher: SignedVoucher;
}

/** The thread's answer. */
export interface VoucherSignatureAnswer {
  readonly id: number;
  readonly signed: boolean;
}

parentPort?.on("message", ({ id, voucher }: VoucherSignatureRequest) => {
  isVoucherSigned(voucher).then(
    (signed) => parentPort?.postMessage({ id, signed } satisfies VoucherSignatureAnswer),
    () => parentPort?.postMessage({ id, signed: false } satisfies VoucherSignatureAnswer),
  );
});
