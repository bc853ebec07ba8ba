// The providers of a chain over time: latency, share, errors, head lag, and circuits as bands; of
// all providers together, or of one.
import type { JSX } from "preact";
import { useResource } from "../../api/resource.ts";
import { useApp, useQuery } from "../../app/app.ts";
import { Card, Choices } from "../../components/card.tsx";
import { ErrorCard } from "../../components/error-card.tsx";
import { Graph } from "../../components/graph.tsx";
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
  const { client } = useApp();
  const [rangeText, setRange] = useQuery("range");
  const [chosen, setChosen] = useQuery("provider");
  const range = rangeIn(rangeText);
  const history = useResource(`history ${profile} ${chain} ${range}`, pollMsOf(range), (signal) =>
    client.call(
      "GET /api/v1/history",
      { query: { range, profile, chain, points: MAX_POINTS } },
      signal,
    ),
  );
  const { data } = history;
  const series = data?.series ?? [];
  return (
    <>
      <div class="section-head">
        <h2>Over time</h2>
        <div class="page-actions">
          <ProviderChoice series={series} value={chosen} choose={setChosen} />
          <Choices label="Time" options={rangesOf(data, range)} value={range} choose={setRange} />
        </div>
      </div>
      <Loaded resource={history}>
        {(known) => {
          const notice = hoursNotice(known);
          return (
            <>
              {notice === null ? null : <p class="notice warn">{notice}</p>}
              <Graphs history={trimHistory(known)} chosen={chosen} />
            </>
          );
        }}
      </Loaded>
    </>
  );
}

interface ProviderChoiceProps {
  readonly series: readonly HistorySeries[];
  readonly value: string;
  readonly choose: (provider: string) => void;
}

function ProviderChoice({ series, value, choose }: ProviderChoiceProps): JSX.Element {
  const names = series.flatMap(({ provider }) => (provider === null ? [] : [provider]));
  return (
    <select
      class="input"
      aria-label="Provider"
      value={value}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      <option value="">All providers</option>
      {[...new Set(names)].map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
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
        <Card title={chosen === "" ? "Latency p95, ms" : "Latency, ms"} lead={lead}>
          <Graph
            title="Latency in milliseconds"
            times={times}
            series={latencyLines(lines, chosen)}
            format={milliseconds}
          />
        </Card>
        <Card title="Share of traffic" lead={lead}>
          <Graph
            title="Share of traffic"
            times={times}
            series={linesOf(lines, (each) => each.share)}
            format={share}
            stacked
          />
        </Card>
        <ErrorCard
          title="Errors a second, by kind"
          times={times}
          rates={errorRates(history, providers, MAX_LINES)}
        />
        <Card title="Blocks behind" lead={lead}>
          <Graph
            title="Blocks behind the newest"
            times={times}
            series={linesOf(lines, (each) => each.lag_blocks)}
            format={count}
            whole
          />
        </Card>
      </div>
      <CircuitBands times={times} stepS={stepS} series={providers} />
    </>
  );
}

type Values = readonly (number | null)[];
interface Line {
  readonly label: string;
  readonly values: Values;
}

function linesOf(
  series: readonly HistorySeries[],
  read: (series: HistorySeries) => Values | null,
): readonly Line[] {
  return series.map((each) => ({ label: each.provider ?? "", values: read(each) ?? [] }));
}

/** Of one provider three percentiles, of several the 95th of each. */
function latencyLines(series: readonly HistorySeries[], chosen: string): readonly Line[] {
  const [only] = series;
  if (chosen === "" || only === undefined) return linesOf(series, (each) => each.p95_ms);
  return [
    { label: "p50", values: only.p50_ms },
    { label: "p95", values: only.p95_ms },
    { label: "p99", values: only.p99_ms },
  ];
}
