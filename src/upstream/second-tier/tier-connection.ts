// The port to a server that keeps copies of answers: commands and their replies over one
// connection. Its implementation is `redis-connection.ts`.

/** A command with its arguments. */
export type TierCommand = readonly (string | Buffer)[];

/** A connection, also before it is open. */
export interface TierConnection {
  /** Resolves once it is open, and rejects if that fails. */
  readonly opening: Promise<void>;
  /** The reply: a `Buffer`, text, a number or null. Rejects when it is refused or cut off. */
  send(command: TierCommand): Promise<unknown>;
  /** Ends it at once. Again: nothing. */
  close(): void;
}

/**
 * Opens a connection. `url` is secret. `onLost`: it has ended by itself; may be called again, and
 * also before it is open.
 */
export type ConnectTier = (url: string, onLost: (problem: string) => void) => TierConnection;

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
export function connectRedis(url: string, onLost: (problem: string) => void): TierConnection {
  let isClosed = false;
  let close = (): void => {
    isClosed = true;
  };
  let send: TierConnection["send"] = () => Promise.reject(new Error("not open"));
  const open = async (): Promise<void> => {
    const { createClient, RESP_TYPES } = await import("@redis/client");
    if (isClosed) throw new Error("closed");
    const client = createClient({
      url: url.replace(/^valkey/, "redis"),
      RESP: 2,
      disableOfflineQueue: true,
      commandsQueueMaxLength: MAX_COMMANDS,
      socket: { reconnectStrategy: false, connectTimeout: CONNECT_MS },
      commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
    });
    close = () => client.destroy();
    send = (command) => client.sendCommand([...command]);
    client.on("error", (error: unknown) => onLost(problemOf(error)));
    await client.connect();
  };
  return { opening: open(), send: (command) => send(command), close: () => close() };
}
