// Who a caller is toward the providers: its account, or its address where it has none. Worked out
// only when it is asked for.

import { networkOf } from "../../core/billing/address-limit.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import { type Addressed, addressBehind, type TrustedProxies } from "../http/client-address.ts";

/** The caller of one request or one socket. */
export class RequestCaller implements CallerIdentity {
  readonly #letter: Addressed;
  readonly #keyContext: KeyContext | null;
  readonly #proxies: TrustedProxies;

  constructor(letter: Addressed, keyContext: KeyContext | null, proxies: TrustedProxies) {
    this.#letter = letter;
    this.#keyContext = keyContext;
    this.#proxies = proxies;
  }

  get key(): string {
    if (this.#keyContext !== null) return `account ${this.#keyContext.payer.id}`;
    const { address } = this.#letter;
    return (
      "address " +
      `${networkOf(addressBehind(address, this.#letter.header("x-forwarded-for") ?? "", this.#proxies))}`
    );
  }
}
