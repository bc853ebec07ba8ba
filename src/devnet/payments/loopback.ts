// Whether an address is this machine only. Local payments are offered nowhere else: their money is worth nothing, and everybody knows their keys.
import { isIPv4 } from "node:net";

/** Whether only this machine reaches what listens there. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}
