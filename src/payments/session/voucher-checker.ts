// Verifies signatures of vouchers in a thread of its own, so that the arithmetic delays no other
// caller. Bounded: if too many are queued, or the thread does not answer, no signature is called
// invalid.
import { Worker } from "node:worker_threads";
import { Session } from "mppx/tempo";
import type { Runtime } from "../../runtime.ts";
import type {
  SignedVoucher,
  VoucherSignatureAnswer,
  VoucherSignatureRequest,
} from "./voucher-worker.ts";

/** Verifies signatures. */
export interface VoucherChecker {
  /** Null = it could not be verified now. */
  isSigned(voucher: SignedVoucher): Promise<boolean | null>;
  /** Ends the thread. */
  close(): Promise<void>;
}

export interface VoucherCheckerParts {
  readonly runtime: Runtime;
  readonly onError: (error: unknown) => void;
}

const { Voucher } = Session.Precompile;
const MAX_PENDING = 256;
const ANSWER_MS = 5_000;
const AGAIN_MS = 1_000;
const MAX_HEAP_MB = 128;

/** Starts the thread. */
export function createVoucherChecker({ runtime, onError }: VoucherCheckerParts): VoucherChecker {
  const pending = new Map<number, (signed: boolean | null) => void>();
  let last = 0;
  let closed = false;
  let worker: Worker | null = start();
  let cancelStart: (() => void) | null = null;

  function start(): Worker {
    const created = new Worker(new URL("./voucher-worker.ts", import.meta.url), {
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    created.unref();
    created.on("message", ({ id, signed }: VoucherSignatureAnswer) => pending.get(id)?.(signed));
    created.on("error", onError);
    created.once("exit", () => ended(created));
    return created;
  }

  function ended(finished: Worker): void {
    if (worker !== finished) return;
    worker = null;
    for (const answer of [...pending.values()]) answer(null);
    if (!closed) cancelStart = runtime.after(AGAIN_MS, () => (worker = start()));
  }

  return {
    isSigned(voucher) {
      const asked = worker;
      if (asked === null || pending.size >= MAX_PENDING) return Promise.resolve(null);
      const id = ++last;
      return new Promise((resolve) => {
        const answer = (signed: boolean | null): void => {
          cancel();
          pending.delete(id);
          resolve(signed);
        };
        // A thread that does not answer in time is ended.
        const cancel = runtime.after(ANSWER_MS, () => void asked.terminate());
        pending.set(id, answer);
        const domain = Voucher.getVoucherDomain(voucher.escrow, voucher.chainId);
        const typed = { domain, types: Voucher.voucherTypes };
        asked.postMessage({ id, voucher, typed } satisfies VoucherSignatureRequest);
      });
    },
    async close() {
      closed = true;
      cancelStart?.();
      await worker?.terminate();
    },
  };
}
