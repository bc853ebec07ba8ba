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

const { Voucher } = Session.Precompile;
const MAX_PENDING = 256;
const ANSWER_MS = 5_000;
const AGAIN_MS = 1_000;
const MAX_HEAP_MB = 128;

/** Verifies signatures in a thread, which it starts. */
export class VoucherChecker {
  readonly #runtime: Runtime;
  readonly #onError: (error: unknown) => void;
  readonly #pending = new Map<number, (signed: boolean | null) => void>();
  #last = 0;
  #isClosed = false;
  #cancelStart: () => void = () => undefined;
  /** Null = it has ended. */
  #worker: Worker | null;

  constructor(runtime: Runtime, onError: (error: unknown) => void) {
    this.#runtime = runtime;
    this.#onError = onError;
    this.#worker = this.#start();
  }

  /** Null = it could not be verified now. */
  isSigned(voucher: SignedVoucher): Promise<boolean | null> {
    const asked = this.#worker;
    if (asked === null || this.#pending.size >= MAX_PENDING) return Promise.resolve(null);
    const id = ++this.#last;
    return new Promise((resolve) => {
      // A thread that does not answer in time is ended.
      const cancel = this.#runtime.after(ANSWER_MS, () => void asked.terminate());
      this.#pending.set(id, (signed) => {
        cancel();
        this.#pending.delete(id);
        resolve(signed);
      });
      const domain = Voucher.getVoucherDomain(voucher.escrow, voucher.chainId);
      const typed = { domain, types: Voucher.voucherTypes };
      asked.postMessage({ id, voucher, typed } satisfies VoucherSignatureRequest);
    });
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelStart();
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const created = new Worker(new URL("./voucher-worker.ts", import.meta.url), {
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    created.unref();
    created.on("message", ({ id, signed }: VoucherSignatureAnswer) =>
      this.#pending.get(id)?.(signed),
    );
    created.on("error", this.#onError);
    created.once("exit", () => this.#ended(created));
    return created;
  }

  #ended(finished: Worker): void {
    if (this.#worker !== finished) return;
    this.#worker = null;
    for (const answer of [...this.#pending.values()]) answer(null);
    if (!this.#isClosed)
      this.#cancelStart = this.#runtime.after(AGAIN_MS, () => {
        this.#worker = this.#start();
      });
  }
}
