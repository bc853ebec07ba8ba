// The way to the server of the second tier: one connection, a bound on the time of every operation,
// and a circuit breaker. While the server is slow or gone, nothing is sent to it and nobody waits;
// another connection is opened in the background, after growing waits. Knows no answers.
import type { Logger } from "pino";
import type { Runtime } from "../../runtime.ts";

/** What the way works with. */
export interface TierLinkParts {
  readonly runtime: Runtime;
  readonly log: Pick<Logger, "warn" | "info">;
  readonly connect: ConnectTier;
  /** A connection is open, and used from now on. */
  readonly onReady: () => void;
}

/**
 * `off`: there is no server. `connecting`: a connection is being opened. `ready`: operations are
 * carried out. `open`: the circuit is open, and a wait is under way.
 */
export type TierState = "off" | "connecting" | "ready" | "open";

/** How an operation ended. `refused`: the server has answered with an error. */
export type TierReply =
  | { readonly kind: "replies"; readonly values: readonly unknown[] }
  | { readonly kind: "timeout" | "lost" | "refused" };

/** Commands that are sent together. */
export interface TierOperation {
  readonly commands: readonly TierCommand[];
  readonly limitMs: number;
  /** False = a refusal does not count against the server, which may be full and well. */
  readonly refusalCounts: boolean;
}

/** An operation that is under way. */
interface Operation {
  readonly done: (reply: TierReply) => void;
  readonly cancelTimer: () => void;
}

/** Failures that open the circuit; a success takes a part of one off. */
const FAILURES_TO_OPEN = 5;
const SUCCESS_COUNTS = 0.25;
/** Successes after which earlier openings are forgotten. */
const SUCCESSES_TO_TRUST = 50;
/** The first wait of an open circuit; doubled with each opening, up to the last. */
const FIRST_WAIT_MS = 1_000;
const LAST_WAIT_MS = 30_000;
const MAX_DOUBLINGS = 5;
/** A connection that is not usable after this time is given up. */
const CONNECT_MS = 3_000;

/** The way to the server. */
export class TierLink {
  readonly #parts: TierLinkParts;
  readonly #operations = new Set<Operation>();
  state: TierState = "off";
  #url: string | null = null;
  #connection: TierConnection | null = null;
  /** Ends the time that a connection has to open, or the wait before it. */
  #cancelWait: () => void = NOTHING;
  #failures = 0;
  #successes = 0;
  #openings = 0;
  /** A warning was logged, and nothing better since. */
  #warned = false;

  constructor(parts: TierLinkParts) {
    this.#parts = parts;
  }

  /** Uses this server from now on; null = none. */
  use(url: string | null): void {
    if (url === this.#url) return;
    this.#url = url;
    this.#drop("off");
    this.#openings = 0;
    if (url !== null) this.#connect(url);
  }

  /**
   * Sends commands together, and tells how that ended: once, within `limitMs`, and never before it
   * returns. The returned function forgets the operation.
   */
  send(
    { commands, limitMs, refusalCounts }: TierOperation,
    done: (reply: TierReply) => void,
  ): () => void {
    const connection = this.#connection;
    if (connection === null || this.state !== "ready")
      return this.#parts.runtime.after(0, () => done({ kind: "lost" }));
    const operation: Operation = {
      done,
      cancelTimer: this.#parts.runtime.after(limitMs, () => {
        if (this.#end(operation, { kind: "timeout" })) this.#failed("timeout", connection);
      }),
    };
    this.#operations.add(operation);
    Promise.all(commands.map((command) => connection.send(command))).then(
      (values) => {
        if (!this.#end(operation, { kind: "replies", values })) return;
        this.#successes += 1;
        if (this.#successes >= SUCCESSES_TO_TRUST) this.#openings = 0;
        this.#failures = Math.max(0, this.#failures - SUCCESS_COUNTS);
      },
      (error: unknown) => {
        if (this.#end(operation, { kind: "refused" }) && refusalCounts)
          this.#failed(problemOf(error), connection);
      },
    );
    return () => {
      operation.cancelTimer();
      this.#operations.delete(operation);
    };
  }

  #end(operation: Operation, reply: TierReply): boolean {
    if (!this.#operations.delete(operation)) return false;
    operation.cancelTimer();
    operation.done(reply);
    return true;
  }

  #failed(problem: string, connection: TierConnection): void {
    if (connection !== this.#connection) return;
    this.#failures += 1;
    if (this.#failures >= FAILURES_TO_OPEN) this.#open(problem);
  }

  /** Opens the circuit. */
  #open(problem: string): void {
    const { runtime, log } = this.#parts;
    const url = this.#url;
    this.#drop("open");
    if (url === null) return;
    if (!this.#warned)
      log.warn({ problem }, "the second tier of the cache does not answer; calls go on without it");
    this.#warned = true;
    const longestMs = FIRST_WAIT_MS * 2 ** Math.min(this.#openings, MAX_DOUBLINGS);
    this.#openings += 1;
    const waitMs = Math.min(LAST_WAIT_MS, longestMs) * (0.9 + 0.2 * runtime.random());
    this.#cancelWait = runtime.after(waitMs, () => this.#connect(url));
  }

  /** Ends the connection, and what is under way over it. */
  #drop(state: TierState): void {
    this.#cancelWait();
    this.state = state;
    this.#failures = 0;
    this.#successes = 0;
    const connection = this.#connection;
    this.#connection = null;
    connection?.close();
    for (const operation of this.#operations) this.#end(operation, { kind: "lost" });
  }

  #connect(url: string): void {
    const { runtime, connect } = this.#parts;
    const fail = (problem: string): void => {
      if (this.#connection === connection) this.#open(problem);
    };
    const connection = connect(url, fail);
    this.#connection = connection;
    this.state = "connecting";
    this.#cancelWait = runtime.after(CONNECT_MS, () => fail("timeout"));
    connection.opening
      .then(() => connection.send(["PING"]))
      .then(
        () => {
          if (this.#connection === connection) this.#begin();
        },
        (error: unknown) => fail(problemOf(error)),
      );
  }

  #begin(): void {
    this.#cancelWait();
    this.state = "ready";
    if (this.#warned) this.#parts.log.info("the second tier of the cache answers again");
    this.#warned = false;
    this.#parts.onReady();
  }
}

function NOTHING(): void {}

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
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const code: unknown = "code" in error ? error.code : null;
  if (typeof code === "string" && WORD.test(code)) return code;
  // A server's refusal begins with such a word: `NOAUTH`, `WRONGPASS`.
  const [word = ""] = error.message.split(" ", 1);
  return WORD.test(word) ? word : error.constructor.name;
}

const WORD = /^[A-Z][A-Z_0-9]{2,40}$/;

/** How long a connection to Redis may take to open. */
const OPEN_MS = 2_000;
/** Commands that wait for their reply. */
const MAX_COMMANDS = 1_024;

/**
 * Opens a connection to `redis:`, `rediss:`, `valkey:` or `valkeys:`, by the client of the Redis
 * project. It is loaded with the first connection, so that a service without a second tier does not
 * pay for it.
 */
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
      socket: { reconnectStrategy: false, connectTimeout: OPEN_MS },
      commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
    });
    close = () => client.destroy();
    send = (command) => client.sendCommand([...command]);
    client.on("error", (error: unknown) => onLost(problemOf(error)));
    await client.connect();
  };
  return { opening: open(), send: (command) => send(command), close: () => close() };
}
