// The providers of a chain over time: latency, share, errors, head lag, with incidents and states
// as bands; of all providers together, or of one.

import type { Resource } from "../api/resource.ts";
import { count, milliseconds, share } from "../format/text.ts";
import { worstTone } from "../format/tone.ts";
import { hoursNotice } from "../health/ranges.ts";
import {
  busiest,
  errorRates,
  type History,
  type HistorySeries,
  outcomeRates,
  trimHistory,
} from "../health/series.ts";
import { bandsOf, CIRCUITS, type Incident, STATES } from "../health/states.ts";
import { Card } from "./card.tsx";
import { Notice } from "./controls.tsx";
import { ErrorCard, GraphCard, type GraphSeries } from "./graph.tsx";
import type { Word } from "./inline.tsx";
import { Loaded } from "./page-state.tsx";
import { KnownSince } from "./range-picker.tsx";

/** More lines than this cannot be told from each other. */
const MAX_LINES = 6;

interface GraphsProps {
  readonly history: History;
  /** "" = all providers. */
  readonly chosen: string;
  readonly incidents: readonly Incident[];
}

/** The graphs, once history was read. */
export function ProviderGraphs({
  resource,
  ...props
}: Omit<GraphsProps, "history"> & { readonly resource: Resource<History> }) {
  return (
    <Loaded resource={resource}>
      {(known) => (
        <>
          <Notice tone="warn">{hoursNotice(known)}</Notice>
          <KnownSince history={known} />
          <Graphs history={trimHistory(known)} {...props} />
        </>
      )}
    </Loaded>
  );
}

function Graphs({ history, chosen, incidents }: GraphsProps) {
  const { times, step_s: stepS, series } = history;
  const names = [...new Set(series.flatMap(({ provider }) => provider ?? []))].sort();
  const providers = busiest(series, series.length)
    .filter(({ provider }) => chosen === "" || provider === chosen)
    .map((each) => ({ ...each, color: colorOf(names.indexOf(each.provider ?? "")) }));
  const calls = chosen === "" ? series.find(({ kind }) => kind === "chain") : undefined;
  const lines = providers.slice(0, MAX_LINES);
  const bands = bandsOf(incidents);
  // Read of one provider alone, history does not tell its share.
  const isShareKnown = chosen === "" || lines.some((each) => each.share?.some(Number.isFinite));
  const classes = chosen === "" ? [] : series.filter(({ kind }) => kind === "class");
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
        {classes.length === 0 ? null : (
          <GraphCard
            title="Latency p95 by class of methods, ms"
            series={classes.map((each, at) => ({
              label: (each.class ?? "").replaceAll("_", " "),
              color: colorOf(at),
              values: each.p95_ms,
            }))}
            format={milliseconds}
            {...{ times, bands }}
          />
        )}
        {isShareKnown && (
          <GraphCard
            title="Share of traffic"
            series={linesOf(lines, (each) => each.share)}
            format={share}
            stacked
            {...{ times, lead, bands }}
          />
        )}
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
      <StateBands {...{ times, stepS, incidents }} series={providers} />
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
