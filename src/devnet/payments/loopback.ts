// Whether an address is this machine only. Local payments are offered nowhere else: their money is
// worth nothing, and everybody knows their keys.
import { isLoopbackAddress } from "../../core/public-address.ts";

/** Whether only this machine reaches what listens there. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || isLoopbackAddress(host);
}
