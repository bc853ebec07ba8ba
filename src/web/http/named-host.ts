// The host that a request names: one, unless it is of HTTP/1.0.
import type { IncomingMessage } from "node:http";
import { fault } from "../../core/faults/rpc-fault.ts";

/** The refusal of any other request. */
export const NO_HOST = fault("invalid_request", "the request names no host, or more than one", {
  nextAction: "send one Host header",
});

const HOST = "host";

/**
 * Whether a request has one `Host`: with two, a proxy in front may have gone by the one, and we
 * would go by the other.
 */
export function namesOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts++;
  }
  return hosts === 1 || (hosts === 0 && httpVersion === "1.0");
}
