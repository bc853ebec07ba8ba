// Between the service and the node of a payment chain: carries questions and answers, and loses,
// spoils or delays them as the test says. Knows no payment.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/**
 * What becomes of a question. `drop`: it does not reach the node. `lose`: it does, and its answer
 * does not come back. `cut`: half of the answer does. `hang`: nothing happens. `late`: it reaches
 * the node after the asker has given up. `status`, `junk`, `huge`, `limit`: the node is not asked,
 * and the answer is HTTP status 500, no JSON, too long, an error about limits.
 */
export type ChainFault =
  | "pass"
  | "drop"
  | "lose"
  | "cut"
  | "hang"
  | "late"
  | "status"
  | "junk"
  | "huge"
  | "limit";

/** The proxy of one node. */
export interface ChainProxy {
  /** Holds what could be a secret: no text may repeat it. */
  readonly url: string;
  /**
   * Decides about each question: its method, and of a call the function; and how many of that name
   * there were since `asked` was emptied.
   */
  fault: (question: string, count: number) => ChainFault;
  /** Hears when the node has answered, before the answer is passed on or lost. */
  answered: (question: string, count: number) => void;
  /** Questions, as named above. */
  readonly asked: string[];
  /** Questions that wait for their asker to give up. */
  held(): number;
  /** Questions that the node has, though nobody waits for their answer. */
  orphans(): number;
  close(): Promise<void>;
}

const HUGE_BYTES = 5_000_000;
const SELECTOR_CHARS = 10;
const JSON_TYPE = { "content-type": "application/json" };

/** Starts one on a free port of 127.0.0.1. */
export async function startChainProxy(target: string): Promise<ChainProxy> {
  const asked: string[] = [];
  let held = 0;
  let orphans = 0;
  const server = createServer(async (request, response) => {
    // An asker that goes away is not waited for.
    response.on("error", () => {});
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const question = nameOf(body);
    asked.push(question);
    const count = asked.filter((it) => it === question).length;
    const forward = async (): Promise<string> => {
      const text = await (await fetch(target, { method: "POST", headers: JSON_TYPE, body })).text();
      proxy.answered(question, count);
      return text;
    };
    try {
      const fault = proxy.fault(question, count);
      if (fault !== "hang" && fault !== "late")
        return await carry(fault, {
          socket: request.socket,
          response,
          forward,
          id: parseQuestion(body).id,
        });
      held += 1;
      await goneAway(request.socket);
      held -= 1;
      if (fault === "hang") return;
      orphans += 1;
      await forward().finally(() => {
        orphans -= 1;
      });
    } catch {
      // The node is gone, or the proxy is.
      request.socket.destroy();
    }
  });
  // After seconds in which this process did nothing else it would close the connection on which the
  // next question is sent.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const proxy: ChainProxy = {
    url: `http://127.0.0.1:${port}/key-in-the-url`,
    fault: () => "pass",
    answered: () => {},
    asked,
    held: () => held,
    orphans: () => orphans,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return proxy;
}

function nameOf(body: string): string {
  const { method, params } = parseQuestion(body);
  return method === "eth_call"
    ? `eth_call ${params[0]?.data?.slice(0, SELECTOR_CHARS) ?? ""}`.trimEnd()
    : method;
}

function parseQuestion(body: string): {
  readonly id: number;
  readonly method: string;
  readonly params: readonly { readonly data?: string }[];
} {
  return JSON.parse(body);
}

interface Carrying {
  readonly socket: Socket;
  readonly response: ServerResponse;
  readonly forward: () => Promise<string>;
  readonly id: number;
}

async function carry(
  fault: Exclude<ChainFault, "hang" | "late">,
  { socket, response, forward, id }: Carrying,
): Promise<void> {
  switch (fault) {
    case "drop":
      return void socket.destroy();
    case "status":
      return void response.writeHead(500).end();
    case "junk":
      return void response.writeHead(200).end("<html>");
    case "huge":
      return void response.writeHead(200).end(" ".repeat(HUGE_BYTES));
    case "limit":
      return void response.writeHead(200, JSON_TYPE).end(
        JSON.stringify({
          jsonrpc: "2.0",
          id,
          error: { code: -32005, message: "limit exceeded" },
        }),
      );
    case "lose":
      await forward();
      return void socket.destroy();
    case "cut": {
      const text = await forward();
      response.writeHead(200, { ...JSON_TYPE, "content-length": Buffer.byteLength(text) });
      return void response.write(text.slice(0, text.length / 2), () => socket.destroy());
    }
    case "pass":
      return void response.writeHead(200, JSON_TYPE).end(await forward());
  }
}

function goneAway(socket: Socket): Promise<void> {
  return new Promise((resolve) =>
    socket.destroyed ? resolve() : void socket.once("close", () => resolve()),
  );
}
