// A table that sorts, filters and turns pages; its order and filter stand in the address. On a
// phone its rows are cards.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Resource } from "../api/resource.ts";
import { useQuery } from "../app/app.ts";
import { count } from "../format/text.ts";
import { Card } from "./card.tsx";
import { Button } from "./controls.tsx";
import { Empty, Loaded } from "./page-state.tsx";
import {
  filterRows,
  nextOrder,
  pageOf,
  parseOrder,
  type SortOrder,
  type SortValue,
  sortRows,
} from "./table-rows.ts";

/** A column. */
export interface Column<Row> {
  readonly id: string;
  readonly label: string;
  readonly render: (row: Row) => ComponentChildren;
  /** A smaller line below; empty = none. */
  readonly note?: (row: Row) => ComponentChildren;
  /** How it is rendered among these rows, so that their decimals agree; omitted = as always. */
  readonly renderIn?: (rows: readonly Row[]) => (row: Row) => ComponentChildren;
  /** What it sorts by; omitted = it does not sort. */
  readonly value?: (row: Row) => SortValue;
  /** `number` = aligned to the right; `lead`, `wide` = a line of its own on a phone. */
  readonly kind?: "number" | "lead" | "wide" | "tight";
  /** An explanation of the head. */
  readonly title?: string;
}

interface TableProps<Row> {
  /** Its name in the address, before `.sort` and `.find`. */
  readonly name: string;
  /** What it lists, for readers of screens. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** As `-calls`; "" = as given. */
  readonly order?: string;
  /** The text that a filter looks through; omitted = no filter. */
  readonly textOf?: (row: Row) => string;
  /** What a click or Enter on a row does. */
  readonly open?: (row: Row) => void;
  /** What is shown below a row after a click or Enter on it, until the next; null = nothing. */
  readonly expand?: (row: Row) => ComponentChildren;
  /** What is always shown below a row; null = nothing. */
  readonly detail?: (row: Row) => ComponentChildren;
  readonly empty?: string;
  /** Most rows that are shown at once on a desk. */
  readonly pageRows?: number;
  /** `dense` = on a desk a row is one line, and what is too long ends in dots. */
  readonly look?: "dense";
}

const PAGE_ROWS = 100;
/** There a row is a card. */
const PHONE_ROWS = 20;
/** With fewer rows a filter is more to look at than the rows. */
const MIN_FILTERED_ROWS = 8;

/** A table of rows. */
export function Table<Row>(props: TableProps<Row>) {
  const { name, rows, columns, textOf, pageRows = PAGE_ROWS, look = "" } = props;
  const [orderText, setOrder] = useQuery(`${name}.sort`);
  const [find, setFind] = useQuery(`${name}.find`);
  const [page, setPage] = useState(0);
  const order = parseOrder(orderText === "" ? (props.order ?? "") : orderText);
  const shown = useMemo(() => {
    const found = textOf === undefined ? rows : filterRows(rows, textOf, find);
    const column = columns.find(({ id }) => id === order.column);
    return column?.value === undefined ? found : sortRows(found, column.value, order.falling);
  }, [rows, columns, textOf, find, order.column, order.falling]);
  const evened = useMemo(
    () => columns.map((each) => (each.renderIn ? { ...each, render: each.renderIn(rows) } : each)),
    [rows, columns],
  );
  const size = window.matchMedia("(max-width: 900px)").matches ? PHONE_ROWS : pageRows;
  const current = pageOf(shown, page, size);
  const { page: at } = current;
  // Other rows come first then, which a later page does not show.
  const toFirstPage =
    (change: (text: string) => void) =>
    (text: string): void => {
      setPage(0);
      change(text);
    };
  if (rows.length === 0) return <Empty title={props.empty ?? "Nothing here yet"} />;
  const hasFilter = textOf !== undefined && (rows.length >= MIN_FILTERED_ROWS || find !== "");
  return (
    <>
      {hasFilter ? <Filter {...props} find={find} setFind={toFirstPage(setFind)} /> : null}
      <div class="table-wrap">
        {/* Roles are named: a phone shows the table as a list, and its meaning stays. */}
        <table class={`table ${look}`} role="table" aria-label={props.caption}>
          <Head columns={columns} order={order} setOrder={toFirstPage(setOrder)} />
          <Body {...props} columns={evened} rows={current.rows} />
        </table>
      </div>
      {shown.length === 0 ? <Empty title="No row matches the filter" /> : null}
      <Pager
        of="the table"
        back={at > 0 ? () => setPage(at - 1) : null}
        next={at < current.pages - 1 ? () => setPage(at + 1) : null}
      >
        {count(at * size + 1)}–{count(at * size + current.rows.length)} of {count(shown.length)}
      </Pager>
    </>
  );
}

interface TableCardProps<Row> extends Omit<TableProps<Row>, "caption"> {
  /** Of the card; also the caption, where none is given. */
  readonly title?: string;
  readonly caption?: string;
  readonly lead?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** What the rows are read from; omitted = they are there. */
  readonly resource?: Resource<unknown>;
}

