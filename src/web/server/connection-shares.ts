// One address's share of the service's connections, so that idle sockets of one caller do not shut
// others out. Counts connections; knows nothing of what they carry.
import type { Socket } from "node:net";
import { networkOf } from "../../core/billing/address-limit.ts";
import { isLoopbackAddress } from "../../core/public-address.ts";
import { isTrusted, plainAddress, type TrustedProxies } from "../http/client-address.ts";

/** From this part of all connections on, an address has no more than that of them. */
const BUSY_SHARE = 0.75;
const SHARE_OF_ADDRESS = 0.25;

/** The open connections, by address (IPv6: by /64, all of which one host can use). */
export class ConnectionShares {
  readonly #most: number;
  /** Behind each of them are many callers. */
  readonly #proxies: TrustedProxies;
  readonly #open = new Map<string, number>();
  #total = 0;

  constructor(most: number, proxies: TrustedProxies) {
    this.#most = most;
    this.#proxies = proxies;
  }

  /** Counts a connection until it closes; false = its address has enough of them. */
  takes(socket: Socket): boolean {
    const address = plainAddress(socket.remoteAddress ?? "");
    const network = networkOf(address);
    const own = this.#open.get(network) ?? 0;
    const isBusy = this.#total >= BUSY_SHARE * this.#most;
    if (isBusy && own >= SHARE_OF_ADDRESS * this.#most && !this.#isExempt(address)) return false;
    this.#total++;
    this.#open.set(network, own + 1);
    // `on`, not `once`, which would keep three more objects of each connection.
    socket.on("close", () => this.#closed(network));
    return true;
  }

  #isExempt(address: string): boolean {
    return isLoopbackAddress(address) || isTrusted(address, this.#proxies);
  }

  #closed(network: string): void {
    this.#total--;
    const own = this.#open.get(network) ?? 0;
    if (own > 1) this.#open.set(network, own - 1);
    else this.#open.delete(network);
  }
}
