// Writes metrics in the text format of Prometheus. Knows no metric of its own.
import { HISTOGRAM_BOUNDS_MS, type Histogram } from "../core/provider/latency.ts";
import type { MetricFamily } from "./metric-families.ts";
import type { Metric } from "./metrics.ts";
import type { NodeLabels } from "./readings.ts";

/** Media type of the text. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Renders samples, in the order of the metrics; `of` = the node that they are of. */
export function familiesText(
  metrics: readonly Metric[],
  families: readonly MetricFamily[],
  of: NodeLabels | null,
): string {
  const lines: string[] = [];
  const node = of === null ? "" : labelText(NODE_LABELS, [of.id, of.region]);
  const samplesOf = new Map(families.map(({ name, samples }) => [name, samples]));
  for (const { name, type, labels, help } of metrics) {
    const samples = samplesOf.get(name) ?? null;
    if (samples === null) continue;
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    for (const [values, value] of samples) {
      const own = labelText(labels, values);
      const text = own === "" || node === "" ? own + node : `${own},${node}`;
      if (typeof value !== "number") lines.push(...histogramLines(name, text, value));
      else lines.push(`${name}${text === "" ? "" : `{${text}}`} ${value}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

/** Labels of every series where several nodes serve together. */
const NODE_LABELS = ["node", "region"] as const;

function histogramLines(
  name: string,
  labels: string,
  { counts, sumMs }: Histogram,
): readonly string[] {
  let sum = 0;
  const bounds = [...HISTOGRAM_BOUNDS_MS.map((boundMs) => String(boundMs / 1000)), "+Inf"];
  const buckets = bounds.map((bound, i) => {
    sum += counts[i] ?? 0;
    return `${name}_bucket{${labels},le="${bound}"} ${sum}`;
  });
  return [...buckets, `${name}_sum{${labels}} ${sumMs / 1000}`, `${name}_count{${labels}} ${sum}`];
}

function labelText(names: readonly string[], values: readonly string[]): string {
  return values.map((value, i) => `${names[i]}="${escaped(value)}"`).join(",");
}

function escaped(value: string): string {
  return value.replace(/[\\"\n]/g, (mark) => (mark === "\n" ? "\\n" : `\\${mark}`));
}
