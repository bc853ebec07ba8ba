// Answers to calls that need no provider. Knows facts of the configuration only.
import { fault } from "../../core/faults/rpc-fault.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Outcome } from "../../upstream/engine/answer.ts";
import type { Target } from "./target.ts";

/**
 * What needs no provider: facts of the configuration, and methods that are served nowhere or only
 * on a socket.
 */
export function answerHere(method: Method, name: string, target: Target): Outcome | null {
  switch (method.handling) {
    case "route":
    case "filter":
      return null;
    case "local": {
      const body = localResult(name, target);
      return body === null
        ? null
        : { kind: "result", body, start: 0, end: body.length, idAt: null };
    }
    case "blocked":
      return {
        kind: "fault",
        fault: fault("method_blocked", `${name} would use keys held by a node and is not served`),
      };
    case "socket_only":
      return {
        kind: "fault",
        fault: fault("websocket_only", `${name} needs a WebSocket`, {
          details: { websocket_url: target.socketPath },
        }),
      };
  }
}

/** The result of a method that the configuration answers; null = a pinned provider is asked. */
function localResult(name: string, { chain, pin }: Target): Buffer | null {
  // The service holds no keys, and accounts of a node are not its callers': a pin changes nothing
  // about that.
  if (name === "eth_accounts") return NO_ACCOUNTS;
  if (pin !== null) return null;
  return Buffer.from(
    name === "net_version" ? `"${chain.chainId}"` : `"0x${chain.chainId.toString(16)}"`,
  );
}

const NO_ACCOUNTS = Buffer.from("[]");
