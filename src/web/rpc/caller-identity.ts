// Identifies a caller to the routing engine: by its account, or by its address if it has no key.
// Computed only on demand.

import { networkOf } from "../../core/billing/address-limit.ts";
import { PASSED_HEADER, passedServices } from "../../core/passed-services.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import { type Addressed, addressBehind, type TrustedProxies } from "../http/client-address.ts";

/** The identity of the caller of one request or socket. */
export class RequestCaller implements CallerIdentity {
  readonly #request: Addressed;
  readonly #keyContext: KeyContext | null;
  readonly #proxies: TrustedProxies;

  constructor(request: Addressed, keyContext: KeyContext | null, proxies: TrustedProxies) {
    this.#request = request;
    this.#keyContext = keyContext;
    this.#proxies = proxies;
  }

  get keyId(): string | null {
    return this.#keyContext?.keyId ?? null;
  }

  get passed(): readonly string[] | undefined {
    const passed = passedServices(this.#request.header(PASSED_HEADER));
    return passed.length === 0 ? undefined : passed;
  }

  get key(): string {
    if (this.#keyContext !== null) return `account ${this.#keyContext.account.id}`;
    const forwardedFor = this.#request.header("x-forwarded-for") ?? "";
    const address = addressBehind(this.#request.address, forwardedFor, this.#proxies);
    return `address ${networkOf(address)}`;
  }
}
