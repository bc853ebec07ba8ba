// The circuits of providers over time, one band each.
import type { JSX } from "preact";
import { Card } from "../../components/card.tsx";
import { StateBand } from "../../components/state-band.tsx";
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
