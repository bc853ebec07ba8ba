// The live feed: one stream of server-sent events for all tabs that watch the same, connected again
// after a cut, with growing pauses, where it was. Says at any time how it is.
import { createParser } from "eventsource-parser";
import { failureOf } from "./client.ts";

/** How the feed is. */
export type FeedState =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  /** Cut; `atMs` by the clock of this browser = when it connects again. */
  | { readonly kind: "waiting"; readonly atMs: number }
  /** Over: the session ended, or nobody is signed in. */
  | { readonly kind: "ended"; readonly message: string };

/** What a watcher of the feed is told. */
export interface FeedWatcher {
  readonly state: (state: FeedState) => void;
  readonly event: (event: StreamEvent) => void;
}

/** Pauses between attempts. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;
/** A longer event is none of this service: the connection is given up. */
const MAX_EVENT_CHARS = 262_144;
/** The service answers at once, and then sends something every 5 s. */
const SILENCE_MS = 20_000;

/** What the tab that reads tells all tabs. */
interface Shared {
  readonly state: FeedState;
  readonly event: StreamEvent | null;
}

/** How far the feed was read, by this tab or the one that read before it. */
interface Progress {
  /** Of the latest event; "" = there was none. */
  lastId: string;
  pauseMs: number;
}

/**
 * Watches the feed at an address until the returned function is called. Of several tabs one reads
 * the stream and tells the others; where the browser has no locks (plain http) each reads its own.
 */
export function watchFeed(url: URL, watcher: FeedWatcher): () => void {
  const end = new AbortController();
  const name = `svc-feed ${url.pathname}${url.search}`;
  const channel = new BroadcastChannel(name);
  const progress: Progress = { lastId: "", pauseMs: FIRST_PAUSE_MS };
  const hear = ({ state, event }: Shared): void => {
    watcher.state(state);
    if (event === null) return;
    progress.lastId = event.id || progress.lastId;
    watcher.event(event);
  };
  channel.onmessage = ({ data }: MessageEvent<Shared>) => hear(data);
  const publish = (state: FeedState, event: StreamEvent | null = null): void => {
    channel.postMessage({ state, event });
    hear({ state, event });
  };
  watcher.state({ kind: "connecting" });
  const read = (): Promise<void> => keepReading(url, progress, publish, end.signal);
  const locks: LockManager | undefined = navigator.locks;
  const reading = locks === undefined ? read() : locks.request(name, { signal: end.signal }, read);
  // The only failure is the end of the wait for the lock.
  void Promise.resolve(reading).catch(() => {});
  return () => {
    end.abort();
    channel.close();
  };
}

/** Reads one stream after the other. */
async function keepReading(
  url: URL,
  progress: Progress,
  publish: (state: FeedState, event?: StreamEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    publish({ kind: "connecting" });
    const emit = (event: StreamEvent): void => {
      progress.pauseMs = FIRST_PAUSE_MS;
      // A tab that joins later hears of the state by the first event.
      publish({ kind: "live" }, event);
    };
    const outcome = await readOnce(url, progress.lastId, emit, signal);
    if (signal.aborted) return;
    if (outcome.kind === "ended") return publish(outcome);
    const pauseMs = Math.max(progress.pauseMs, outcome.pauseMs);
    progress.pauseMs = Math.min(MAX_PAUSE_MS, progress.pauseMs * 2);
    publish({ kind: "waiting", atMs: Date.now() + pauseMs });
    await pause(pauseMs, signal);
  }
}

type Outcome =
  | { readonly kind: "cut"; readonly pauseMs: number }
  | { readonly kind: "ended"; readonly message: string };

async function readOnce(
  url: URL,
  lastId: string,
  emit: (event: StreamEvent) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  const heard = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE_MS);
  };
  try {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (lastId !== "") headers["last-event-id"] = lastId;
    const either = AbortSignal.any([signal, silence.signal]);
    const response = await fetch(url, { headers, cache: "no-store", signal: either });
    if (!response.ok || response.body === null) return await refused(response);
    return await readEvents(response.body, heard, emit);
  } catch {
    return { kind: "cut", pauseMs: 0 };
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

/** A refusal for want of rights is final; all others pass. */
async function refused(response: Response): Promise<Outcome> {
  const failure = failureOf(response, await response.json().catch(() => null));
  const { status, message, retryAfterMs } = failure;
  if ([401, 403, 404].includes(status)) return { kind: "ended", message };
  return { kind: "cut", pauseMs: retryAfterMs ?? 0 };
}

async function readEvents(
  body: ReadableStream<Uint8Array>,
  heard: () => void,
  emit: (event: StreamEvent) => void,
): Promise<Outcome> {
  const read = { id: "", pauseMs: 0, over: null as string | null };
  const parser = createParser({
    maxBufferSize: MAX_EVENT_CHARS,
    onRetry: (ms) => {
      read.pauseMs = ms;
    },
    onEvent: ({ id = read.id, event: name = "message", data }) => {
      read.id = id;
      read.over ??= endOf({ id, name, data });
      if (read.over === null) emit({ id, name, data });
    },
  });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    heard();
    const { done, value } = await reader.read();
    if (done) return { kind: "cut", pauseMs: read.pauseMs };
    parser.feed(decoder.decode(value, { stream: true }));
    if (read.over !== null) return { kind: "ended", message: read.over };
  }
}

/** The last words of a stream that is not to be opened again; null = it is any other event. */
function endOf({ name, data }: StreamEvent): string | null {
  if (name !== "end" || !data.includes("session_ended")) return null;
  return "Your session has ended.";
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
    signal.addEventListener("abort", () => resolve());
  });
}

/** One event. */
export interface StreamEvent {
  /** "" = the stream gave none. */
  readonly id: string;
  readonly name: string;
  readonly data: string;
}
