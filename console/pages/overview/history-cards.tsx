// What the service did over the last hour or day: figures, and graphs.

import { useMemo } from "preact/hooks";
import type { Resource } from "../../api/resource.ts";
import { type Figure, figures, inUnit } from "../../components/card.tsx";
import { Notice } from "../../components/controls.tsx";
import { ErrorCard, type GraphBand, GraphCard } from "../../components/graph.tsx";
import { Time } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { KnownSince, rangeWords, useRange } from "../../components/range-picker.tsx";
import {
  compact,
  DASH,
  duration,
  hundredths,
  milliseconds,
  rate,
  share,
} from "../../format/text.ts";
import { OUTCOMES } from "../../health/outcomes.ts";
import { hoursNotice } from "../../health/ranges.ts";
import {
  type History,
  type HistorySeries,
  latest,
  outcomeRates,
  outcomeShare,
  perSecond,
  topReasons,
  total,
  trimHistory,
} from "../../health/series.ts";
import { bandsOf, type Incident } from "../../health/states.ts";

const MAX_REASONS = 3;

interface HistoryCardsProps {
  readonly history: Resource<History>;
}

/** Figures of the whole service, or why there are none. */
export function HistoryTiles({ history }: HistoryCardsProps) {
  return (
    <Loaded resource={history}>
      {(answer) => {
        const shown = trimHistory(answer);
        const all = serviceIn(answer);
        const service = serviceIn(shown);
        if (service === undefined || all === undefined) return null;
        return (
          <>
            <Notice tone="warn">{hoursNotice(answer)}</Notice>
            <KnownSince history={answer} />
            <HistoryFigures history={shown} {...{ service, all }} />
          </>
        );
      }}
    </Loaded>
  );
}

/** Graphs of the whole service, as soon as there is history. */
export function HistoryGraphs({
  history: { data },
  incidents,
}: HistoryCardsProps & { readonly incidents: readonly Incident[] }) {
  const bands = useMemo(() => bandsOf(incidents), [incidents]);
  const history = data === null ? null : trimHistory(data);
  const service = history === null ? undefined : serviceIn(history);
  if (history === null || service === undefined) return null;
  return <ServiceHistory {...{ history, service, bands }} />;
}

function serviceIn({ series }: History): HistorySeries | undefined {
  return series.find(({ kind }) => kind === "service");
}

interface ServiceHistoryProps {
  readonly history: History;
  readonly service: HistorySeries;
}

function ServiceHistory({
  history,
  service,
  bands,
}: ServiceHistoryProps & { readonly bands: readonly GraphBand[] }) {
  const { times, step_s: stepS } = history;
  return (
    <div class="grid">
      <GraphCard
        title="Calls a second"
        {...{ times, bands }}
        series={[{ label: "Calls", values: perSecond(service.calls, stepS) }]}
        format={rate}
      />
      <GraphCard
        title="Latency, ms"
        logarithmic
        {...{ times, bands }}
        series={[
          { label: "p50", values: service.p50_ms },
          { label: "p95", values: service.p95_ms },
          { label: "p99", values: service.p99_ms },
        ]}
        format={milliseconds}
      />
      <ErrorCard
        title="Calls that were not answered, a second"
        {...{ times, bands }}
        series={outcomeRates(history, service)}
      />
      <GraphCard
        title="Added by the service, ms"
        {...{ times, bands }}
        series={[
          { label: "p50", values: service.added_p50_ms ?? [] },
          { label: "p95", values: service.added_p95_ms ?? [] },
        ]}
        format={hundredths}
      />
    </div>
  );
}

interface HistoryFiguresProps extends ServiceHistoryProps {
  /** The series with the step that runs: no call is left out of a sum. */
  readonly all: HistorySeries;
}

function HistoryFigures({ history, service, all }: HistoryFiguresProps) {
  return figures([
    ["Calls", compact(total(all.calls)), rangeWords(useRange())],
    outcomeFigure(all, "failed"),
    outcomeFigure(all, "refused"),
    ["Hidden failures", compact(total(all.hidden_failures ?? [])), "by failover"],
    latestFigure("p50", history, service.p50_ms),
    latestFigure("p95", history, service.p95_ms),
    latestFigure("p99", history, service.p99_ms),
    latestFigure("Added, p50", history, service.added_p50_ms, hundredths),
  ]);
}

/** The part of calls that ended so, in its colour, and the most frequent reasons. */
function outcomeFigure(series: HistorySeries, outcome: "failed" | "refused"): Figure {
  const { word, tone } = OUTCOMES[outcome];
  const part = outcomeShare(series, outcome);
  const reasons = topReasons(series, outcome, MAX_REASONS);
  return [
    word,
    <span key="share" class={part !== null && part > 0 ? `${tone} toned` : ""}>
      {share(part)}
    </span>,
    reasons.map(({ text, calls }) => `${text} ${compact(calls)}`).join(", "),
  ];
}

/** The latest milliseconds that were measured, and of when they are. */
function latestFigure(
  label: string,
  { times, step_s: stepS }: History,
  values: readonly (number | null)[] | null,
  format: (ms: number) => string = milliseconds,
): Figure {
  const found = latest(values);
  if (found === null) return [label, inUnit(DASH, "ms")];
  const { value, step } = found;
  const endMs = ((times[step] ?? 0) + stepS) * 1_000;
  const isLast = step === times.length - 1;
  const note = isLast ? `in the last ${duration(stepS * 1_000)}` : <Time at={endMs} />;
  return [label, inUnit(format(value), "ms"), note];
}
