// A thread of its own for the signatures of vouchers: reads one after the other and says of each whether it is right. Holds nothing and knows no secret.
import { parentPort } from "node:worker_threads";
import { isVoucherSigned, type SignedVoucher } from "./voucher-signature.ts";

/** What the thread is asked. */
export interface VoucherQuestion {
  readonly id: number;
  readonly voucher: SignedVoucher;
}

/** What it answers. */
export interface VoucherAnswer {
  readonly id: number;
  readonly signed: boolean;
}

parentPort?.on("message", ({ id, voucher }: VoucherQuestion) => {
  isVoucherSigned(voucher).then(
    (signed) => parentPort?.postMessage({ id, signed } satisfies VoucherAnswer),
    () => parentPort?.postMessage({ id, signed: false } satisfies VoucherAnswer),
  );
});
