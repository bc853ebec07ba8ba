// What rules across several settings share: their input, how they report, and how they find
// settings in data that has not been validated.
import { isRecord } from "../core/fields.ts";
import type { TableFault } from "./config-fault.ts";

/** Keys and indexes from the root of the file to a setting. */
export type RulePath = TableFault["path"];

/** Reports a broken rule; `at` = whether the key or the value of the last path step is meant. */
export type ReportFault = (path: RulePath, message: string, at?: TableFault["at"]) => void;

/** What the rules check. */
export interface RuleInput {
  readonly data: unknown;
  readonly devnet: boolean;
  /** What the rules need to know of the environment. */
  readonly around: {
    readonly production: boolean;
    /** Whether the command line asks for local nodes. */
    readonly devnet: boolean;
    readonly databaseUrl: unknown;
  };
}

/** A setting that exists in the data. */
export interface Found {
  readonly path: RulePath;
  /** The last step of the path. */
  readonly key: string;
  readonly value: unknown;
}

/** The settings at a path; `*` stands for every key of a map, `[]` for every item of a list. */
export function found(data: unknown, pattern: string): readonly Found[] {
  let places: readonly Found[] = [{ path: [], key: "", value: data }];
  for (const step of pattern.split("."))
    places = places.flatMap(({ path, value }) =>
      membersOf(value, step).map(([key, member]) => ({
        path: [...path, key],
        key: String(key),
        value: member,
      })),
    );
  return places;
}

function membersOf(
  value: unknown,
  step: string,
): readonly (readonly [key: string | number, value: unknown])[] {
  if (step === "[]") return Array.isArray(value) ? [...value.entries()] : [];
  if (!isRecord(value)) return [];
  if (step === "*") return Object.entries(value);
  return Object.hasOwn(value, step) ? [[step, value[step]]] : [];
}

/** The value of a setting; undefined = the setting is absent. */
export function valueAt(data: unknown, path: string): unknown {
  return found(data, path)[0]?.value;
}

/** A key as shown in a message; keys never come from variables. */
export function shown(key: string): string {
  return `\`${key.slice(0, 64)}\``;
}
