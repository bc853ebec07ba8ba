// Decides whether an address can be reached from this machine only. Local payments require that,
// because their money is worthless and their keys are public.
import { isLoopbackAddress } from "../../core/public-address.ts";

/** Whether a listener on this host can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || isLoopbackAddress(host);
}
