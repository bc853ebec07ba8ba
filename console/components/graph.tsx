// Values over time, drawn by uPlot. Colours come from the style sheet, so that both themes fit.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { useApp } from "../app/app.ts";
import { queryText } from "../app/router.ts";
import { axisTexts, DASH, rate } from "../format/text.ts";
import type { Tone } from "../format/tone.ts";
import { rangeBetween, rangeParameters } from "../health/ranges.ts";
import "uplot/dist/uPlot.min.css";
import { Card } from "./card.tsx";

/** One line of a graph. */
export interface GraphSeries {
  readonly label: string;
  /** As many as there are times; null = unknown. */
  readonly values: readonly (number | null)[];
  /** Name of its colour in the style sheet; left out = the next one of those for lines. */
  readonly color?: string;
}

/** A stretch of time in which something was wrong, behind the lines of a graph. */
export interface GraphBand {
  /** Seconds since 1970; null = it lasts. */
  readonly from: number;
  readonly to: number | null;
  readonly tone: Tone;
  readonly label: string;
}

interface GraphProps {
  /** What it shows, for readers of screens. */
  readonly title: string;
  /** Beginnings of the steps, in seconds since 1970. */
  readonly times: readonly number[];
  readonly series: readonly GraphSeries[];
  readonly format: (value: number) => string;
  /** True = the series lie on top of each other. */
  readonly stacked?: boolean;
  /** True = each step has a bar, beside those of other series. */
  readonly bars?: boolean;
  /** True = only whole numbers stand at the axis. */
  readonly whole?: boolean;
  readonly bands?: readonly GraphBand[] | undefined;
  /** True = each line of the scale is ten times the one below: peaks do not flatten the rest. */
  readonly logarithmic?: boolean;
  /** What it means that nothing was measured. */
  readonly empty?: string;
}

/** A graph with what a reader can do in it. */
interface LiveGraph extends GraphProps {
  /** Shows the time between two others (s) on the whole page. */
  readonly zoom: (fromS: number, toS: number) => void;
  /** Opens the calls that ended in between. */
  readonly open: (fromS: number, toS: number) => void;
}

const HEIGHT = 168;
/** A selection that is narrower (px) was a click. */
const LEAST_DRAG = 6;
const SERIES_COLORS = 6;

interface GraphCardProps extends GraphProps {
  readonly lead?: string | undefined;
}

/** A card with a graph. */
export function GraphCard({ lead, ...graph }: GraphCardProps) {
  return (
    <Card title={graph.title} lead={lead}>
      <Graph {...graph} />
    </Card>
  );
}

/** Errors, or calls that were not answered, a second over time, by their kind. */
export function ErrorCard(props: Pick<GraphProps, "title" | "times" | "series" | "bands">) {
  return <GraphCard {...props} format={rate} stacked empty="No errors in this time." />;
}

/**
 * A graph that is as wide as its place. Dragging over it shows that time on the whole page; a click
 * opens the calls of the step.
 */
export function Graph(props: GraphProps) {
  const { router } = useApp();
  const { times, series } = props;
  const { empty = "Nothing was measured in this time." } = props;
  const place = useRef<HTMLDivElement>(null);
  const hasValues = series.some(({ values }) => values.some(isKnown));
  const shape = [hasValues, ...series.map(({ label, color }) => `${label} ${color}`)].join("|");
  const plot = useRef<uPlot | null>(null);
  const live: LiveGraph = {
    ...props,
    zoom: (fromS, toS) => router.setQuery(rangeParameters(rangeBetween(fromS * 1e3, toS * 1e3))),
    open: (fromS, toS) =>
      router.go(`/requests${queryText({ ...rangeBetween(fromS * 1e3, toS * 1e3) })}`),
  };
  const latest = useRef(live);
  latest.current = live;
  useEffect(() => {
    const parent = place.current;
    if (parent === null) return;
    return keepDrawn(parent, plot, () => latest.current);
  }, [shape]);
  useEffect(() => plot.current?.setData(dataOf(props)), [times, series, props.bands]);
  return (
    <div class="graph">
      <div ref={place} role="img" aria-label={summaryOf(props)} />
      {hasValues ? null : <p class="small muted">{empty}</p>}
    </div>
  );
}

/**
 * Draws, and draws anew when the place gets another width or the theme changes, until the returned
 * function is called.
 */
