// Columns that several tables share.
import { count } from "../format/numbers.ts";
import type { Column } from "./table.tsx";

type Read<Row> = (row: Row) => number | null | undefined;

/** A column of numbers that sorts by them; what is unknown is a dash. */
export function numberColumn<Row>(
  id: string,
  label: string,
  read: Read<Row>,
  format: (value: number | null | undefined) => string = count,
): Column<Row> {
  return { id, label, kind: "number", value: read, render: (row) => format(read(row)) };
}
