// A session of its own on the database that hears when changes were written. It only saves time:
// what it misses is read within a second. Checked at the start: poolers that hand out sessions by
// transactions swallow what is told.
import { sql } from "kysely";
import { Client } from "pg";
import { errorText } from "../../core/fields.ts";
import type { Runtime } from "../../runtime.ts";
import type { ChangeSignal } from "../changes/change-feed.ts";
import { CHANNEL } from "../changes/change-log.ts";
import type { Store } from "../store/store.ts";
import { HINT_CHANNEL, type HintSignal } from "./node-hints.ts";

/** What a listener works with. */
export interface ListenerParts {
  /** Holds a secret: never logged. */
  readonly url: string;
  /** The database on which changes are told. */
  readonly store: Pick<Store, "db">;
  readonly runtime: Runtime;
}

const CONNECT_TIMEOUT_MS = 3_000;
const ANSWER_TIMEOUT_MS = 3_000;
const HEARD_MS = 5_000;
/** Between two checks that the session still lives. */
const CHECK_MS = 10_000;
const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 5_000;

/** Listens; throws with a text for the operator where nothing can be heard. */
export async function openListener(parts: ListenerParts): Promise<Listener> {
  const listener = new Listener(parts);
  try {
    await listener.begin();
  } catch (error) {
    await listener.close();
    throw error;
  }
  return listener;
}

/** A session that listens, and comes back when it was lost. */
export class Listener implements ChangeSignal, HintSignal {
  readonly #parts: ListenerParts;
  readonly #subscribers = new Set<() => void>();
  readonly #hintListeners = new Set<(payload: string) => void>();
  #client: Client | null = null;
  #isClosed = false;
  #retryMs = FIRST_RETRY_MS;
  #cancelTimer: () => void = () => undefined;

  constructor(parts: ListenerParts) {
    this.#parts = parts;
  }

  subscribe(run: () => void): () => void {
    this.#subscribers.add(run);
    return () => this.#subscribers.delete(run);
  }

  onHint(receive: (payload: string) => void): () => void {
    this.#hintListeners.add(receive);
    return () => void this.#hintListeners.delete(receive);
  }

  async begin(): Promise<void> {
    const client = await this.#connect().catch((error: unknown) => {
      throw new Error(
        `The database cannot be listened to: ${errorText(error)}. ` +
          "Check cluster.listen_url (default: the database of the service).",
      );
    });
    if (!(await isHeard(this.#parts, client)))
      throw new Error(
        "Nothing that is told on the database is heard. cluster.listen_url has to lead to the " +
          "database of the service, on the server itself or by a pooler that keeps a session for " +
          "as long as it lasts.",
      );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer();
    const client = this.#client;
    this.#client = null;
    await client?.end().catch(() => undefined);
  }

  async #connect(): Promise<Client> {
    const client = new Client({
      connectionString: this.#parts.url,
      application_name: "svc listener",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      keepAlive: true,
    });
    client.on("error", () => this.#lost(client));
    client.on("end", () => this.#lost(client));
    client.on("notification", ({ channel, payload = "" }) => {
      if (channel === CHANNEL) this.#signal();
      else if (channel === HINT_CHANNEL)
        for (const receive of [...this.#hintListeners]) receive(payload);
    });
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}; listen ${HINT_CHANNEL}`);
    } catch (error) {
      void client.end().catch(() => undefined);
      throw error;
    }
    this.#client = client;
    this.#retryMs = FIRST_RETRY_MS;
    this.#later(CHECK_MS, () => this.#check(client));
    return client;
  }

  #signal(): void {
    for (const run of [...this.#subscribers]) run();
  }

  /** A half-open connection says nothing by itself. */
  #check(client: Client): void {
    client.query("select 1").then(
      () => {
        if (this.#client === client) this.#later(CHECK_MS, () => this.#check(client));
      },
      () => this.#lost(client),
    );
  }

  #lost(client: Client): void {
    if (this.#client !== client || this.#isClosed) return;
    this.#client = null;
    void client.end().catch(() => undefined);
    this.#retry();
  }

  #retry(): void {
    this.#later(this.#retryMs, () => {
      this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
      // What was told meanwhile was not heard.
      this.#connect().then(
        () => this.#signal(),
        () => {
          if (!this.#isClosed) this.#retry();
        },
      );
    });
  }

  #later(ms: number, run: () => void): void {
    this.#cancelTimer();
    if (!this.#isClosed) this.#cancelTimer = this.#parts.runtime.after(ms, run);
  }
}

/** Whether the session hears what is told on the database of the service. */
async function isHeard({ store, runtime }: ListenerParts, client: Client): Promise<boolean> {
  const channel = `svc_check_${Math.floor(runtime.random() * 36 ** 8).toString(36)}`;
  const heard = new Promise<boolean>((resolve) => {
    const cancel = runtime.after(HEARD_MS, () => resolve(false));
    client.on("notification", (message) => {
      if (message.channel !== channel) return;
      cancel();
      resolve(true);
    });
  });
  await client.query(`listen ${channel}`);
  await sql`select pg_notify(${channel}, '')`.execute(store.db);
  const isHere = await heard;
  await client.query(`unlisten ${channel}`);
  return isHere;
}
