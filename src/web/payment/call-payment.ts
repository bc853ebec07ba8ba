// How a call is paid for: the one port between the pipeline and those that pay, which are the
// credit of a key, a voucher for the request, and the operator for callers without a key.
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
  /** Asks for a grant for one call. `final` = it has waited already, and has to be answered now. */
  admit(call: AdmissionRequest, final: boolean): CallGrant | Refusal | Wait;
}

/**
 * Permission to serve one call. Ends once: `settle` charges it by the table in
 * `core/billing/charging.ts`, `release` charges nothing. Both return what the caller of a key is
 * told, null for everybody else.
 */
export type CallGrant = Grant | VoucherGrant | KeylessGrant;

/** The grant of a call whose request is paid for with a voucher. */
export interface VoucherGrant {
  readonly kind: "voucher";
  settle(source: SourceKind): null;
  release(): null;
}

/** The grant of a call that costs nothing. */
export interface KeylessGrant {
  readonly kind: "keyless";
  settle(source: SourceKind): null;
  release(): null;
}

/** What a caller is told of the price of one call. */
export type Billing = CallCharge | Refusal;

/** How the calls of a caller are paid for; null = one without a key, or a service without any. */
export function callPaymentOf(
  admission: Pick<Admission, "admit"> | null,
  keyContext: KeyContext | null,
): CallPayment {
  return admission === null || keyContext === null
    ? KEYLESS
    : new KeyPayment(admission, keyContext);
}

class KeyPayment implements CallPayment {
  readonly #admission: Pick<Admission, "admit">;
  readonly #keyContext: KeyContext;

  constructor(admission: Pick<Admission, "admit">, keyContext: KeyContext) {
    this.#admission = admission;
    this.#keyContext = keyContext;
  }

  admit(call: AdmissionRequest, final: boolean): Grant | Refusal | Wait {
    return this.#admission.admit(this.#keyContext, call, final);
  }
}

const KEYLESS_GRANT: KeylessGrant = { kind: "keyless", settle: () => null, release: () => null };

/** Callers without a key: every call is granted, and nothing is charged. */
export const KEYLESS: CallPayment = { admit: () => KEYLESS_GRANT };
