// A server of the second tier without a network: keeps bytes under keys, answers at the end of the
// turn, and can be slow, silent, full or gone. What it holds is the test's to change.
import { setImmediate } from "node:timers/promises";
import type { ConnectTier, TierCommand } from "../../src/upstream/second-tier/tier-link.ts";

/** What the server does with commands. `silent`: it takes them and never answers. */
export type TierServerMode = "up" | "silent" | "full" | "down";

export interface TierServer {
  readonly connect: ConnectTier;
  readonly values: Map<string, Buffer>;
  /** Names of the commands that came, in their order. */
  readonly commands: string[];
  mode: TierServerMode;
  /** Connections that were opened, and how many of them are open. */
  readonly connections: { opened: number; open: number };
  /** Ends every connection. */
  readonly cut: () => void;
}

export function tierServer(): TierServer {
  const open = new Set<{ readonly onLost: (problem: string) => void }>();
  const server: TierServer = {
    values: new Map(),
    commands: [],
    mode: "up",
    connections: { opened: 0, open: 0 },
    connect(_, onLost) {
      const link = { onLost };
      let isClosed = false;
      const opening = setImmediate().then(() => {
        if (isClosed || server.mode === "down") throw new Error("ECONNREFUSED");
        server.connections.opened += 1;
        server.connections.open += 1;
        open.add(link);
      });
      const close = (): void => {
        isClosed = true;
        if (open.delete(link)) server.connections.open -= 1;
      };
      return { opening, send: (command) => reply(server, command), close };
    },
    cut() {
      for (const link of open) link.onLost("ECONNRESET");
    },
  };
  return server;
}

async function reply(server: TierServer, command: TierCommand): Promise<unknown> {
  const [name, key, ...rest] = command.map(String);
  server.commands.push(name ?? "");
  await setImmediate();
  if (server.mode === "silent") return new Promise<never>(() => {});
  if (server.mode === "down") throw new Error("ECONNRESET");
  const value = server.values.get(key ?? "");
  switch (name) {
    case "PING":
      return "PONG";
    case "GETRANGE":
      return value?.subarray(Number(rest[0]), Number(rest[1]) + 1) ?? Buffer.alloc(0);
    case "STRLEN":
      return value?.length ?? 0;
    case "SET":
      if (server.mode === "full") throw new Error("OOM command not allowed");
      if (rest.includes("NX") && value !== undefined) return null;
      server.values.set(key ?? "", Buffer.from(command[2] ?? ""));
      return "OK";
    default:
      throw new Error(`ERR unknown command ${name}`);
  }
}
