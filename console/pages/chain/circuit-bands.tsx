// The circuits of providers over time, one band each.
import type { JSX } from "preact";
import { Card } from "../../components/card.tsx";
import type { Tone } from "../../format/tone.ts";
import { CIRCUITS } from "../../health/judge.ts";
import type { HistorySeries } from "../../health/series.ts";

interface CircuitBandsProps {
  readonly times: readonly number[];
  readonly stepS: number;
  readonly series: readonly HistorySeries[];
}

/** By the names of the API, which may know more of them than this page. */
const STATES: Readonly<Record<string, { readonly tone: Tone; readonly word: string }>> = CIRCUITS;

/** The bands of all providers that are given. */
export function CircuitBands({ times, stepS, series }: CircuitBandsProps): JSX.Element | null {
  const [first] = times;
  const last = times.at(-1);
  if (first === undefined || last === undefined || series.length === 0) return null;
  return (
    <Card title="Circuits" lead="The worst state of each step.">
      <div class="bands">
        {series.map(({ provider, circuit }) => (
          <div key={provider} class="band-row">
            <span class="wrap-anywhere">{provider}</span>
            <StateBand
              title={`Circuit of ${provider ?? ""}`}
              states={circuit ?? []}
              toneOf={(state) => STATES[state]?.tone ?? "idle"}
              wordOf={(state) => STATES[state]?.word ?? state}
            />
          </div>
        ))}
        <div class="band-row band-ends muted small" aria-hidden="true">
          <span />
          <span>
            <span>{clockText(first)}</span>
            <span>{clockText(last + stepS)}</span>
          </span>
        </div>
      </div>
    </Card>
  );
}

function clockText(seconds: number): string {
  const options = { hour: "2-digit", minute: "2-digit" } as const;
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", options);
}

/** A stretch of time in one state. */
interface StatePiece {
  /** Index of its first step. */
  readonly from: number;
  readonly steps: number;
  readonly state: string | null;
}

/** Joins equal neighbours. */
function piecesOf(states: readonly (string | null)[]): readonly StatePiece[] {
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
function StateBand({ title, states, toneOf, wordOf }: BandProps): JSX.Element {
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
