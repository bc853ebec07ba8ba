// States over time as a band: equal neighbours are one piece.
import type { JSX } from "preact";
import type { Tone } from "../format/tone.ts";

/** A stretch of time in one state. */
export interface StatePiece {
  /** Index of its first step. */
  readonly from: number;
  readonly steps: number;
  readonly state: string | null;
}

/** Joins equal neighbours. */
export function piecesOf(states: readonly (string | null)[]): readonly StatePiece[] {
  const pieces: StatePiece[] = [];
  for (const [at, state] of states.entries()) {
    const last = pieces.at(-1);
    if (last !== undefined && last.state === state)
      pieces[pieces.length - 1] = { ...last, steps: last.steps + 1 };
    else pieces.push({ from: at, steps: 1, state });
  }
  return pieces;
}

interface BandProps {
  readonly title: string;
  readonly states: readonly (string | null)[];
  readonly toneOf: (state: string) => Tone;
  readonly wordOf: (state: string) => string;
}

/** A band; its pieces tell their state on hover. */
export function StateBand({ title, states, toneOf, wordOf }: BandProps): JSX.Element {
  const pieces = piecesOf(states);
  const seen = new Set(states.filter((state) => state !== null));
  const summary = [...seen].map(wordOf).join(", ");
  return (
    <svg
      class="state-band"
      viewBox={`0 0 ${Math.max(states.length, 1)} 10`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${title}: ${summary === "" ? "unknown" : summary}`}
    >
      {pieces.map(({ from, steps, state }) => (
        <rect
          key={from}
          x={from}
          y="0"
          width={steps}
          height="10"
          class={state === null ? "idle" : toneOf(state)}
        >
          <title>{state === null ? "Unknown" : wordOf(state)}</title>
        </rect>
      ))}
    </svg>
  );
}
