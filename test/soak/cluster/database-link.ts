// The way of one node to PostgreSQL: a TCP proxy that cuts connections, delays what goes through
// them, or loses all that comes back while they stay open. Knows no protocol.
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";

/**
 * What a link does to a node. `cut`: connections end and new ones are refused; `half_open`: what
 * the node writes arrives, nothing comes back; `silent`: nothing passes in either direction;
 * `slow`: everything arrives late.
 */
export const LINK_FAULTS = ["cut", "half_open", "silent", "slow"] as const;
export type LinkFault = (typeof LINK_FAULTS)[number];

/** A link. */
export interface DatabaseLink {
  /** Address of the database by this way. */
  readonly url: string;
  break(how: LinkFault): void;
  mend(): void;
  close(): Promise<void>;
}

const PORT = 5_432;
const SLOW_MS = 150;
/** Bytes that a broken link keeps for each connection; a node gives up long before. */
const MAX_KEPT_BYTES = 16 * 1_048_576;

/** Opens a link to the database at an address that names a directory of sockets. */
export async function openDatabaseLink(databaseUrl: string): Promise<DatabaseLink> {
  const target = new URL(databaseUrl);
  const directory = target.searchParams.get("host");
  const state: State = { fault: null, flows: new Set() };
  const server = createServer((node) => {
    if (state.fault === "cut") return void node.destroy();
    const database =
      directory === null
        ? connect(Number(target.port || PORT), target.hostname)
        : connect(join(directory, `.s.PGSQL.${PORT}`));
    pass(state, { from: node, to: database, isBack: false });
    pass(state, { from: database, to: node, isBack: true });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = parseAddress(server.address());
  return {
    url: `postgres://${target.username}@127.0.0.1:${port}${target.pathname}`,
    break(how) {
      state.fault = how;
      if (how === "cut") for (const { from } of [...state.flows]) from.destroy();
    },
    mend() {
      state.fault = null;
      for (const flow of state.flows) flow.deliver();
    },
    async close() {
      for (const { from } of [...state.flows]) from.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

interface State {
  fault: LinkFault | null;
  readonly flows: Set<Flow>;
}

/** One direction of a connection. */
interface Flow {
  readonly from: Socket;
  /** Passes on what was kept. */
  deliver(): void;
}

interface Ends {
  readonly from: Socket;
  readonly to: Socket;
  readonly isBack: boolean;
}

function pass(state: State, { from, to, isBack }: Ends): void {
  let kept: Buffer[] = [];
  let keptBytes = 0;
  let dueSlow = 0;
  const deliver = (): void => {
    const bytes = kept;
    kept = [];
    keptBytes = 0;
    for (const chunk of bytes) to.write(chunk);
  };
  const flow: Flow = { from, deliver };
  state.flows.add(flow);
  from.on("data", (chunk: Buffer) => {
    const { fault } = state;
    const isKept = fault === "silent" || (fault === "half_open" && isBack);
    if (isKept || dueSlow > 0 || fault === "slow") {
      keptBytes += chunk.length;
      if (keptBytes > MAX_KEPT_BYTES) return void from.destroy();
      kept.push(chunk);
    } else to.write(chunk);
    if (fault !== "slow") return;
    dueSlow++;
    setTimeout(() => {
      dueSlow--;
      if (state.fault === null || state.fault === "slow") deliver();
    }, SLOW_MS);
  });
  from.on("error", () => to.destroy());
  from.on("close", () => {
    state.flows.delete(flow);
    to.destroy();
  });
}

function parseAddress(address: string | AddressInfo | null): AddressInfo {
  return address as AddressInfo;
}
