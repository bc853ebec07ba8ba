// The log of changes as one process of a service follows it: it reads once a second, at once when
// the database or another worker says that there is something to read, and before the worker that
// wrote a change answers for it.
import type { Logger } from "pino";
import type { Bus, QuestionTopic, Topic } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import type { Store } from "../store/store.ts";
import { ChangeFeed, type ChangeSignal } from "./change-feed.ts";
import { type ChangePosition, type ChangesRead, currentPosition } from "./change-log.ts";
import { type Contact, contactNow, watchContact } from "./contact.ts";

/** What changes are followed with. */
export interface ChangesParts {
  readonly store: Pick<Store, "db">;
  readonly runtime: Runtime;
  readonly bus: Bus;
  /** Of this machine; 1 = this process alone. */
  readonly workers: number;
  /** Where the database tells of changes of other nodes; null = this service is one node. */
  readonly signal: ChangeSignal | null;
  /** For this long changes may be unheard until a process counts as cut off. */
  readonly nodeTimeoutMs: number;
  readonly log: Pick<Logger, "warn" | "info">;
  readonly onError: (error: unknown) => void;
}

/** What hears of changes. */
export interface ChangeFollower {
  /**
   * Something was changed elsewhere, or may have been: when this returns, nothing of it is used as
   * it was. Reading it again goes on in the background, so that the next changes need not wait.
   */
  readonly changed: (read: ChangesRead) => void;
  /** Resolves when what was read in the background is in use. */
  readonly settled: () => Promise<unknown>;
  /** Whether changes elsewhere are heard of. */
  readonly contact?: (contact: Contact) => void;
  /** Called once: says the same for this very moment, before anybody was told. */
  readonly watch?: (now: () => Contact) => void;
}

/** Between two readings that nothing asked for. */
const POLL_MS = 1_000;
/** A worker that writes a change waits for the others no longer; they read it all the same. */
const ANSWER_MS = 1_000;

const WRITTEN: Topic<null> = { name: "changes written" };
/** Asks a worker to read now; answered with whether it has. */
const READ_NOW: QuestionTopic<null, boolean> = { name: "read changes" };

/** Opens the changes from now on: before anything that they concern is read. */
export async function openChanges(parts: ChangesParts): Promise<Changes> {
  return new Changes(parts, await currentPosition(parts.store));
}

/** Changes that this process makes and hears of. */
export class Changes {
  readonly #parts: ChangesParts;
  readonly #from: ChangePosition;
  readonly #followers: ChangeFollower[] = [];
  readonly #ends: (() => void)[] = [];

  constructor(parts: ChangesParts, from: ChangePosition) {
    this.#parts = parts;
    this.#from = from;
  }

  /** Whether no other process changes or reads anything. */
  get isAlone(): boolean {
    const { workers, signal } = this.#parts;
    return workers === 1 && signal === null;
  }

  /** Says that there is something to read: it only saves time. */
  written(): void {
    this.#parts.bus.publish(WRITTEN, null);
  }

  /**
   * Has the other workers of this machine read what was written, also those that begin to serve at
   * this moment. Resolves, at the latest after a second, with whether all of them have.
   */
  async announce(): Promise<boolean> {
    const { bus } = this.#parts;
    this.written();
    const others = [...bus.workers(), ...bus.silent()].filter((id) => id !== bus.self);
    const asked = { topic: READ_NOW, message: null, timeoutMs: ANSWER_MS };
    const replies = await Promise.all(others.map((id) => bus.request(id, asked)));
    // A worker that is gone knows nothing any more, and its successor reads from its start on.
    return replies.every((reply) => (reply.ok ? reply.value : reply.reason === "gone"));
  }

  /** Adds a follower; call before `begin`. */
  follow(follower: ChangeFollower): void {
    this.#followers.push(follower);
  }

  /** Passes on what was changed since this was opened, where other processes change something. */
  begin(): void {
    const { bus, signal, runtime, nodeTimeoutMs } = this.#parts;
    if (this.isAlone) return;
    const subscribe: ChangeSignal["subscribe"] = (run) => {
      const cancels = [signal?.subscribe(run), bus.subscribe(WRITTEN, run)];
      return () => {
        for (const cancel of cancels) cancel?.();
      };
    };
    const feed = new ChangeFeed({
      ...this.#parts,
      signal: { subscribe },
      pollMs: POLL_MS,
      from: this.#from,
      apply: (read) => {
        for (const follower of this.#followers) follower.changed(read);
      },
    });
    const stop = bus.serve(READ_NOW, async () => {
      const askedAtMs = runtime.now();
      await feed.read();
      await Promise.all(this.#followers.map((follower) => follower.settled()));
      return runtime.now() - feed.silentMs() >= askedAtMs;
    });
    const endWatch = watchContact({ ...this.#parts, feed }, (contact) => {
      for (const follower of this.#followers) follower.contact?.(contact);
    });
    for (const follower of this.#followers)
      follower.watch?.(() => contactNow({ feed, nodeTimeoutMs }));
    this.#ends.push(() => feed.close(), endWatch, stop);
  }

  close(): void {
    for (const end of this.#ends) end();
  }
}
