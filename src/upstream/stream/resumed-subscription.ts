// A subscriber that goes on from what it was told at another node. It joins the stream that others
// share if that one knows all that it missed, begins that stream where there is none, and else has
// a stream of its own.
import type { Fault } from "../../core/faults/rpc-fault.ts";
import type { StreamMark } from "../../core/stream/stream-mark.ts";
import type { Runtime } from "../../runtime.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";
import { CANNOT_RESUME, type Stream } from "./stream.ts";
import type { Subscriber } from "./subscriber.ts";

/** The streams of one subscription. */
export interface ResumableStreams {
  /** The stream that all subscribers share; null = there is none. */
  shared(): Stream | null;
  /** Begins that stream at the mark; null = there is no room. */
  beginShared(): Stream | null;
  /** Begins another one that nobody else joins. */
  beginOwn(): Stream | null;
}

/** Dependencies. */
export interface ResumedParts {
  readonly runtime: Pick<Runtime, "now">;
  readonly timerWheel: TimerWheel;
  readonly streams: ResumableStreams;
  readonly deadlineMs: number;
  /** The refusal where there is no room. */
  readonly full: Fault;
}

/** How long the shared stream may be behind the mark, and between two looks. */
const BEHIND_MS = 3_000;
const LOOK_MS = 50;

/** Joins a subscriber at its mark. Returns the function that leaves. */
export function joinAtMark(
  { runtime, timerWheel, streams, deadlineMs, full }: ResumedParts,
  mark: StreamMark,
  subscriber: Subscriber,
): () => void {
  const untilMs = runtime.now() + BEHIND_MS;
  let look: Timer | null = null;
  let leave = (): void => look?.clear();

  function begin(stream: Stream | null): void {
    if (stream === null) subscriber.refused({ kind: "fault", fault: full }, null);
    else leave = stream.join(subscriber, deadlineMs, true);
  }

  function join(): void {
    const stream = streams.shared();
    if (stream === null) return begin(streams.beginShared());
    const difference = stream.since(mark);
    switch (difference.kind) {
      case "events":
        leave = stream.join(subscriber, deadlineMs);
        if (difference.events.length > 0) subscriber.events(difference.events);
        return;
      case "behind":
        if (runtime.now() >= untilMs) return begin(streams.beginOwn());
        look = timerWheel.set(LOOK_MS, join);
        return;
      case "apart":
        return begin(streams.beginOwn());
      case "forgotten":
        return subscriber.refused(CANNOT_RESUME.outcome, null);
    }
  }

  join();
  return () => leave();
}
