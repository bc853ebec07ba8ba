// The live feed: one stream of server-sent events for all tabs that watch the same, connected again
// after a cut, with growing pauses. Says at any time how it is.
import { refusalOf } from "./client.ts";
import { createEventParser, type StreamEvent } from "./event-parser.ts";

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
/** The service sends something every 5 s. */
const SILENCE_MS = 20_000;

type Shared =
  | { readonly kind: "state"; readonly state: FeedState }
  | { readonly kind: "event"; readonly event: StreamEvent };

/**
 * Watches the feed at an address until the returned function is called. Of several tabs one reads
 * the stream and tells the others; where the browser has no locks (plain http) each reads its own.
 */
export function watchFeed(url: URL, watcher: FeedWatcher): () => void {
  const end = new AbortController();
  const name = `svc-feed ${url.pathname}${url.search}`;
  const channel = new BroadcastChannel(name);
  channel.onmessage = ({ data }: MessageEvent<Shared>) => tell(watcher, data);
  const publish = (message: Shared): void => {
    channel.postMessage(message);
    tell(watcher, message);
  };
  watcher.state({ kind: "connecting" });
  const read = (): Promise<void> => keepReading(url, end.signal, publish);
  const locks: LockManager | undefined = navigator.locks;
  const reading = locks === undefined ? read() : locks.request(name, { signal: end.signal }, read);
  // The only failure is the end of the wait for the lock.
  void Promise.resolve(reading).catch(() => {});
  return () => {
    end.abort();
    channel.close();
  };
}

function tell(watcher: FeedWatcher, message: Shared): void {
  if (message.kind === "state") watcher.state(message.state);
  else {
    // A tab that joins later hears of the state by the first event.
    watcher.state({ kind: "live" });
    watcher.event(message.event);
  }
}

/** Reads one stream after the other. */
async function keepReading(
  url: URL,
  signal: AbortSignal,
  publish: (message: Shared) => void,
): Promise<void> {
  const progress = { lastId: "", pauseMs: FIRST_PAUSE_MS };
  while (!signal.aborted) {
    publish({ kind: "state", state: { kind: "connecting" } });
    const outcome = await readOnce(
      url,
      signal,
      (event) => {
        progress.pauseMs = FIRST_PAUSE_MS;
        if (event.id !== "") progress.lastId = event.id;
        publish({ kind: "event", event });
      },
      progress.lastId,
    );
    if (signal.aborted) return;
    if (outcome.kind === "ended") return publish({ kind: "state", state: outcome });
    const pauseMs = Math.max(progress.pauseMs, outcome.pauseMs);
    progress.pauseMs = Math.min(MAX_PAUSE_MS, progress.pauseMs * 2);
    publish({ kind: "state", state: { kind: "waiting", atMs: Date.now() + pauseMs } });
    await pause(pauseMs, signal);
  }
}

type Outcome =
  | { readonly kind: "cut"; readonly pauseMs: number }
  | { readonly kind: "ended"; readonly message: string };

async function readOnce(
  url: URL,
  signal: AbortSignal,
  emit: (event: StreamEvent) => void,
  lastId: string,
): Promise<Outcome> {
  const silence = new AbortController();
  const either = AbortSignal.any([signal, silence.signal]);
  try {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (lastId !== "") headers["last-event-id"] = lastId;
    const response = await fetch(url, { headers, cache: "no-store", signal: either });
    if (!response.ok || response.body === null) return await refused(response);
    return await readEvents(response.body, silence, emit);
  } catch {
    return { kind: "cut", pauseMs: 0 };
  }
}

/** A refusal for want of rights is final; all others pass. */
async function refused(response: Response): Promise<Outcome> {
  const failure = refusalOf(response, await response.json().catch(() => null));
  const message = failure.kind === "refused" ? failure.message : "";
  if (response.status === 401 || response.status === 403 || response.status === 404)
    return { kind: "ended", message };
  const retryMs = failure.kind === "refused" ? failure.retryAfterMs : null;
  return { kind: "cut", pauseMs: retryMs ?? 0 };
}

async function readEvents(
  body: ReadableStream<Uint8Array>,
  silence: AbortController,
  emit: (event: StreamEvent) => void,
): Promise<Outcome> {
  const parser = createEventParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return { kind: "cut", pauseMs: parser.retryMs() ?? 0 };
    for (const event of parser.feed(decoder.decode(value, { stream: true }))) {
      const over = endOf(event);
      if (over !== null) return { kind: "ended", message: over };
      emit(event);
    }
  }
}

/** The last words of a stream that is not to be opened again; null = it is any other event. */
function endOf({ name, data }: StreamEvent): string | null {
  if (name !== "end" || !data.includes("session_ended")) return null;
  return "Your session has ended.";
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
