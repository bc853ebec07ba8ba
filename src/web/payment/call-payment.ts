// The only port by which calls are paid: by the credit of a key, by the voucher of a request, or by
// the operator for callers without a key. The pipeline knows nothing else about payment.
import type { SourceKind } from "../../core/routing/answer-source.ts";
import type {
  Admission,
  AdmissionRequest,
  Refusal,
  Wait,
} from "../../hosted/admission/admission.ts";
import type { CallCharge, Grant } from "../../hosted/admission/grant.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";

/** Pays for the calls of one request or one socket. */
export interface CallPayment {
  /** Whether a call that tells its range only after it was admitted is admitted anew for it. */
  readonly countsParts: boolean;
  /**
   * The parts that a call over a range of blocks pays for. `start`: the position of the call in its
   * request. `plan` counts the parts in which it would be asked for now.
   */
  partsOf(start: number, plan: () => number): number;
  /**
   * Requests a grant for one call. `waits`: how often the call has waited for credit, or for a
   * token of its rate limit.
   */
  admit(call: AdmissionRequest, waits: number): CallGrant | Refusal | Wait;
}

/**
 * Permission to serve one call. Ends exactly once: `settle` charges by the table in
 * `core/billing/charging.ts`, of a range at most the parts that were sent (null = it was not cut),
 * `release` charges nothing. Both return the charge for the headers of the answer, null without a
 * key.
 */
export type CallGrant = Grant | VoucherGrant | KeylessGrant;

/** The grant of a call that a voucher pays for. */
export interface VoucherGrant {
  readonly kind: "voucher";
  /** Most parts that it may be asked for in; undefined = as the router allows. */
  readonly maxParts: number | undefined;
  settle(source: SourceKind, partsSent?: number | null): null;
  release(): null;
}

/** The grant of a call that costs nothing. */
export interface KeylessGrant {
  readonly kind: "keyless";
  settle(source: SourceKind, partsSent?: number | null): null;
  release(): null;
}

/** The charge of one call, for the headers of its answer, or the refusal of the call. */
export type Billing = CallCharge | Refusal;

/**
 * The payment for a caller's calls. `keyContext` null = a caller without a key; `admission` null =
 * a service without keys.
 */
export function callPaymentOf(
  admission: Pick<Admission, "admit"> | null,
  keyContext: KeyContext | null,
): CallPayment {
  return admission === null || keyContext === null
    ? KEYLESS
    : new KeyPayment(admission, keyContext);
}

class KeyPayment implements CallPayment {
  readonly countsParts = true;
  readonly #admission: Pick<Admission, "admit">;
  readonly #keyContext: KeyContext;

  constructor(admission: Pick<Admission, "admit">, keyContext: KeyContext) {
    this.#admission = admission;
    this.#keyContext = keyContext;
  }

  partsOf(_start: number, plan: () => number): number {
    return plan();
  }

  admit(call: AdmissionRequest, waits: number): Grant | Refusal | Wait {
    return this.#admission.admit(this.#keyContext, call, waits);
  }
}

/** The grant of a call that nothing is held for. */
export const KEYLESS_GRANT: KeylessGrant = {
  kind: "keyless",
  settle: () => null,
  release: () => null,
};

/** Payment for callers without a key: every call is granted free of charge. */
export const KEYLESS: CallPayment = {
  countsParts: false,
  partsOf: () => 1,
  admit: () => KEYLESS_GRANT,
};
