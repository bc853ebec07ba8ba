// Answers to calls that need no provider. Knows facts of the configuration only.
import { fault } from "../../core/fault.ts";
import type { Method } from "../../core/method.ts";
import type { Outcome } from "../../upstream/router.ts";
import type { Address } from "./address.ts";

/** What needs no provider: facts of the configuration, and methods that are served nowhere or only on a socket. */
export function answerHere(method: Method, name: string, address: Address): Outcome | null {
  switch (method.handling) {
    case "route":
      return null;
    case "local": {
      if (address.pin !== null) return null;
      const { chainId } = address.chain;
      const body = Buffer.from(name === "net_version" ? `"${chainId}"` : `"0x${chainId.toString(16)}"`);
      return { kind: "result", body, start: 0, end: body.length, wireId: null };
    }
    case "blocked":
      return { kind: "fault", fault: fault("method_blocked", `${name} would use keys held by a node and is not served`) };
    case "socket_only":
      return { kind: "fault", fault: fault("websocket_only", `${name} needs a WebSocket`, { details: { websocket_url: address.socketPath } }) };
  }
}
