// Sorting, filtering and paging of rows: pure, so that ten thousand rows cost no more than their
// page when they are drawn.

/** What a column sorts by; null = unknown, and last in both directions. */
export type SortValue = string | number | boolean | null | undefined;

/** A column as an order, written as in the address: `calls` rising, `-calls` falling. */
export interface SortOrder {
  readonly column: string;
  readonly falling: boolean;
}

/** Reads `-calls`. */
export function parseOrder(text: string): SortOrder {
  return text.startsWith("-")
    ? { column: text.slice(1), falling: true }
    : { column: text, falling: false };
}

/** The order after a click on the head of a column: numbers begin with the largest. */
export function nextOrder(current: SortOrder, column: string, isNumber: boolean): string {
  if (current.column !== column) return isNumber ? `-${column}` : column;
  return current.falling ? column : `-${column}`;
}

/** Rows in order; equal ones keep their places. */
export function sortRows<Row>(
  rows: readonly Row[],
  keyOf: (row: Row) => SortValue,
  falling: boolean,
): readonly Row[] {
  const direction = falling ? -1 : 1;
  return rows
    .map((row) => ({ row, value: keyOf(row) ?? null }))
    .sort((left, right) => compare(left.value, right.value, direction))
    .map(({ row }) => row);
}

/** Made once: `localeCompare` with options makes one for each pair of rows. */
const IN_ORDER = new Intl.Collator("en", { numeric: true });

function compare(
  left: Exclude<SortValue, undefined>,
  right: Exclude<SortValue, undefined>,
  direction: number,
): number {
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  if (typeof left === "string" && typeof right === "string")
    return direction * IN_ORDER.compare(left, right);
  return direction * (Number(left) - Number(right));
}

/** Rows that have every word of `text` in what they show. */
export function filterRows<Row>(
  rows: readonly Row[],
  textOf: (row: Row) => string,
  text: string,
): readonly Row[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const shown = textOf(row).toLowerCase();
    return words.every((word) => shown.includes(word));
  });
}

/** One page of rows, counted from 0; a page that does not exist is the nearest that does. */
export function pageOf<Row>(rows: readonly Row[], page: number, size: number) {
  const pages = Math.max(1, Math.ceil(rows.length / size));
  const at = Math.min(Math.max(0, Math.trunc(page) || 0), pages - 1);
  return { rows: rows.slice(at * size, (at + 1) * size), page: at, pages };
}
