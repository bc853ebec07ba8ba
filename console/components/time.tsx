// A moment, told relative to now; the absolute one shows on hover.
import type { JSX } from "preact";
import { useApp, useTimed } from "../app/app.ts";
import { ago, duration, moment } from "../format/durations.ts";
import { DASH } from "../format/numbers.ts";

interface TimeProps {
  /** Milliseconds or ISO text, by the clock of the service; null = unknown. */
  readonly at: number | string | null | undefined;
}

/** A moment in the past or future. */
export function Time({ at }: TimeProps): JSX.Element {
  const atMs = typeof at === "string" ? Date.parse(at) : (at ?? Number.NaN);
  const text = useTimed((nowMs) => (Number.isFinite(atMs) ? ago(atMs, nowMs) : DASH));
  if (!Number.isFinite(atMs)) return <span>{DASH}</span>;
  return (
    <time dateTime={new Date(atMs).toISOString()} title={moment(atMs)} class="tight">
      {text}
    </time>
  );
}

/** How old a reading of this browser is. */
export function Age({ readAtMs }: { readonly readAtMs: number }): JSX.Element {
  const { clock } = useApp();
  const text = useTimed((nowMs) => duration(nowMs - clock.get().offsetMs - readAtMs));
  return <span>{text}</span>;
}
