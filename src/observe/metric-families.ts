// The samples of all metrics as values: collected in one process, merged over the workers of a
// service, kept for workers that have ended, and written in the text format of Prometheus.
import { HISTOGRAM_BOUNDS_MS, type Histogram } from "../core/provider/latency.ts";
import type { Metric, Sample } from "./metrics.ts";
import { type MetricFacts, type NodeLabels, takeReadings } from "./readings.ts";

/** The samples of one metric; null = the instance does not have this metric. */
export interface MetricFamily {
  readonly name: string;
  readonly samples: readonly Sample[] | null;
}

/** Collects the current samples of this process. */
export function collectFamilies(
  metrics: readonly Metric[],
  facts: MetricFacts,
): readonly MetricFamily[] {
  const readings = takeReadings(facts);
  return metrics.map(({ name, collect }) => ({ name, samples: collect(readings) }));
}

/**
 * Merges the samples of several processes into those of the service; no counter is counted twice.
 */
export function mergeFamilies(
  metrics: readonly Metric[],
  parts: readonly (readonly MetricFamily[])[],
): readonly MetricFamily[] {
  const byName = Map.groupBy(parts.flat(), ({ name }) => name);
  return metrics.map((metric) => {
    const present = (byName.get(metric.name) ?? []).flatMap(({ samples }) =>
      samples === null ? [] : [samples],
    );
    if (present.length === 0) return { name: metric.name, samples: null };
    return { name: metric.name, samples: mergeSamples(metric, present.flat()) };
  });
}

/** The part that stays valid when a process ends: its counters. */
export function countsOfFamilies(
  metrics: readonly Metric[],
  families: readonly MetricFamily[],
): readonly MetricFamily[] {
  const counting = new Set(
    metrics.filter(({ type }) => type !== "gauge").map((metric) => metric.name),
  );
  return families.filter(({ name }) => counting.has(name));
}

/** What a process has collected; null = it has not. */
export function parseFamilies(value: unknown): readonly MetricFamily[] | null {
  return Array.isArray(value) ? value : null;
}

function mergeSamples({ merge }: Metric, samples: readonly Sample[]): readonly Sample[] {
  const merged = new Map<string, Sample>();
  for (const sample of samples) {
    const key = sample[0].join("\0");
    const other = merged.get(key);
    merged.set(key, other === undefined ? sample : mergedSample(other, sample, merge));
  }
  return [...merged.values()];
}

const MERGES = {
  max: Math.max,
  min: Math.min,
  sum: (a: number, b: number): number => a + b,
} as const;

function mergedSample([labels, a]: Sample, [, b]: Sample, merge: Metric["merge"]): Sample {
  if (typeof a === "number" && typeof b === "number") return [labels, MERGES[merge ?? "sum"](a, b)];
  if (typeof a === "number" || typeof b === "number") return [labels, a];
  const counts = a.counts.map((n, bucket) => n + (b.counts[bucket] ?? 0));
  return [labels, { counts, sumMs: a.sumMs + b.sumMs }];
}

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
