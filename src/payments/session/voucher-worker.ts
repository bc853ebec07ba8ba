// A thread of its own for the signatures of vouchers: reads one after the other and says of each
// whether it is right. Holds nothing and knows no secret.
import { parentPort } from "node:worker_threads";
import { isVoucherSigned, type SignedVoucher } from "./voucher-signature.ts";

/** What the thread is asked. */
export interface VoucherSignatureRequest {
  readonly id: number;
  readonly voucher: SignedVoucher;
}

/** What it answers. */
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
