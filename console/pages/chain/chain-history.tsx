// The providers of a chain over time: latency, share, errors, head lag, and circuits as bands; of
// all providers together, or of one.

import { useCall, useQuery } from "../../app/app.ts";
import { Card } from "../../components/card.tsx";
import { Choices, Notice, named, Select } from "../../components/controls.tsx";
import { ErrorCard, GraphCard, type GraphSeries } from "../../components/graph.tsx";
import type { Word } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { count, milliseconds, share } from "../../format/text.ts";
import { CIRCUITS } from "../../health/judge.ts";
import { hoursNotice, pollMsOf, rangeIn, rangesOf } from "../../health/ranges.ts";
import {
  busiest,
  errorRates,
  type History,
  type HistorySeries,
  outcomeRates,
  trimHistory,
} from "../../health/series.ts";

interface ChainHistoryProps {
  readonly profile: string;
  readonly chain: string;
}

/** More lines than this cannot be told from each other. */
const MAX_LINES = 6;
const MAX_POINTS = 360;

/** The graphs of a chain. */
export function ChainHistory({ profile, chain }: ChainHistoryProps) {
  const [rangeText, setRange] = useQuery("range");
  const [chosen, setChosen] = useQuery("provider");
  const range = rangeIn(rangeText);
  const query = { range, profile, chain, points: MAX_POINTS };
  const history = useCall("GET /api/v1/history", { query }, pollMsOf(range));
  const { data } = history;
  const names = data?.series.flatMap(({ provider }) => provider ?? []) ?? [];
  return (
    <>
      <div class="page-head">
        <h2>Over time</h2>
        <div class="page-actions">
          <Select
            label="Provider"
            hidesName
            value={chosen}
            options={[{ value: "", label: "All providers" }, ...named([...new Set(names)])]}
            choose={setChosen}
          />
          <Choices label="Time" options={rangesOf(data, range)} value={range} choose={setRange} />
        </div>
      </div>
      <Loaded resource={history}>
        {(known) => (
          <>
            <Notice tone="warn">{hoursNotice(known)}</Notice>
            <Graphs history={trimHistory(known)} chosen={chosen} />
          </>
        )}
      </Loaded>
    </>
  );
}

interface GraphsProps {
  readonly history: History;
  /** "" = all providers. */
  readonly chosen: string;
}

function Graphs({ history, chosen }: GraphsProps) {
  const { times, step_s: stepS, series } = history;
  const providers = busiest(series, series.length).filter(
    ({ provider }) => chosen === "" || provider === chosen,
  );
  const calls = chosen === "" ? series.find(({ kind }) => kind === "chain") : undefined;
  const lines = providers.slice(0, MAX_LINES);
  const lead =
    providers.length > lines.length ? `The ${MAX_LINES} providers asked most.` : undefined;
  return (
    <>
      <div class="grid">
        <GraphCard
          title={chosen === "" ? "Latency p95, ms" : "Latency, ms"}
          series={latencyLines(lines, chosen)}
          format={milliseconds}
          {...{ times, lead }}
        />
        <GraphCard
          title="Share of traffic"
          series={linesOf(lines, (each) => each.share)}
          format={share}
          stacked
          {...{ times, lead }}
        />
        {calls === undefined ? null : (
          <ErrorCard
            title="Calls that were not answered, a second"
            times={times}
            series={outcomeRates(history, calls)}
          />
        )}
        <ErrorCard
          title="Errors of providers a second, by kind"
          times={times}
          series={errorRates(history, providers, MAX_LINES)}
        />
        <GraphCard
          title="Blocks behind"
          series={linesOf(lines, (each) => each.lag_blocks)}
          format={count}
          whole
          {...{ times, lead }}
        />
      </div>
      <CircuitBands times={times} stepS={stepS} series={providers} />
    </>
  );
}

function linesOf(
  series: readonly HistorySeries[],
  read: (series: HistorySeries) => GraphSeries["values"] | null,
): readonly GraphSeries[] {
  return series.map((each) => ({ label: each.provider ?? "", values: read(each) ?? [] }));
}

/** Of one provider three percentiles, of several the 95th of each. */
function latencyLines(series: readonly HistorySeries[], chosen: string): readonly GraphSeries[] {
  const [only] = series;
  if (chosen === "" || only === undefined) return linesOf(series, (each) => each.p95_ms);
  return [
    { label: "p50", values: only.p50_ms },
    { label: "p95", values: only.p95_ms },
    { label: "p99", values: only.p99_ms },
  ];
}

interface CircuitBandsProps {
  readonly times: readonly number[];
  readonly stepS: number;
  readonly series: readonly HistorySeries[];
}

/** By the names of the API, which may know more of them than this page. */
const STATES: Readonly<Record<string, Word>> = CIRCUITS;

/** The bands of all providers that are given. */
function CircuitBands({ times, stepS, series }: CircuitBandsProps) {
  const [first] = times;
  const last = times.at(-1);
  if (first === undefined || last === undefined || series.length === 0) return null;
  const between = ` from ${clockText(first)} to ${clockText(last + stepS)}`;
  return (
    <Card title="Circuits" lead={`The worst state of each step${between}.`}>
      <div class="bands">
        {series.map(({ provider, circuit }) => (
          <div key={provider} class="band-row">
            <span class="wrap-anywhere">{provider}</span>
            <StateBand title={`Circuit of ${provider ?? ""}`} states={circuit ?? []} />
          </div>
        ))}
      </div>
    </Card>
  );
}

function clockText(seconds: number): string {
  const options = { hour: "2-digit", minute: "2-digit" } as const;
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", options);
}

interface BandProps {
  readonly title: string;
  readonly states: readonly (string | null)[];
}

/** A band; its pieces, a stretch of time in one state each, tell their state on hover. */
function StateBand({ title, states }: BandProps) {
  const starts = states.flatMap((state, at) => (state === states[at - 1] ? [] : [at]));
  const wordOf = (state: string): string => STATES[state]?.word ?? state;
  const seen = [...new Set(states)].flatMap((state) => (state === null ? [] : wordOf(state)));
  return (
    <svg
      class="state-band"
      width="100%"
      height="14"
      viewBox={`0 0 ${Math.max(states.length, 1)} 10`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${title}: ${seen.join(", ") || "unknown"}`}
    >
      {starts.map((from, nth) => {
        const state = states[from] ?? null;
        const width = (starts[nth + 1] ?? states.length) - from;
        return (
          <rect
            key={from}
            x={from}
            {...{ width, height: 10 }}
            class={STATES[state ?? ""]?.tone ?? "idle"}
          >
            <title>{state === null ? "Unknown" : wordOf(state)}</title>
          </rect>
        );
      })}
    </svg>
  );
}
