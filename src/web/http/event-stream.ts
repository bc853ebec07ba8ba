// One reader of the live feed over HTTP: server-sent events on a response that stays open. A reader
// that does not keep up loses events and is told so. The stream ends with its credential, where
// that could not be checked for some time, with the service, or after half a day.
import type { ServerResponse } from "node:http";
import { type HubReader, type HubReading, passing } from "../../observe/feed/feed-hub.ts";
import type { Runtime } from "../../runtime.ts";

/** What a stream is made with. */
export interface EventStreamParts {
  readonly runtime: Pick<Runtime, "after">;
  /** The first event. */
  readonly hello: object;
  /** Whether the credential of its request is still good. */
  readonly isStillAllowed: () => Promise<boolean>;
}

/** Bytes that may wait for a reader. */
const MAX_BACKLOG_BYTES = 262_144;
/** How often the credential is checked. */
const CHECK_MS = 2_000;
/** How long a stream goes on while no check says that its credential is good. */
const UNCHECKED_MS = 15_000;
const LONGEST_MS = 43_200_000;
const RETRY = "retry: 2000\n\n";

/** A reader on its response. */
export class EventStream implements HubReader {
  readonly #parts: EventStreamParts;
  readonly #response: ServerResponse;
  #reading: HubReading | null = null;
  #missed = 0;
  #isOver = false;
  #cancelCheck: () => void = () => {};
  #cancelUnchecked: () => void = () => {};
  #cancelEnd: () => void = () => {};

  constructor(parts: EventStreamParts, response: ServerResponse) {
    this.#parts = parts;
    this.#response = response;
  }

  /** Begins to write; the head was written. `join` lets it into the feed. */
  begin(reading: HubReading): void {
    if (this.#isOver) return;
    this.#reading = reading;
    const { runtime, hello } = this.#parts;
    this.#response.on("close", () => this.#leave());
    this.#response.on("error", () => this.#leave());
    this.#cancelEnd = runtime.after(LONGEST_MS, () => this.end("too_long"));
    this.#good();
    const { start } = reading;
    this.#response.write(RETRY + passing("hello", hello));
    if (start.kind === "resync")
      this.#response.write(passing("resync", { reason: start.reason, missed: null }));
    if (start.kind === "continued") this.receive(start.bytes, start.events);
  }

  receive(bytes: Buffer, events: number): void {
    if (this.#isOver || events === 0) return;
    if (this.#response.writableLength > MAX_BACKLOG_BYTES) {
      this.#missed += events;
      return;
    }
    if (this.#missed > 0) {
      const missed = { reason: "slow_reader", missed: this.#missed };
      this.#response.write(passing("resync", missed));
      this.#missed = 0;
    }
    this.#response.write(bytes);
  }

  /** Ends the stream, and says why. */
  end(reason: "draining" | "too_many_filters" | "too_long" | "session_ended" | "unchecked"): void {
    if (this.#isOver) return;
    this.#leave();
    this.#response.end(passing("end", { reason }));
  }

  #leave(): void {
    this.#isOver = true;
    this.#cancelCheck();
    this.#cancelUnchecked();
    this.#cancelEnd();
    this.#reading?.leave();
  }

  /** The credential was found good. */
  #good(): void {
    const { runtime } = this.#parts;
    this.#cancelUnchecked();
    this.#cancelUnchecked = runtime.after(UNCHECKED_MS, () => this.end("unchecked"));
    this.#checkLater();
  }

  #checkLater(): void {
    this.#cancelCheck();
    this.#cancelCheck = this.#parts.runtime.after(CHECK_MS, () => this.#check());
  }

  #check(): void {
    this.#parts.isStillAllowed().then(
      (isAllowed) => {
        if (this.#isOver) return;
        if (isAllowed) this.#good();
        else this.end("session_ended");
      },
      () => {
        if (!this.#isOver) this.#checkLater();
      },
    );
  }
}
