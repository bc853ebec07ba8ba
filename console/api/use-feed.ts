// The live feed in a component: the latest calls, gathered and drawn at most twice a second.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { SERVICE_URL } from "./client.ts";
import type { AnswerOf } from "./contract-types.ts";
import { type FeedState, type StreamEvent, watchFeed } from "./feed.ts";
import { memberOf, parseJson } from "./json.ts";

/** A call at its end. */
export type CallEvent = AnswerOf<"GET /api/v1/operator/decisions">["decisions"][number];

/** What the feed came to so far. */
export interface FeedView {
  readonly state: FeedState;
  /** Newest first. */
  readonly calls: readonly CallEvent[];
  /** Calls of the latest seconds that were left out, as a sentence; "" = none were. */
  readonly gap: string;
  /** Whether a beat came since: the next one removes it. */
  readonly isGapOld: boolean;
  readonly callsPerSecond: number | null;
}

/** Most calls that are shown. */
export const MAX_CALLS = 100;
const DRAW_MS = 500;
const PATH = "api/v1/operator/events";
/** What it came to before its first event. */
export const NOTHING: FeedView = {
  state: { kind: "connecting" },
  calls: [],
  gap: "",
  isGapOld: false,
  callsPerSecond: null,
};

/**
 * Watches calls that pass the filters, and adds them to those that were read `first`. While
 * `paused`, calls are neither shown nor kept. The feed is closed when the component goes.
 */
export function useFeed(
  query: string,
  first: readonly CallEvent[] | undefined,
  paused: boolean,
): FeedView {
  const [view, setView] = useState(NOTHING);
  const isPaused = useRef(paused);
  isPaused.current = paused;
  useEffect(() => {
    let gathered = NOTHING;
    setView(gathered);
    const draw = setInterval(() => {
      if (!document.hidden && !isPaused.current) setView(gathered);
    }, DRAW_MS);
    const end = watchFeed(new URL(`${PATH}${query}`, SERVICE_URL), {
      state: (state) => {
        if (state.kind === "live" && gathered.state.kind === "live") return;
        gathered = { ...gathered, state };
        setView((before) => ({ ...before, state }));
      },
      event: (event) => {
        gathered = withEvent(gathered, event, isPaused.current);
      },
    });
    return () => {
      clearInterval(draw);
      end();
    };
  }, [query]);
  const calls = useMemo(() => mergeCalls(view.calls, first ?? []), [view.calls, first]);
  return { ...view, calls };
}

/** What the feed comes to with one more event. */
export function withEvent(view: FeedView, { name, data }: StreamEvent, paused: boolean): FeedView {
  const event = parseJson(data);
  switch (name) {
    case "call":
      if (paused || !isCall(event)) return view;
      return { ...view, calls: [event, ...view.calls].slice(0, MAX_CALLS) };
    case "beat": {
      const gap = view.isGapOld ? "" : view.gap;
      return { ...view, gap, isGapOld: true, callsPerSecond: numberIn(event, "calls_per_s") };
    }
    case "sampled": {
      const [of, shown] = [numberIn(event, "of"), numberIn(event, "shown")];
      const what = of === null ? "Some" : `${shown ?? 0} of ${of}`;
      const gap = `Sampled: ${what} calls of the last second are shown, failed ones first.`;
      return { ...view, gap, isGapOld: false };
    }
    case "resync":
      return { ...view, gap: resyncText(numberIn(event, "missed")), isGapOld: false };
    default:
      return view;
  }
}

function resyncText(missed: number | null): string {
  return missed === null
    ? "Some calls are missing here: the feed was interrupted."
    : `${missed} events are missing here: this browser did not keep up.`;
}

function numberIn(event: unknown, name: string): number | null {
  const value = memberOf(event, name);
  return typeof value === "number" ? value : null;
}

/** The service that serves this page writes calls as the contract has them. */
function isCall(event: unknown): event is CallEvent {
  return typeof memberOf(event, "id") === "string" && typeof memberOf(event, "at") === "string";
}

/** How many calls are not among those that are shown. */
export function newCalls(calls: readonly CallEvent[], shown: readonly CallEvent[]): number {
  const known = new Set(shown.map(({ id }) => id));
  return calls.filter(({ id }) => !known.has(id)).length;
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
