// Answers calls that need no provider: from the configuration, and what is known of providers.
import { type Fault, fault } from "../../../core/faults/rpc-fault.ts";
import { unionOf, writtenReport } from "../../../core/provider/history.ts";
import { changesOneNode, type Method, reasonForBlocking } from "../../../core/rpc/method.ts";
import { type Outcome, wholeResult } from "../../../upstream/engine/answer.ts";
import type { Target } from "../target.ts";

/**
 * The answer to a method that needs no provider: facts of the configuration, unsupported methods,
 * and methods that work over a WebSocket only. Null = a provider is needed.
 */
export function answerHere(method: Method, name: string, target: Target): Outcome | null {
  switch (method.handling) {
    case "route":
      return method.origin === "unlisted" ? oneNodeOnly(name, target) : null;
    case "filter":
      return null;
    case "local": {
      if (name === "eth_capabilities") return capabilities(target);
      const body = localResult(name, target);
      return body === null ? null : wholeResult(body);
    }
    case "blocked":
      return { kind: "fault", fault: blockedFault(name) };
    case "socket_only":
      return {
        kind: "fault",
        fault: fault("websocket_only", `${name} needs a WebSocket`, {
          details: { websocket_url: target.socketPath },
        }),
      };
  }
}

/** What the living providers, or the pinned one, have together, as a node would report it. */
function capabilities({ tracker, pin }: Target): Outcome {
  const { providers } = pin === null ? tracker.set : { providers: [pin] };
  const living = providers.filter((provider) => tracker.isLiving(provider));
  const head = tracker.head();
  if (head === null || living.length === 0) return { kind: "fault", fault: HEADLESS };
  const view = tracker.blocks.view.current();
  const hash = view?.number === head ? view.hash : tracker.blocks.agreedHash(head);
  const union = unionOf(
    living.map((provider) => tracker.history(provider)),
    head,
  );
  return wholeResult(writtenReport(union, head, hash));
}

const HEADLESS = fault("unavailable", "the head of this chain is not known now", {
  status: 200,
  details: { reason: "no_head", upstream_attempts: 0 },
});

/** Refuses calls that would change only one of several development nodes of the same chain. */
function oneNodeOnly(name: string, { tracker }: Target): Outcome | null {
  const { length } = tracker.set.providers;
  if (length < 2 || !changesOneNode(name)) return null;
  const message = `${name} would change one of the ${length} nodes of this chain, and the others would not follow`;
  return {
    kind: "fault",
    fault: fault("method_blocked", message, {
      nextAction:
        "use a chain of one node: start with `--devnet-nodes 1` for the local one, or with one " +
        "provider in the configuration",
    }),
  };
}

function blockedFault(name: string): Fault {
  const { reason, ...advice } = reasonForBlocking(name);
  return fault("method_blocked", `${name} ${reason} and is not served`, advice);
}

/**
 * The result of a method that the configuration answers; null = the pinned provider answers it.
 */
function localResult(name: string, { chain, pin }: Target): Buffer | null {
  // The service holds no keys and does not expose the accounts of nodes, pinned or not.
  if (name === "eth_accounts") return NO_ACCOUNTS;
  if (pin !== null) return null;
  return Buffer.from(
    name === "net_version" ? `"${chain.chainId}"` : `"0x${chain.chainId.toString(16)}"`,
  );
}

const NO_ACCOUNTS = Buffer.from("[]");
