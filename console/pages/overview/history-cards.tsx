// What the service did over the last hour or day: figures, and graphs.
import type { JSX } from "preact";
import { type Resource, useResource } from "../../api/resource.ts";
import { useApp } from "../../app/app.ts";
import { Card, Figure, Figures } from "../../components/card.tsx";
import { ErrorCard } from "../../components/error-card.tsx";
import { Graph } from "../../components/graph.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { compact, milliseconds, rate, share } from "../../format/numbers.ts";
import { hoursNotice, pollMsOf, type Range } from "../../health/ranges.ts";
import {
  errorRates,
  errorShare,
  type History,
  type HistorySeries,
  latest,
  perSecond,
  total,
  trimHistory,
} from "../../health/series.ts";

const MAX_GROUPS = 6;
const MAX_POINTS = 360;

/** History of the whole service, kept current. */
export function useServiceHistory(range: Range): Resource<History> {
  const { client } = useApp();
  return useResource(`history ${range}`, pollMsOf(range), (signal) =>
    client.call("GET /api/v1/history", { query: { range, points: MAX_POINTS } }, signal),
  );
}

/** Figures and graphs of the whole service. */
export function HistoryCards({ history }: { readonly history: Resource<History> }): JSX.Element {
  return (
    <Loaded resource={history}>
      {(answer) => {
        const data = trimHistory(answer);
        const service = data.series.find(({ kind }) => kind === "service");
        const notice = hoursNotice(data);
        if (service === undefined) return null;
        return (
          <>
            {notice === null ? null : <p class="notice warn">{notice}</p>}
            <ServiceHistory history={data} service={service} />
          </>
        );
      }}
    </Loaded>
  );
}

interface ServiceHistoryProps {
  readonly history: History;
  readonly service: HistorySeries;
}

function ServiceHistory({ history, service }: ServiceHistoryProps): JSX.Element {
  const { times, step_s: stepS } = history;
  return (
    <>
      <HistoryFigures service={service} />
      <div class="grid grid-2">
        <Card title="Calls a second">
          <Graph
            title="Calls a second"
            times={times}
            series={[{ label: "Calls", values: perSecond(service.calls, stepS) }]}
            format={rate}
          />
        </Card>
        <Card title="Latency, ms">
          <Graph
            title="Latency in milliseconds"
            times={times}
            series={[
              { label: "p50", values: service.p50_ms },
              { label: "p95", values: service.p95_ms },
              { label: "p99", values: service.p99_ms },
            ]}
            format={milliseconds}
          />
        </Card>
        <ErrorCard
          title="Calls that failed, a second"
          times={times}
          rates={errorRates(history, [service], MAX_GROUPS)}
        />
        <Card title="Added by the service, ms">
          <Graph
            title="Milliseconds that the service itself added"
            times={times}
            series={[
              { label: "p50", values: service.added_p50_ms ?? [] },
              { label: "p95", values: service.added_p95_ms ?? [] },
            ]}
            format={(value) => value.toFixed(2)}
          />
        </Card>
      </div>
    </>
  );
}

function HistoryFigures({ service }: { readonly service: HistorySeries }): JSX.Element {
  const added = latest(service.added_p50_ms);
  return (
    <Figures>
      <Figure label="Calls" value={compact(total(service.calls))} />
      <Figure label="Failed" value={share(errorShare(service))} />
      <Figure label="p50 now" value={milliseconds(latest(service.p50_ms))} unit="ms" />
      <Figure label="p95 now" value={milliseconds(latest(service.p95_ms))} unit="ms" />
      <Figure label="p99 now" value={milliseconds(latest(service.p99_ms))} unit="ms" />
      <Figure label="Added now, p50" value={added === null ? "–" : added.toFixed(2)} unit="ms" />
    </Figures>
  );
}
