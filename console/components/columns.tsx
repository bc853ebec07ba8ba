// Columns that tables share: numbers, texts, times and states; and what stands in their cells.
import type { ComponentChildren, JSX } from "preact";
import { count, DASH } from "../format/numbers.ts";
import type { Tone } from "../format/tone.ts";
import { Badge } from "./badge.tsx";
import type { Column } from "./table.tsx";
import { Time } from "./time.tsx";

type Maybe<T> = T | null | undefined;
type More<Row> = Partial<Column<Row>>;

/** A column that does not sort, unless `more` says by what; `more` may be the kind alone. */
export function column<Row>(
  id: string,
  label: string,
  render: (row: Row) => ComponentChildren,
  more: More<Row> | Column<Row>["kind"] = {},
): Column<Row> {
  return { id, label, render, ...(typeof more === "string" ? { kind: more } : more) };
}

/** A column of numbers that sorts by them; what is unknown is a dash. */
export function numberColumn<Row>(
  id: string,
  label: string,
  read: (row: Row) => Maybe<number>,
  format: (value: Maybe<number>) => ComponentChildren = count,
): Column<Row> {
  return { id, label, kind: "number", value: read, render: (row) => format(read(row)) };
}

/** A column of texts that sorts by them, unless `more` says otherwise. */
export function textColumn<Row>(
  id: string,
  label: string,
  read: (row: Row) => Maybe<string | number>,
  more: More<Row> = {},
): Column<Row> {
  return { id, label, value: read, render: (row) => <bdi>{read(row) ?? DASH}</bdi>, ...more };
}

/** A column of names of programs, ids or hashes, that sorts by them. */
export function codeColumn<Row>(
  id: string,
  label: string,
  read: (row: Row) => Maybe<string>,
  more: More<Row> = {},
): Column<Row> {
  return textColumn(id, label, read, {
    render: (row) => <code>{read(row) ?? DASH}</code>,
    ...more,
  });
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

const PURCHASE_TONES = {
  accepted: "warn",
  submitted: "warn",
  settled: "good",
  failed: "bad",
} as const satisfies Readonly<Record<string, Tone>>;

interface PurchaseStanding {
  readonly state: keyof typeof PURCHASE_TONES;
  readonly reason: string | null;
}

/** How a purchase stands. */
export function purchaseState<Row extends PurchaseStanding>(): Column<Row> {
  const word = ({ state }: Row): Word => ({ tone: PURCHASE_TONES[state], word: state });
  return stateColumn("state", "State", word, {
    value: ({ state }) => state,
    note: ({ reason }) => reason,
  });
}
