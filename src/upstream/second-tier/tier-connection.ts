// The port to a server that keeps copies of answers: commands and their replies over one
// connection. Its implementation is `redis-connection.ts`.

/** A command with its arguments. */
export type TierCommand = readonly (string | Buffer)[];

/** An open connection. */
export interface TierConnection {
  /** The reply: a `Buffer`, text, a number or null. Rejects when it is refused or cut off. */
  send(command: TierCommand): Promise<unknown>;
  /** Ends it at once. Again: nothing. */
  close(): void;
}

/** What a connection is opened with. */
export interface TierHooks {
  /** It has ended by itself. May be called again, and also before it is open. */
  readonly onLost: (problem: string) => void;
  /** Aborted = nobody waits for the connection any more. */
  readonly signal: AbortSignal;
}

/** Opens a connection, and rejects if that fails. `url` is secret. */
export type ConnectTier = (url: string, hooks: TierHooks) => Promise<TierConnection>;

/** What went wrong, in a word that holds nothing of an address or of credentials. */
export function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const code: unknown = "code" in error ? error.code : null;
  if (typeof code === "string" && WORD.test(code)) return code;
  // A server's refusal begins with such a word: `NOAUTH`, `WRONGPASS`.
  const [word = ""] = error.message.split(" ", 1);
  return WORD.test(word) ? word : error.constructor.name;
}

const WORD = /^[A-Z][A-Z_0-9]{2,40}$/;

// Connections to Redis and Valkey, by the client of the Redis project. It is loaded with the first
// connection, so that a service without a second tier does not pay for it. Opens a connection once;
// when to open another one is decided in `tier-link.ts`.

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
