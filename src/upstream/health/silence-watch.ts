// Watches the attempts in flight: finds providers that are silent rather than slow, and requests
// that still wait for a connection. Sends nothing and changes no circuit: it notifies a listener.
import type { Channel, Counting } from "../../core/provider/attempt.ts";
import type { Health } from "../../core/provider/health.ts";
import { usualMs } from "../../core/provider/latency.ts";
import { type CallerIdentity, type Silence, silenceOf } from "../../core/provider/silence.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Runtime } from "../../runtime.ts";
import type { SentBatch } from "../transport.ts";

/** Why an attempt should move to another provider. */
export type MoveReason =
  /** The circuit of its provider opened for silence. */
  | "silence"
  /** The circuit of its provider opened. */
  | "opened"
  /** It still waits for a connection. */
  | "queued";

/** An attempt in flight: handed to a transport and not answered. */
export interface Outstanding extends Channel, Linked<Outstanding> {
  readonly method: Method;
  readonly caller: CallerIdentity;
  /** What its outcome counts for: only what counts for everything is watched. */
  readonly counts: Counting;
  readonly startedAtMs: number;
  /** Where its provider is watched; null = it has not begun, or its provider is not of the set. */
  watched: WatchedChannel | null;
  /** False = certainly nothing of it was sent. */
  readonly sent: boolean;
  /** It waits for a busy connection. */
  readonly queued: boolean;
  /** The batch that it was sent in; null = it was sent alone. */
  readonly batch: SentBatch | null;
  /** When it was first seen as sent (ms); null = not yet. */
  sentAtMs: number | null;
  /** When it was first seen waiting for a new connection to open (ms); null = never. */
  connectingAtMs: number | null;
  /** It has counted as silent toward the circuit of its provider. */
  counted: boolean;
  /** Called to move the attempt elsewhere, if possible. */
  moveAway(why: MoveReason): void;
}

/** A provider on one transport, with its attempts in flight. */
export interface WatchedChannel extends Channel {
  readonly health: Health;
  readonly out: AttemptsOut<Outstanding>;
  /** When it was last checked for reachability (ms). */
  askedAtMs: number;
  /** When the oldest query without any answer since was sent (ms); any answer clears it. */
  unheardSinceMs: number;
}

/** Hears the findings. */
export interface SilenceListener {
  /** An attempt has met silence for longer than usual. Repeated until it has counted. */
  silent(channel: WatchedChannel, out: Outstanding): void;
  /**
   * Nothing has arrived for a while although something was requested. Repeated while that lasts.
   */
  quiet(channel: WatchedChannel): void;
}

/** Interval of checks while attempts are in flight. */
const CHECK_EVERY_MS = 100;
/**
 * A check later than this means that the process was blocked, and answers may have arrived unread.
 */
const LATE_CHECK_MS = 2 * CHECK_EVERY_MS;

/** Watches the channels of one provider set. */
export class SilenceWatch {
  readonly #runtime: Runtime;
  readonly #channels: readonly WatchedChannel[];
  readonly #listener: SilenceListener;
  #isChecking = false;
  /** When it last checked, or began to (ms). */
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  /**
   * When the latest attempt began that this watch was told of (ms). Later ones on its channels
   * belong to the successor of its set.
   */
  #lastBeganMs = Number.NEGATIVE_INFINITY;

  constructor(runtime: Runtime, channels: readonly WatchedChannel[], listener: SilenceListener) {
    this.#runtime = runtime;
    this.#channels = channels;
    this.#listener = listener;
  }

  begin(channel: WatchedChannel, out: Outstanding): void {
    channel.out.add(out);
    this.#lastBeganMs = out.startedAtMs;
    if (!this.#isChecking) this.#checkLater();
  }

  /** What an attempt that ends now without an answer says about its provider. */
  silenceOf({ health }: WatchedChannel, out: Outstanding): Silence {
    const askedAtMs = out.sentAtMs ?? out.connectingAtMs;
    // Until then an answer would have been read: not while this process was busy or suspended,
    // which says nothing about any provider.
    const attentiveUntilMs = Math.min(this.#runtime.now(), this.#checkedAtMs + LATE_CHECK_MS);
    return silenceOf(
      {
        askedAtMs,
        heardAtMs: health.heardAtMs,
        usualMs: usualMs(health.latency, out.method, 0.99),
      },
      attentiveUntilMs,
    );
  }

  #checkLater(): void {
    this.#isChecking = true;
    this.#checkedAtMs = this.#runtime.now();
    this.#runtime.after(CHECK_EVERY_MS, () => {
      this.#isChecking = false;
      for (const channel of this.#channels) if (channel.out.size > 0) this.#check(channel);
      if (!this.#isChecking && this.#channels.some((channel) => this.#isWatched(channel)))
        this.#checkLater();
    });
  }

  /** Whether an attempt is in flight that this watch may have been told of: the oldest is first. */
  #isWatched({ out }: WatchedChannel): boolean {
    return out.first !== null && out.first.startedAtMs <= this.#lastBeganMs;
  }

  #check(channel: WatchedChannel): void {
    let quiet = false;
    for (const out of channel.out.all()) {
      if (!out.sent && out.queued) {
        out.moveAway("queued");
        continue;
      }
      if (out.sent) out.sentAtMs ??= this.#runtime.now();
      else out.connectingAtMs ??= this.#runtime.now();
      const silence = this.silenceOf(channel, out);
      quiet ||= silence === "quiet" || silence === "silent";
      if (silence === "silent" && !out.counted) this.#listener.silent(channel, out);
    }
    if (quiet) this.#listener.quiet(channel);
  }
}

// The attempts in flight on one channel, in order of start. A linked list whose links are cleared
// on removal: a long-lived `Set` keeps old tables that hold removed attempts alive, so that every
// attempt would be promoted out of the young generation.

/** A member of a list. */
export interface Linked<T> {
  before: T | null;
  after: T | null;
}

/** A list of attempts. */
export class AttemptsOut<T extends Linked<T>> {
  size = 0;
  /** The oldest attempt; null = the list is empty. */
  first: T | null = null;
  #last: T | null = null;

  add(one: T): void {
    const last = this.#last;
    one.before = last;
    if (last === null) this.first = one;
    else last.after = one;
    this.#last = one;
    this.size++;
  }

  /** Removes an attempt, if it is in the list; it must not be in another one. */
  delete(one: T): void {
    const { before, after } = one;
    if (before === null && this.first !== one) return;
    if (before === null) this.first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    one.before = null;
    one.after = null;
    this.size--;
  }

  /** All attempts in the list. */
  all(): readonly T[] {
    const all: T[] = [];
    for (let one = this.first; one !== null; one = one.after) all.push(one);
    return all;
  }
}
