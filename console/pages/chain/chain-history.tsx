// The providers of a chain over time: latency, share, errors, head lag, with incidents and states
// as bands; of all providers together, or of one.

import { useCall, useQuery } from "../../app/app.ts";
import { Card } from "../../components/card.tsx";
import { Notice, named, Select } from "../../components/controls.tsx";
import { ErrorCard, GraphCard, type GraphSeries } from "../../components/graph.tsx";
import { IncidentCard } from "../../components/incident-list.tsx";
import type { Word } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { KnownSince, RangePicker, useRange } from "../../components/range-picker.tsx";
import { count, milliseconds, share } from "../../format/text.ts";
import { worstTone } from "../../format/tone.ts";
import { hoursNotice, pollMsOf } from "../../health/ranges.ts";
import {
  busiest,
  errorRates,
  type History,
  type HistorySeries,
  outcomeRates,
  trimHistory,
} from "../../health/series.ts";
import { bandsOf, CIRCUITS, type Incident, STATES } from "../../health/states.ts";

interface ChainHistoryProps {
  readonly profile: string;
  readonly chain: string;
}

/** More lines than this cannot be told from each other. */
const MAX_LINES = 6;
const MAX_POINTS = 360;
const MAX_INCIDENTS = 200;

/** The graphs of a chain. */
export function ChainHistory({ profile, chain }: ChainHistoryProps) {
  const [chosen, setChosen] = useQuery("provider");
  const range = useRange();
  const query = { ...range, profile, chain, points: MAX_POINTS };
  const history = useCall("GET /api/v1/history", { query }, pollMsOf(range));
  const { data } = history;
  const { from, to } = range;
  const incidentQuery = { profile, chain, from, to, limit: MAX_INCIDENTS };
  const known = useCall(
    "GET /api/v1/incidents",
    { query: incidentQuery },
    pollMsOf({ range: "hour" }),
  );
  const incidents = (known.data?.incidents ?? []).filter(
    ({ provider }) => chosen === "" || provider === null || provider === chosen,
  );
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
          <RangePicker history={data} />
        </div>
      </div>
      <Loaded resource={history}>
        {(known) => (
          <>
            <Notice tone="warn">{hoursNotice(known)}</Notice>
            <KnownSince history={known} />
            <Graphs history={trimHistory(known)} {...{ chosen, incidents }} />
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
  readonly incidents: readonly Incident[];
}

function Graphs({ history, chosen, incidents }: GraphsProps) {
  const { times, step_s: stepS, series } = history;
  const names = [...new Set(series.flatMap(({ provider }) => provider ?? []))].sort();
  const providers = busiest(series, series.length)
    .filter(({ provider }) => chosen === "" || provider === chosen)
    .map((each) => ({ ...each, color: colorOf(names.indexOf(each.provider ?? "")) }));
  const calls = chosen === "" ? series.find(({ kind }) => kind === "chain") : undefined;
  const since = incidents.filter(({ ended_at: end }) => isWithin(end, times));
  const bands = bandsOf(since);
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
          {...{ times, lead, bands }}
        />
        <GraphCard
          title="Share of traffic"
          series={linesOf(lines, (each) => each.share)}
          format={share}
          stacked
          {...{ times, lead, bands }}
        />
        {calls === undefined ? null : (
          <ErrorCard
            title="Calls that were not answered, a second"
            {...{ times, bands }}
            series={outcomeRates(history, calls)}
          />
        )}
        <ErrorCard
          title="Errors of providers a second, by kind"
          {...{ times, bands }}
          series={errorRates(history, providers, MAX_LINES)}
        />
        <GraphCard
          title="Blocks behind"
          series={linesOf(lines, (each) => each.lag_blocks)}
          format={count}
          whole
          {...{ times, lead, bands }}
        />
      </div>
      <StateBands {...{ times, stepS }} series={providers} incidents={since} />
      <IncidentCard
        title="Incidents"
        lead="What was wrong in this time, those that began last first."
        incidents={since}
      />
    </>
  );
}

/** A provider keeps its colour on all graphs, and while others are hidden. */
type Colored = HistorySeries & { readonly color: string };

function colorOf(nth: number): string {
  return `--series-${(nth % MAX_LINES) + 1}`;
}

function linesOf(
  series: readonly Colored[],
  read: (series: HistorySeries) => GraphSeries["values"] | null,
): readonly GraphSeries[] {
  return series.map((each) => {
    const { provider, color } = each;
    return { label: provider ?? "", color, values: read(each) ?? [] };
  });
}

/** Of one provider three percentiles, of several the 95th of each. */
function latencyLines(series: readonly Colored[], chosen: string): readonly GraphSeries[] {
  const [only] = series;
  if (chosen === "" || only === undefined) return linesOf(series, (each) => each.p95_ms);
  return [
    { label: "p50", values: only.p50_ms },
    { label: "p95", values: only.p95_ms },
    { label: "p99", values: only.p99_ms },
  ];
}

/** Whether what ended then (null = it lasts) was there in these times. */
function isWithin(end: string | null, [first]: readonly number[]): boolean {
  return end === null || Date.parse(end) / 1_000 >= (first ?? 0);
}

interface StateBandsProps {
  readonly times: readonly number[];
  readonly stepS: number;
  readonly series: readonly HistorySeries[];
  readonly incidents: readonly Incident[];
}

/** By the names of the API, which may know more of them than this page. */
const WORDS: Readonly<Record<string, Word>> = { ...CIRCUITS, ...STATES };

/** The bands of all providers that are given. */
function StateBands({ times, stepS, series, incidents }: StateBandsProps) {
  const [first] = times;
  const last = times.at(-1);
  if (first === undefined || last === undefined || series.length === 0) return null;
  const between = ` from ${clockText(first)} to ${clockText(last + stepS)}`;
  return (
    <Card title="States" lead={`Incidents, and the worst circuit of each other step${between}.`}>
      <div class="bands">
        {series.map(({ provider, circuit }) => (
          <div key={provider} class="band-row">
            <span class="wrap-anywhere">{provider}</span>
            <StateBand
              title={`State of ${provider ?? ""}`}
              states={statesOf(
                times,
                circuit ?? [],
                incidents.filter((each) => each.provider === provider),
              )}
            />
          </div>
        ))}
      </div>
    </Card>
  );
}

/** The state of each step: that of an incident, the worst of several, or else the circuit. */
function statesOf(
  times: readonly number[],
  circuits: readonly (string | null)[],
  incidents: readonly Incident[],
): readonly (string | null)[] {
  const bands = bandsOf(incidents).map((band, at) => ({ ...band, state: incidents[at]?.state }));
  return times.map((time, at) => {
    const open = bands.filter(({ from, to }) => from <= time && (to === null || time < to));
    const worst = worstTone(open.map(({ tone }) => tone));
    return open.find(({ tone }) => tone === worst)?.state ?? circuits[at] ?? null;
  });
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
  const wordOf = (state: string): string => WORDS[state]?.word ?? state;
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
            class={WORDS[state ?? ""]?.tone ?? "idle"}
          >
            <title>{state === null ? "Unknown" : wordOf(state)}</title>
          </rect>
        );
      })}
    </svg>
  );
}
