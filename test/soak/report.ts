// The figures of a soak as a table, and what in them breaks a promise. Measures nothing.

import type { BoundsCase } from "./bounds.ts";
import type { Figures } from "./figures.ts";

/** What broke a promise, one line each. */
export function faultsOf(
  acts: readonly Figures[],
  cases: readonly BoundsCase[],
): readonly string[] {
  return [
    ...acts.flatMap(({ breaches: { gaps, duplicates, disorder, words }, wrong }) => [
      ...(gaps + duplicates + disorder > 0
        ? [`${gaps} gaps, ${duplicates} duplicates, ${disorder} order breaks`]
        : []),
      ...words,
      ...wrong,
    ]),
    ...cases.flatMap(({ name, wrong }) => (wrong === null ? [] : [`${name}: ${wrong}`])),
  ];
}

/** All figures, one line each. */
export function tableOf(acts: readonly Figures[], cases: readonly BoundsCase[]): string {
  const total = (of: (it: Figures) => number): number => acts.reduce((sum, it) => sum + of(it), 0);
  const forced = new Map<string, number>();
  for (const { failovers } of acts)
    for (const [force, count] of Object.entries(failovers))
      forced.set(force, (forced.get(force) ?? 0) + count);
  const silences = acts.flatMap((it) => it.silencesMs).sort((left, right) => left - right);
  const rows: readonly (readonly [string, string | number])[] = [
    [
      "forced failovers",
      total((it) => Object.values(it.failovers).reduce((sum, count) => sum + count, 0)),
    ],
    ...[...forced].map(([force, count]) => [`  ${force}`, count] as const),
    [
      "disturbances (lost or late notifications)",
      `${total((it) => it.disturbances)} (${total((it) => it.lostNotifications)} lost)`,
    ],
    ["reorgs", total((it) => it.reorgs)],
    ["blocks", total((it) => it.blocks)],
    ["heads delivered", total((it) => it.heads)],
    [
      "logs delivered (of these taken back)",
      `${total((it) => it.logs)} (${total((it) => it.takenBack)})`,
    ],
    ["pending transactions delivered", total((it) => it.pending)],
    ["changes of providers, counted for each subscription", total((it) => it.streamFailovers)],
    ["blocks filled", total((it) => it.filledBlocks)],
    [
      "calls (of these refused: sockets only, every circuit open)",
      `${total((it) => it.calls)} (${total((it) => it.refused)})`,
    ],
    ["gaps", total((it) => it.breaches.gaps)],
    ["duplicates", total((it) => it.breaches.duplicates)],
    ["order breaks", total((it) => it.breaches.disorder)],
    [
      "cases past the bounds that ended in 1011, or did not concern",
      `${cases.filter((it) => it.wrong === null).length} of ${cases.length}`,
    ],
    [
      "time without heads around a failover, median / longest",
      `${at(silences, 0.5)} / ${at(silences, 1)} ms`,
    ],
    [
      "resident memory at start, middle and end of each act",
      acts
        .map((it) => `${mb(it.rssStartBytes)} → ${mb(it.rssMiddleBytes)} → ${mb(it.rssEndBytes)}`)
        .join(", "),
    ],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}

function at(sorted: readonly number[], share: number): string {
  return (
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  ).toFixed(0);
}

function mb(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(0)} MB`;
}