/** A card with a table, or with the state of what the table is read from. */
export function TableCard<Row>(props: TableCardProps<Row>) {
  const { title, lead, actions, resource, caption = title ?? "", ...table } = props;
  const shown = <Table {...table} caption={caption} />;
  return (
    <Card {...{ title, lead, actions }} flush>
      {resource === undefined ? shown : <Loaded resource={resource}>{() => shown}</Loaded>}
    </Card>
  );
}

interface FilterProps {
  readonly caption: string;
  readonly find: string;
  readonly setFind: (text: string) => void;
}

function Filter({ caption, find, setFind }: FilterProps) {
  return (
    <div class="table-filter">
      <input
        class="input narrow"
        type="search"
        value={find}
        placeholder="Filter"
        aria-label={`Filter: ${caption}`}
        onInput={(event) => setFind(event.currentTarget.value)}
      />
    </div>
  );
}

interface HeadProps<Row> {
  readonly columns: readonly Column<Row>[];
  readonly order: SortOrder;
  readonly setOrder: (order: string) => void;
}

function Head<Row>({ columns, order, setOrder }: HeadProps<Row>) {
  const direction = order.falling ? "descending" : "ascending";
  return (
    <thead role="rowgroup">
      <tr role="row">
        {columns.map((column) => (
          <th
            key={column.id}
            role="columnheader"
            scope="col"
            class={column.kind ?? ""}
            title={column.title}
            aria-sort={order.column === column.id ? direction : undefined}
          >
            {column.value === undefined ? (
              column.label
            ) : (
              <button
                type="button"
                class="sort"
                onClick={() => setOrder(nextOrder(order, column.id, column.kind === "number"))}
              >
                {column.label}
              </button>
            )}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Body<Row>(props: TableProps<Row>) {
  const { rows, keyOf, columns, open, expand, detail = () => null } = props;
  const [opened, setOpened] = useState<string | null>(null);
  const toggle = (row: Row): void => setOpened(opened === keyOf(row) ? null : keyOf(row));
  return (
    <tbody role="rowgroup" onKeyDown={moveByKeys}>
      {rows.map((row) => (
        <RowView
          key={keyOf(row)}
          {...{ row, columns }}
          open={expand === undefined ? open : toggle}
          expands={expand !== undefined}
          detail={(keyOf(row) === opened ? expand?.(row) : detail(row)) ?? null}
        />
      ))}
    </tbody>
  );
}

interface RowProps<Row> {
  readonly row: Row;
  readonly columns: readonly Column<Row>[];
  readonly open: ((row: Row) => void) | undefined;
  /** True = what it opens to is shown below it; false = elsewhere. */
  readonly expands: boolean;
  /** Null = it is not open. */
  readonly detail: ComponentChildren;
}

function RowView<Row>({ row, columns, open, expands, detail }: RowProps<Row>) {
  const attributes =
    open === undefined
      ? {}
      : {
          class: `can-open${expands ? " expands" : ""}${detail === null ? "" : " is-open"}`,
          tabIndex: 0,
          onClick: (event: MouseEvent) => {
            if (!isOnControl(event.target)) open(row);
          },
          onKeyDown: (event: KeyboardEvent) => {
            if (event.key === "Enter" && !isOnControl(event.target)) open(row);
          },
        };
  return (
    <>
      <tr role="row" {...attributes}>
        {columns.map((column) => (
          <td
            key={column.id}
            role="cell"
            class={column.kind ?? ""}
            data-label={column.kind === "lead" ? undefined : column.label}
          >
            {cellOf(row, column)}
          </td>
        ))}
      </tr>
      {detail === null ? null : (
        <tr role="row" class="detail">
          <td role="cell" colSpan={columns.length}>
            {detail}
          </td>
        </tr>
      )}
    </>
  );
}

function cellOf<Row>(row: Row, { render, note }: Column<Row>) {
  if (note === undefined) return render(row);
  return (
    <span>
      {render(row)}
      <small>{note(row)}</small>
    </span>
  );
}

/** Whether a click was meant for a link or button inside of a row. */
function isOnControl(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("a, button, input, select, summary") !== null;
}

/** Arrow keys move between rows that can be opened. */
function moveByKeys(event: KeyboardEvent): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const row =
    event.target instanceof Element ? event.target.closest<HTMLElement>("tr[tabindex]") : null;
  if (row === null || row !== event.target) return;
  const rows = [...(row.parentElement?.querySelectorAll<HTMLElement>("tr[tabindex]") ?? [])];
  const at = rows.indexOf(row);
  const next = rows[at + (event.key === "ArrowDown" ? 1 : -1)];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}

interface PagerProps {
  /** What the pages list. */
  readonly of: string;
  /** Which rows these are. */
  readonly children?: ComponentChildren;
  /** Goes a page back; null = this is the first one. */
  readonly back: (() => void) | null;
  readonly next: (() => void) | null;
}

/** Moves between pages; nothing where there is but one. */
export function Pager({ of, children, back, next }: PagerProps) {
  if (back === null && next === null) return null;
  return (
    <nav class="pager" aria-label={`Pages of ${of}`}>
      <span>{children}</span>
      <span class="page-actions">
        <Button look="small" disabled={back === null} press={() => back?.()}>
          Back
        </Button>
        <Button look="small" disabled={next === null} press={() => next?.()}>
          Next
        </Button>
      </span>
    </nav>
  );
}
