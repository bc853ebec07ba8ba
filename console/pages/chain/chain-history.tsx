// The providers of a chain over time: latency, share, errors, head lag, and circuits as bands; of
// all providers together, or of one.
import type { JSX } from "preact";
import { useCall, useQuery } from "../../app/app.ts";
import { Choices, Notice, named, Select } from "../../components/controls.tsx";
import { ErrorCard, GraphCard, type GraphSeries } from "../../components/graph.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { count, milliseconds, share } from "../../format/numbers.ts";
import { hoursNotice, pollMsOf, rangeIn, rangesOf } from "../../health/ranges.ts";
import {
  busiest,
  errorRates,
  type History,
  type HistorySeries,
  trimHistory,
} from "../../health/series.ts";
import { CircuitBands } from "./circuit-bands.tsx";

interface ChainHistoryProps {
  readonly profile: string;
  readonly chain: string;
}

/** More lines than this cannot be told from each other. */
const MAX_LINES = 6;
const MAX_POINTS = 360;

/** The graphs of a chain. */
export function ChainHistory({ profile, chain }: ChainHistoryProps): JSX.Element {
  const [rangeText, setRange] = useQuery("range");
  const [chosen, setChosen] = useQuery("provider");
  const range = rangeIn(rangeText);
  const query = { range, profile, chain, points: MAX_POINTS };
  const history = useCall("GET /api/v1/history", { query }, pollMsOf(range));
  const { data } = history;
  const names = data?.series.flatMap(({ provider }) => provider ?? []) ?? [];
  return (
    <>
      <div class="section-head">
        <h2>Over time</h2>
        <div class="page-actions">
          <Select
            label="Provider"
            name="hidden"
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

function Graphs({ history, chosen }: GraphsProps): JSX.Element {
  const { times, step_s: stepS, series } = history;
  const providers = busiest(series, series.length).filter(
    ({ provider }) => chosen === "" || provider === chosen,
  );
  const lines = providers.slice(0, MAX_LINES);
  const lead =
    providers.length > lines.length ? `The ${MAX_LINES} providers asked most.` : undefined;
  return (
    <>
      <div class="grid grid-2">
        <GraphCard
          title={chosen === "" ? "Latency p95, ms" : "Latency, ms"}
          summary="Latency in milliseconds"
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
        <ErrorCard
          title="Errors a second, by kind"
          times={times}
          series={errorRates(history, providers, MAX_LINES)}
        />
        <GraphCard
          title="Blocks behind"
          summary="Blocks behind the newest"
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
