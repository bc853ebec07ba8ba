// The live feed in a component: the latest calls, gathered and drawn at most twice a second.
import { useEffect, useRef, useState } from "preact/hooks";
import { SERVICE_URL } from "./client.ts";
import type { AnswerOf } from "./contract-types.ts";
import { type FeedState, type StreamEvent, watchFeed } from "./feed.ts";
import { parseJson } from "./json.ts";

/** A call at its end. */
export type CallEvent = AnswerOf<"GET /api/v1/operator/decisions">["decisions"][number];

/** What the feed came to so far. */
export interface FeedView {
  readonly state: FeedState;
  /** Newest first. */
  readonly calls: readonly CallEvent[];
  /** Calls of the latest seconds that were left out, as a sentence; "" = none were. */
  readonly gap: string;
  readonly callsPerSecond: number | null;
}

const MAX_CALLS = 100;
const DRAW_MS = 500;
const PATH = "api/v1/operator/events";

interface Gathered {
  /** Not drawn yet. */
  calls: CallEvent[];
  /** Drawn, newest first. */
  drawn: readonly CallEvent[];
  gap: string;
  callsPerSecond: number | null;
}

/**
 * Watches calls that pass the filters. While `paused`, calls are neither shown nor kept. The feed
 * is closed when the component goes.
 */
export function useFeed(query: string, first: readonly CallEvent[], paused: boolean): FeedView {
  const [view, setView] = useState<FeedView>(emptyView(first));
  const isPaused = useRef(paused);
  isPaused.current = paused;
  const current = useRef<Gathered | null>(null);
  useEffect(() => {
    const gathered: Gathered = { calls: [], drawn: [], gap: "", callsPerSecond: null };
    current.current = gathered;
    const draw = setInterval(() => {
      if (!document.hidden && !isPaused.current) setView((before) => drawn(before, gathered));
    }, DRAW_MS);
    const end = watchFeed(new URL(`${PATH}${query}`, SERVICE_URL), {
      state: (state) =>
        setView((before) => (sameState(before.state, state) ? before : { ...before, state })),
      event: (event) => gather(gathered, event, isPaused.current),
    });
    return () => {
      clearInterval(draw);
      end();
    };
  }, [query]);
  useEffect(() => {
    // The list may arrive after events that are not in it.
    const calls = mergeCalls(current.current?.drawn ?? [], first);
    setView((before) => ({ ...before, calls }));
  }, [first]);
  return view;
}

function emptyView(first: readonly CallEvent[]): FeedView {
  return { state: { kind: "connecting" }, calls: first, gap: "", callsPerSecond: null };
}

function sameState(left: FeedState, right: FeedState): boolean {
  if (left.kind !== right.kind) return false;
  return left.kind !== "waiting" || right.kind !== "waiting" || left.atMs === right.atMs;
}

function gather(gathered: Gathered, { name, data }: StreamEvent, paused: boolean): void {
  const event: Fields = Object(parseJson(data));
  switch (name) {
    case "call": {
      const call = parseCall(event);
      if (call !== null && !paused) gathered.calls = [...gathered.calls, call].slice(-MAX_CALLS);
      return;
    }
    case "beat":
      gathered.callsPerSecond = numberIn(event, "calls_per_s");
      gathered.gap = "";
      return;
    case "sampled": {
      const [of, shown] = [numberIn(event, "of"), numberIn(event, "shown")];
      const what = of === null ? "Some" : `${shown ?? 0} of ${of}`;
      gathered.gap = `${what} calls are shown: at most 200 a second are.`;
      return;
    }
    case "resync":
      gathered.gap = resyncText(event);
      return;
    default:
  }
}

function resyncText(event: Fields): string {
  const missed = numberIn(event, "missed");
  return missed === null
    ? "Some calls are missing here: the feed was interrupted."
    : `${missed} events are missing here: this browser did not keep up.`;
}

type Fields = Readonly<Record<string, unknown>>;

function numberIn(fields: Fields, name: string): number | null {
  const value = fields[name];
  return typeof value === "number" ? value : null;
}

/** The service that serves this page writes calls as the contract has them; null = it is none. */
function parseCall(fields: Fields): CallEvent | null {
  return typeof fields["id"] === "string" && typeof fields["at"] === "string"
    ? (fields as CallEvent)
    : null;
}

function drawn(before: FeedView, gathered: Gathered): FeedView {
  const { gap, callsPerSecond } = gathered;
  if (gathered.calls.length === 0 && gap === before.gap && callsPerSecond === before.callsPerSecond)
    return before;
  const newer = gathered.calls.toReversed();
  const calls = mergeCalls(newer, before.calls);
  gathered.drawn = mergeCalls(newer, gathered.drawn);
  gathered.calls = [];
  return { ...before, calls, gap, callsPerSecond };
}

/**
 * The newest first, each once, and not too many. Calls of several workers arrive in turns, not in
 * the order of their ends.
 */
export function mergeCalls(
  newer: readonly CallEvent[],
  older: readonly CallEvent[],
): readonly CallEvent[] {
  const seen = new Set<string>();
  return [...newer, ...older]
    .filter(({ id }) => !seen.has(id) && seen.add(id))
    .sort((left, right) => Date.parse(right.at) - Date.parse(left.at))
    .slice(0, MAX_CALLS);
}
