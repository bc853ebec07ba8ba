// A server of the second tier without a network: keeps bytes under keys, answers at the end of the
// turn, and can be slow, silent, full or gone. What it holds is the test's to change.
import { setImmediate } from "node:timers/promises";
import type {
  ConnectTier,
  TierCommand,
  TierHooks,
} from "../../src/upstream/second-tier/tier-connection.ts";

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
  const open = new Set<TierHooks>();
  const server: TierServer = {
    values: new Map(),
    commands: [],
    mode: "up",
    connections: { opened: 0, open: 0 },
    async connect(_, hooks) {
      await setImmediate();
      if (server.mode === "down") throw new Error("ECONNREFUSED");
      server.connections.opened += 1;
      server.connections.open += 1;
      open.add(hooks);
      const close = (): void => {
        if (open.delete(hooks)) server.connections.open -= 1;
      };
      return { send: (command) => reply(server, command), close };
    },
    cut() {
      for (const hooks of open) hooks.onLost("ECONNRESET");
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
