// Watches the attempts in flight: notices providers that are silent instead of slow, and requests
// that still wait for a connection. Sends nothing and moves no circuit: it notifies a listener.
import type { Channel } from "../../core/provider/attempt.ts";
import type { Health } from "../../core/provider/health.ts";
import { usualMs } from "../../core/provider/latency.ts";
import { type CallerIdentity, type Silence, silenceOf } from "../../core/provider/silence.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Runtime } from "../../runtime.ts";
import type { AttemptsOut, Linked } from "./attempts-in-flight.ts";

/** Why an attempt may be better off at another provider. */
export type Departure =
  /** The circuit of its provider opened because that is silent. */
  | "silence"
  /** The circuit of its provider opened. */
  | "opened"
  /** It still waits for a connection. */
  | "queued";

/** An attempt that is out: handed to a transport and not answered. */
export interface Outstanding extends Channel, Linked<Outstanding> {
  readonly method: Method;
  readonly caller: CallerIdentity;
  readonly startedAtMs: number;
  /** False as long as certainly nothing of it has left this machine. */
  readonly sent: boolean;
  /** It waits for a connection that others use. */
  readonly queued: boolean;
  /** When it was first known to have been sent; null = it is not. */
  sentAtMs: number | null;
  /**
   * When it was first known to wait for a connection of its own to be made; null = it never did.
   */
  connectingAtMs: number | null;
  /** It has counted as silent toward the circuit of its provider. */
  counted: boolean;
  /** Asked to go elsewhere, if it can. */
  leave(why: Departure): void;
}

/** A provider on one transport, and what is out on it. */
export interface WatchedChannel extends Channel {
  readonly health: Health;
  readonly out: AttemptsOut<Outstanding>;
  /** When it was last asked whether it is there. */
  askedAtMs: number;
  /** When it was asked what it last left unanswered; what it has answered since ends that. */
  unheardSinceMs: number;
}

/** Hears what is noticed. */
export interface SilenceListener {
  /** An attempt has met silence for longer than usual. Told again until it has counted. */
  silent(channel: WatchedChannel, out: Outstanding): void;
  /**
   * Nothing has come for a while, though something was asked. Told again and again while that
   * lasts.
   */
  quiet(channel: WatchedChannel): void;
}

/** How often is looked, while anything is out. */
const LOOK_EVERY_MS = 100;
/**
 * A look that is later than this was held up in this process: what came meanwhile has not been read
 * yet.
 */
const LATE_LOOK_MS = 2 * LOOK_EVERY_MS;

/** Watches the channels of one provider set. */
export class SilenceWatch {
  readonly #runtime: Runtime;
  readonly #channels: readonly WatchedChannel[];
  readonly #listener: SilenceListener;
  #looking = false;
  /** When it last looked, or began to. */
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  /**
   * When the last attempt began that this watch was told of. Others on its channels began with the
   * successor of its set, which watches them.
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
    if (!this.#looking) this.#lookLater();
  }

  /** What an attempt says of its provider that ends now without an answer. */
  silenceOf({ health }: WatchedChannel, out: Outstanding): Silence {
    const askedAtMs = out.sentAtMs ?? out.connectingAtMs;
    return silenceOf(
      {
        askedAtMs,
        heardAtMs: health.heardAtMs,
        usualMs: usualMs(health.latency, out.method, 0.99),
      },
      this.#attentiveUntilMs(),
    );
  }

  /**
   * Until when an answer would have been read: not while this process was busy or asleep, which
   * says nothing about any provider.
   */
  #attentiveUntilMs(): number {
    return Math.min(this.#runtime.now(), this.#lookedAtMs + LATE_LOOK_MS);
  }

  #lookLater(): void {
    this.#looking = true;
    this.#lookedAtMs = this.#runtime.now();
    this.#runtime.after(LOOK_EVERY_MS, () => {
      this.#looking = false;
      for (const channel of this.#channels) if (channel.out.size > 0) this.#look(channel);
      if (!this.#looking && this.#channels.some((channel) => this.#isWatched(channel)))
        this.#lookLater();
    });
  }

  /**
   * Whether something is out that this watch may have been told of: the longest out stands first.
   */
  #isWatched({ out }: WatchedChannel): boolean {
    return out.first !== null && out.first.startedAtMs <= this.#lastBeganMs;
  }

  #look(channel: WatchedChannel): void {
    let quiet = false;
    for (const out of channel.out.all()) {
      if (!out.sent && out.queued) {
        out.leave("queued");
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
