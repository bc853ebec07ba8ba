// A TCP proxy before PostgreSQL that can cut the connections of one node, or keep them open and
// pass nothing on. Knows no protocol.
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";

/** A way to a database that the test can break. */
export interface DatabaseProxy {
  /** The address of the same database by this way. */
  readonly url: string;
  /** Ends every connection, and refuses new ones until `mend`. */
  cut(): void;
  /** Keeps connections open, and passes nothing on until `mend`. */
  stall(): void;
  mend(): void;
  close(): Promise<void>;
}

const PORT = "5432";

/** A proxy before the server of a test database's address. */
export async function databaseProxy(databaseUrl: string): Promise<DatabaseProxy> {
  const target = new URL(databaseUrl);
  const directory = target.searchParams.get("host");
  const sockets = new Set<Socket>();
  let state: "open" | "cut" | "stalled" = "open";
  const server = createServer((caller) => {
    if (state === "cut") return void caller.destroy();
    const upstream =
      directory === null
        ? connect(Number(target.port || PORT), target.hostname)
        : connect(join(directory, `.s.PGSQL.${PORT}`));
    for (const [from, to] of [
      [caller, upstream],
      [upstream, caller],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.on("data", (bytes) => void to.write(bytes));
      if (state === "stalled") from.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `postgres://${target.username}@127.0.0.1:${port}${target.pathname}`,
    cut() {
      state = "cut";
      for (const socket of [...sockets]) socket.destroy();
    },
    stall() {
      state = "stalled";
      for (const socket of sockets) socket.pause();
    },
    mend() {
      state = "open";
      for (const socket of sockets) socket.resume();
    },
    async close() {
      for (const socket of [...sockets]) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
