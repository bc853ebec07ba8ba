// Errors over time, by their kind.
import type { JSX } from "preact";
import { rate } from "../format/numbers.ts";
import { errorsByGroup, type HistorySeries, perSecond } from "../health/series.ts";
import { Card } from "./card.tsx";
import { Graph } from "./graph.tsx";

interface ErrorCardProps {
  readonly title: string;
  /** Beginnings of the steps, in seconds since 1970. */
  readonly times: readonly number[];
  readonly stepS: number;
  readonly series: readonly HistorySeries[];
  /** Kinds that are told apart. */
  readonly kinds: number;
}

/** A card with their graph. */
export function ErrorCard({ title, times, stepS, series, kinds }: ErrorCardProps): JSX.Element {
  const errors = errorsByGroup(series, times.length, kinds);
  return (
    <Card title={title}>
      <Graph
        title={title}
        times={times}
        series={errors.map(({ label, values }) => ({ label, values: perSecond(values, stepS) }))}
        format={rate}
        stacked
        empty="No errors in this time."
      />
    </Card>
  );
}
