// The columns of tables, each stated once: the statements that create a table and the types of its
// rows follow from them. A column of a released step is never changed: the stores in use have it as
// it was. A new one is marked `later` and added by a step of its own.
import type { Generated } from "kysely";

/** A column: its definition in SQL, and the type of its values. */
export interface Column<Value> {
  readonly definition: string;
  /** True = the step that creates the table does not have it. */
  readonly isLater?: true;
  /** Never set: keeps the type. */
  readonly value?: Value;
}

/** The columns of a table by name. */
export type Columns = Readonly<Record<string, Column<unknown>>>;

/** A row of a table with these columns. */
export type Row<Table extends Columns> = {
  readonly [Name in keyof Table]: Table[Name] extends Column<infer Value> ? Value : never;
};

/** The rows of several tables. */
export type Rows<Tables extends Readonly<Record<string, Columns>>> = {
  readonly [Name in keyof Tables]: Row<Tables[Name]>;
};

/** A column as SQL defines it. */
export function column<Value>(definition: string): Column<Value> {
  return { definition };
}

export const text = column<string>("text not null");
export const int = column<bigint>("bigint not null");
export const real = column<number>("double precision not null");
/** A text that identifies its row. */
export const key = column<string>("text primary key");
/** Counts from 0, also for a version of the program that does not know it. */
export const tally = column<Generated<bigint>>("bigint default 0 not null");

/** A text that is one of a few. */
export function oneOf<Value extends string>(): Column<Value> {
  return column(text.definition);
}

/** A key that is one of a few. */
export function keyOneOf<Value extends string>(): Column<Value> {
  return column(key.definition);
}

export function orNull<Value>({ definition }: Column<Value>): Column<Value | null> {
  return column(definition.replace(" not null", ""));
}

export function unique<Value>({ definition }: Column<Value>): Column<Value> {
  return column(`${definition} unique`);
}

/** A column whose values satisfy a condition. */
export function checked<Value>({ definition }: Column<Value>, condition: string): Column<Value> {
  return column(`${definition} check (${condition})`);
}

/** A column that holds ids of another table. */
export function idOf<Value>({ definition }: Column<Value>, table: string): Column<Value> {
  return column(`${definition} references "${table}" ("id")`);
}

/** A column that a later step adds. */
export function later<Value>({ definition }: Column<Value>): Column<Value> {
  return { definition, isLater: true };
}

/** A table as `create` names it; `rules` = its keys and constraints in SQL. */
export function creationOf(name: string, columns: Columns, rules: readonly string[]): string {
  const first = Object.entries(columns).filter(([, { isLater }]) => isLater !== true);
  const lines = [...first.map(([column, { definition }]) => `"${column}" ${definition}`), ...rules];
  return `table "${name}" (${lines.join(", ")})`;
}

/** The statements that add the later columns of a table. */
export function additionsTo(table: string, columns: Columns): readonly string[] {
  return Object.entries(columns).flatMap(([name, { definition, isLater }]) =>
    isLater === true ? [`alter table "${table}" add column "${name}" ${definition}`] : [],
  );
}
