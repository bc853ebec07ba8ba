// Columns that tables share: numbers, texts, times and states; and what stands in their cells.
import type { ComponentChildren, JSX } from "preact";
import { count, DASH } from "../format/numbers.ts";
import type { Tone } from "../format/tone.ts";
import { Badge } from "./badge.tsx";
import type { Column } from "./table.tsx";
import { Time } from "./time.tsx";

type Maybe<T> = T | null | undefined;
type More<Row> = Partial<Column<Row>>;

/** A column of numbers that sorts by them; what is unknown is a dash. */
export function numberColumn<Row>(
  id: string,
  label: string,
  read: (row: Row) => Maybe<number>,
  format: (value: Maybe<number>) => ComponentChildren = count,
): Column<Row> {
  return { id, label, kind: "number", value: read, render: (row) => format(read(row)) };
}

/** A column of numbers as texts; it does not sort. */
export function plainNumber<Row>(
  id: string,
  label: string,
  render: (row: Row) => ComponentChildren,
): Column<Row> {
  return { id, label, kind: "number", render };
}

/** A column of texts that sorts by them, unless `more` says otherwise. */
export function textColumn<Row>(
  id: string,
  label: string,
  read: (row: Row) => Maybe<string | number>,
  more: More<Row> = {},
): Column<Row> {
  return { id, label, value: read, render: (row) => read(row) ?? DASH, ...more };
}

/** A column of moments that sorts by them. */
export function timeColumn<Row>(
  id: string,
  label: string,
  read: (row: Row) => Maybe<string>,
  more: More<Row> = {},
): Column<Row> {
  const value = (row: Row): number => Date.parse(read(row) ?? "");
  return { id, label, value, render: (row) => <Time at={read(row)} />, ...more };
}

/** How a state is shown. */
export interface Word {
  readonly tone: Tone;
  readonly word: string;
}

/** A column of states. */
export function stateColumn<Row>(
  id: string,
  label: string,
  read: (row: Row) => Word,
  more: More<Row> = {},
): Column<Row> {
  return { id, label, render: (row) => <StateBadge {...read(row)} />, ...more };
}

/** A state in a coloured pill. */
export function StateBadge({ tone, word }: Word): JSX.Element {
  return <Badge tone={tone}>{word}</Badge>;
}

interface NotedProps {
  readonly note: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A text with a smaller line below it. */
export function Noted({ note, children }: NotedProps): JSX.Element {
  return (
    <span class="wrap-anywhere">
      {children}
      <small>{note}</small>
    </span>
  );
}

interface KeyNameProps {
  readonly name: string;
  readonly prefix: string;
  readonly isDeleted: boolean;
}

/** A key as it is told from others. */
export function KeyName({ name, prefix, isDeleted }: KeyNameProps): JSX.Element {
  return (
    <>
      <bdi>{name === "" ? "Unnamed" : name}</bdi> <span class="mono muted small">{prefix}…</span>
      {isDeleted ? <span class="muted small"> deleted</span> : null}
    </>
  );
}

/** The states of purchases. */
export const PURCHASE_TONES = {
  accepted: "warn",
  submitted: "warn",
  settled: "good",
  failed: "bad",
} as const satisfies Readonly<Record<string, Tone>>;