function keepDrawn(
  parent: HTMLElement,
  plot: { current: uPlot | null },
  props: () => LiveGraph,
): () => void {
  const draw = (): void => {
    plot.current?.destroy();
    plot.current = new uPlot(optionsOf(parent, props), dataOf(props()), parent);
  };
  draw();
  const sizes = new ResizeObserver(() => {
    const width = parent.clientWidth;
    if (width > 0 && plot.current !== null && plot.current.width !== width)
      plot.current.setSize({ width, height: HEIGHT });
  });
  sizes.observe(parent);
  const themes = new MutationObserver(draw);
  themes.observe(document.documentElement, { attributeFilter: ["style"] });
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", draw);
  return () => {
    sizes.disconnect();
    themes.disconnect();
    scheme.removeEventListener("change", draw);
    plot.current?.destroy();
    plot.current = null;
  };
}

/** How the graph is drawn; `props` are asked again for the values in the legend, which change. */
function optionsOf(parent: HTMLElement, props: () => LiveGraph): uPlot.Options {
  const { series, format, stacked = false, whole = false } = props();
  const { logarithmic = false, bars = false } = props();
  const color = (name: string): string => colorOf(parent, name);
  const stroke = (at: number): string =>
    color(series[at]?.color ?? `--series-${(at % SERIES_COLORS) + 1}`);
  const axis: uPlot.Axis = {
    stroke: color("--muted"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
    font: `11px ${getComputedStyle(parent).fontFamily}`,
  };
  return {
    width: Math.max(parent.clientWidth, 200),
    height: HEIGHT,
    padding: [10, 28, 0, 0],
    bands: stacked ? series.slice(1).map((_, at) => ({ series: [at + 1, at + 2] })) : [],
    cursor: { y: false, points: { size: 6 }, drag: { setScale: false }, ...cursorOf(props()) },
    hooks: {
      drawClear: [(plot) => drawBands(plot, props().bands ?? [], color)],
      ...(bars
        ? {}
        : {
            ready: [(plot) => openOnClick(plot, props)],
            setSelect: [(plot) => zoom(plot, props())],
          }),
    },
    legend: {
      show: series.length > 0,
      live: true,
      markers: { width: 0, fill: (_, at) => stroke(at - 1) },
    },
    scales: {
      x: { range: () => rangeOf(props()) },
      // Without values a logarithmic scale has no lines.
      y: logarithmic && series.some(({ values }) => values.some(isKnown)) ? LOGARITHMIC : LINEAR,
    },
    axes: [
      { ...axis, size: 26, space: 70, values: TIME_LABELS, grid: { show: false } },
      {
        ...axis,
        size: 56,
        space: 34,
        values: (_, splits) => axisTexts(splits, format),
        ...(whole ? { incrs: WHOLE_STEPS } : {}),
      },
    ],
    series: [
      { label: "", value: (_, seconds) => (seconds === null ? "Latest" : clockText(seconds)) },
      ...series.map(({ label }, at) => ({
        label,
        stroke: stroke(at),
        width: 1.5,
        points: { size: 5, fill: stroke(at), filter: lonePoints },
        value: (_: uPlot, __: number, ___: number, index: number | null) =>
          shownValue(props().series[at], index, format),
        ...(stacked ? { fill: seeThrough(stroke(at)) } : {}),
        ...(bars ? barOf(at, series.length, stroke(at)) : {}),
      })),
    ],
  };
}

/** Draws what was wrong behind everything else, each stretch from top to bottom. */
function drawBands(
  { ctx, bbox, valToPos }: uPlot,
  bands: readonly GraphBand[],
  color: (name: string) => string,
): void {
  const right = bbox.left + bbox.width;
  // One shape for each colour: where incidents overlap, lines are still seen.
  for (const [tone, alike] of Map.groupBy(bands, (band) => band.tone)) {
    const shape = new Path2D();
    for (const { from, to } of alike) {
      const start = Math.max(bbox.left, valToPos(from, "x", true));
      const end = to === null ? right : Math.min(right, valToPos(to, "x", true));
      if (end > start) shape.rect(start, bbox.top, Math.max(end - start, LEAST_BAND), bbox.height);
    }
    ctx.fillStyle = seeThrough(color(tone === "idle" ? "--muted" : `--${tone}`), BAND_OPACITY);
    ctx.fill(shape);
  }
}

const BAND_OPACITY = 0.14;
/** In pixels of the canvas: a short incident is seen. */
const LEAST_BAND = 2;

const LINEAR: uPlot.Scale = { range: (_, __, max) => [0, max > 0 ? max * 1.12 : 1] };
const LOGARITHMIC: uPlot.Scale = { distr: 3 };

/** The cursors of all graphs of a page move together. */
function cursorOf({ bars = false }: GraphProps): uPlot.Cursor {
  return bars ? {} : { sync: { key: "time" } };
}

/** Shows the time that the reader has selected. */
function zoom(plot: uPlot, { zoom: show }: LiveGraph): void {
  const { left, width } = plot.select;
  if (width < LEAST_DRAG) return;
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  show(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
}

/** Opens the calls of the step that is clicked. What ends a selection is no click. */
function openOnClick(plot: uPlot, props: () => LiveGraph): void {
  plot.over.addEventListener("click", ({ pointerType }) => {
    const { times, open } = props();
    const [last = 0, next = 0] = times.slice(-2);
    const fromS = times[plot.cursor.idx ?? -1];
    // A finger that scrolls ends as a click.
    if (fromS !== undefined && pointerType !== "touch") open(fromS, fromS + (next - last));
  });
}

const DAY_S = 86_400;
const STEP_S = 10;

/** From the first to the last time, with space around bars and around a time that stands alone. */
function rangeOf({ times, bars = false }: GraphProps): [number, number] {
  const [first = 0] = times;
  const last = times.at(-1) ?? 0;
  const around = times.length > 1 ? 0 : STEP_S;
  const space = bars ? DAY_S / 2 : around;
  return [first - space, last + space];
}

const MAX_BAR_PX = 40;

/** Days as bars: one in the middle, or the first of two to the left. */
function barOf(at: number, count: number, fill: string): Partial<uPlot.Series> {
  const side = at === 0 ? -1 : 1;
  const align = count === 1 ? 0 : side;
  const paths = uPlot.paths.bars?.({ size: [0.8 / count, MAX_BAR_PX], align });
  return { fill, width: 0, points: { show: false }, ...(paths === undefined ? {} : { paths }) };
}

/** A colour of the style sheet as it is in the present theme, as `rgb(…)`. */
function colorOf(parent: HTMLElement, name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  parent.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** A colour `rgb(…)` through which what lies below is seen. */
function seeThrough(color: string, opacity = 0.33): string {
  return color.replace("rgb(", "rgba(").replace(")", `, ${opacity})`);
}

/** A value between two unknown ones makes no line: it is drawn as a point. */
const lonePoints: uPlot.Series.Points.Filter = (plot, at) => {
  const values = plot.data[at] ?? [];
  const indexes: number[] = [];
  for (const [index, value] of values.entries())
    if (isKnown(value) && !isKnown(values[index - 1]) && !isKnown(values[index + 1]))
      indexes.push(index);
  return indexes;
};

function isKnown(value: number | null | undefined): boolean {
  return value !== null && value !== undefined;
}

const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000];

const TIME_LABELS: uPlot.Axis.Values = [
  [86_400, "{D} {MMM}", null, null, null, null, null, null, 1],
  [3_600, "{HH}:{mm}", null, null, null, null, null, null, 1],
  [60, "{HH}:{mm}", null, null, null, null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1],
];

function clockText(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}

function shownValue(
  series: GraphSeries | undefined,
  index: number | null,
  format: (value: number) => string,
): string {
  const values = series?.values ?? [];
  const value = (index === null ? values.at(-1) : values[index]) ?? null;
  return value === null ? DASH : format(value);
}

/**
 * Columns for uPlot. Stacked series are added up, the first one on top of all others; where all of
 * them are unknown nothing is drawn.
 */
function dataOf({ times, series, stacked = false }: GraphProps): uPlot.AlignedData {
  const columns = series.map(({ values }) => [...values]);
  if (stacked)
    for (const [at, column] of [...columns.entries()].reverse())
      for (const [index, value] of column.entries()) {
        if (series.every(({ values }) => !isKnown(values[index]))) continue;
        column[index] = (value ?? 0) + (columns[at + 1]?.[index] ?? 0);
      }
  return [[...times], ...columns];
}

/** The last value of each line, and what was wrong. */
function summaryOf({ title, series, format, bands = [] }: GraphProps): string {
  const latest = series.map(({ label, values }) => {
    const value = values.at(-1) ?? null;
    return `${label} ${value === null ? "unknown" : format(value)}`;
  });
  const wrong = bands.length === 0 ? "" : ` Wrong: ${bands.map(({ label }) => label).join("; ")}.`;
  return `${title}. Latest: ${latest.join(", ")}.${wrong}`;
}
