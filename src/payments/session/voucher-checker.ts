// Has the signatures of vouchers checked by a thread of its own, so that no other caller waits for
// the arithmetic. Bounded: where too many wait, or the thread does not answer, nobody is told that
// a signature is wrong.
import { Worker } from "node:worker_threads";
import type { Runtime } from "../../runtime.ts";
import type { SignedVoucher } from "./voucher-signature.ts";
import type { VoucherSignatureAnswer, VoucherSignatureRequest } from "./voucher-worker.ts";

/** Checks signatures. */
export interface VoucherChecker {
  /** Null = it cannot be said now. */
  isSigned(voucher: SignedVoucher): Promise<boolean | null>;
  /** Ends the thread. */
  close(): Promise<void>;
}

/** What it works with. */
export interface VoucherCheckerParts {
  readonly runtime: Runtime;
  readonly onError: (error: unknown) => void;
}

const MAX_WAITING = 256;
const ANSWER_MS = 5_000;
const AGAIN_MS = 1_000;
const MAX_HEAP_MB = 128;

/** Starts the thread. */
export function createVoucherChecker({ runtime, onError }: VoucherCheckerParts): VoucherChecker {
  const waiting = new Map<number, (signed: boolean | null) => void>();
  let last = 0;
  let closed = false;
  let worker: Worker | null = start();
  let cancelStart: (() => void) | null = null;

  function start(): Worker {
    const it = new Worker(new URL("./voucher-worker.ts", import.meta.url), {
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    it.unref();
    it.on("message", ({ id, signed }: VoucherSignatureAnswer) => waiting.get(id)?.(signed));
    it.on("error", onError);
    it.once("exit", () => ended(it));
    return it;
  }

  function ended(it: Worker): void {
    if (worker !== it) return;
    worker = null;
    for (const answer of [...waiting.values()]) answer(null);
    if (!closed) cancelStart = runtime.after(AGAIN_MS, () => (worker = start()));
  }

  return {
    isSigned(voucher) {
      const asked = worker;
      if (asked === null || waiting.size >= MAX_WAITING) return Promise.resolve(null);
      const id = ++last;
      return new Promise((resolve) => {
        const answer = (signed: boolean | null): void => {
          cancel();
          waiting.delete(id);
          resolve(signed);
        };
        // One that does not answer in time is not asked any further.
        const cancel = runtime.after(ANSWER_MS, () => void asked.terminate());
        waiting.set(id, answer);
        asked.postMessage({ id, voucher } satisfies VoucherSignatureRequest);
      });
    },
    async close() {
      closed = true;
      cancelStart?.();
      await worker?.terminate();
    },
  };
}
