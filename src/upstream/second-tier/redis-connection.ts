// Connections to Redis and Valkey, by the client of the Redis project. It is loaded with the first
// connection, so that a service without a second tier does not pay for it. Opens a connection once;
// when to open another one is decided in `tier-link.ts`.
import { problemOf, type TierConnection, type TierHooks } from "./tier-connection.ts";

const CONNECT_MS = 2_000;
/** Commands that wait for their reply. */
const MAX_COMMANDS = 1_024;

/** Opens a connection to `redis:`, `rediss:`, `valkey:` or `valkeys:`. */
export async function connectRedis(
  url: string,
  { onLost, signal }: TierHooks,
): Promise<TierConnection> {
  const { createClient, RESP_TYPES } = await import("@redis/client");
  const client = createClient({
    url: url.replace(/^valkey/, "redis"),
    RESP: 2,
    disableOfflineQueue: true,
    commandsQueueMaxLength: MAX_COMMANDS,
    socket: { reconnectStrategy: false, connectTimeout: CONNECT_MS },
    commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
  });
  const close = (): void => client.destroy();
  client.on("error", (error: unknown) => onLost(problemOf(error)));
  signal.addEventListener("abort", close, { once: true });
  if (signal.aborted) throw new Error("aborted");
  await client.connect();
  signal.removeEventListener("abort", close);
  return { send: (command) => client.sendCommand([...command]), close };
}
