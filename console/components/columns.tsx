// Columns of tables by what they show. Imported as a whole: `column.number("calls", "Calls", …)`.
import type { ComponentChildren } from "preact";
import { count, DASH, even } from "../format/text.ts";
import type { Tone } from "../format/tone.ts";
import { Name, StateBadge, Time, type Word } from "./inline.tsx";
import type { Column } from "./table.tsx";

type Maybe<T> = T | null | undefined;
type More<Row> = Partial<Column<Row>>;

/** Does not sort, unless `more` says by what; `more` may be the kind alone. */
export function of<Row>(
  id: string,
  label: string,
  render: (row: Row) => ComponentChildren,
  more: More<Row> | Column<Row>["kind"] = {},
): Column<Row> {
  return { id, label, render, ...(typeof more === "string" ? { kind: more } : more) };
}

/** Numbers, and sorts by them; what is unknown is a dash. */
export function number<Row>(...facts: Parameters<typeof figure<Row>>): Column<Row> {
  return { ...figure(...facts), value: facts[2] };
}

/** Numbers whose decimals agree; does not sort. */
export function figure<Row>(
  id: string,
  label: string,
  read: (row: Row) => Maybe<number>,
  format: (value: Maybe<number>) => ComponentChildren = count,
): Column<Row> {
  const renderIn = (rows: readonly Row[]) => {
    const formatted = even(format, rows.map(read));
    return (row: Row) => formatted(read(row));
  };
  const render = (row: Row): ComponentChildren => format(read(row));
  return { id, label, kind: "number", render, renderIn };
}

/** Texts, and sorts by them, unless `more` says otherwise. */
export function text<Row>(
  id: string,
  label: string,
  read: (row: Row) => Maybe<string | number>,
  more: More<Row> = {},
): Column<Row> {
  return {
    id,
    label,
    value: read,
    render: (row) => <Name text={String(read(row) ?? DASH)} />,
    ...more,
  };
}

/** Names of programs, ids or hashes, and sorts by them. */
export function code<Row>(
  id: string,
  label: string,
  read: (row: Row) => Maybe<string>,
  more: More<Row> = {},
): Column<Row> {
  return text(id, label, read, {
    render: (row) => (
      <code>
        <Name text={read(row) ?? DASH} />
      </code>
    ),
    ...more,
  });
}

/** Moments, and sorts by them. */
export function time<Row>(
  id: string,
  label: string,
  read: (row: Row) => Maybe<string>,
  more: More<Row> = {},
): Column<Row> {
  const value = (row: Row): number => Date.parse(read(row) ?? "");
  return { id, label, value, render: (row) => <Time at={read(row)} />, ...more };
}

/** States; does not sort, unless `more` says by what. */
export function state<Row>(
  id: string,
  label: string,
  read: (row: Row) => Word,
  more: More<Row> = {},
): Column<Row> {
  return { id, label, render: (row) => <StateBadge {...read(row)} />, ...more };
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
export function purchase<Row extends PurchaseStanding>(): Column<Row> {
  const word = ({ state: name }: Row): Word => ({ tone: PURCHASE_TONES[name], word: name });
  return state("state", "State", word, {
    value: (row) => row.state,
    note: ({ reason }) => reason,
  });
}
