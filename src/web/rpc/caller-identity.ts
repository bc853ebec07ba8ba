// Who a caller is toward the providers: its account, or its address where it has none. Worked out only when it is asked for.

import { networkOf } from "../../core/address-limit.ts";
import type { CallerIdentity } from "../../core/silence.ts";
import type { Holder } from "../../hosted/holder.ts";
import { type Addressed, addressBehind, type TrustedProxies } from "../client-address.ts";

/** The caller of one request or one socket. */
export class RequestCaller implements CallerIdentity {
  readonly #letter: Addressed;
  readonly #holder: Holder | null;
  readonly #proxies: TrustedProxies;

  constructor(letter: Addressed, holder: Holder | null, proxies: TrustedProxies) {
    this.#letter = letter;
    this.#holder = holder;
    this.#proxies = proxies;
  }

  get key(): string {
    if (this.#holder !== null) return `account ${this.#holder.payer.id}`;
    const { address } = this.#letter;
    return `address ${networkOf(addressBehind(address, this.#letter.header("x-forwarded-for") ?? "", this.#proxies))}`;
  }
}
