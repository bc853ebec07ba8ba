// Errors over time, by their kind.
import type { JSX } from "preact";
import { rate } from "../format/numbers.ts";
import { Card } from "./card.tsx";
import { Graph, type GraphSeries } from "./graph.tsx";

interface ErrorCardProps {
  readonly title: string;
  /** Beginnings of the steps, in seconds since 1970. */
  readonly times: readonly number[];
  /** Errors a second, a line for each kind. */
  readonly rates: readonly GraphSeries[];
}

/** A card with their graph. */
export function ErrorCard({ title, times, rates }: ErrorCardProps): JSX.Element {
  return (
    <Card title={title}>
      <Graph
        title={title}
        times={times}
        series={rates}
        format={rate}
        stacked
        empty="No errors in this time."
      />
    </Card>
  );
}
