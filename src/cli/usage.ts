// What a table of commands says of itself: its usage, and the help of each command.
import type { CliCommand, Commands } from "./command.ts";

/** How many operands a command takes, and which ones; no words = any. */
export interface Operands {
  readonly least: number;
  readonly most: number;
  readonly words: readonly string[];
}

/** Reads the notation of `CliCommand.operands`. */
export function operandsOf(notation = ""): Operands {
  const name = notation.replace(/^\[(.*)\]$/, "$1");
  const atMost = name.endsWith("…") ? Number.POSITIVE_INFINITY : 1;
  return {
    least: name === notation && name !== "" ? 1 : 0,
    most: name === "" ? 0 : atMost,
    words: name.includes("|") ? name.split("|") : [],
  };
}

/** The commands that help names. */
export function listed(commands: Commands): Commands {
  return Object.fromEntries(Object.entries(commands).filter(([, { does }]) => does !== undefined));
}

/** The commands of two words that begin with this one; null = there are none. */
export function inGroup(commands: Commands, word: string): Commands | null {
  const found = Object.entries(commands).filter(([name]) => name.startsWith(`${word} `));
  return found.length === 0 ? null : Object.fromEntries(found);
}

/** One line for each command. */
export function usageOf(commands: Commands): string {
  const lines = Object.entries(listed(commands)).map(([name, command]) => usageLine(name, command));
  return `usage: ${[...lines, "svc help [COMMAND]"].join("\n       ")}`;
}

/** How a command is called. */
export function usageLine(name: string, { operands, options = {} }: CliCommand): string {
  const given = Object.entries(options).map(([key, { value, isRequired }]) => {
    const shown = optionName(key, value);
    return isRequired ? shown : `[${shown}]`;
  });
  return ["svc", name, ...(operands === undefined ? [] : [operands]), ...given].join(" ");
}

/** An option as it is written. */
export function optionName(key: string, value: string | null): string {
  return value === null ? `--${key}` : `--${key} ${value}`;
}

/** What `--help` prints. */
export function helpOf(name: string, command: CliCommand): string {
  const { does = "", options = {}, notes = [] } = command;
  const rows = Object.entries(options).map(([key, { value, meaning }]) => ({
    left: optionName(key, value),
    meaning,
  }));
  const width = Math.max(0, ...rows.map(({ left }) => left.length));
  const lines = rows.map(({ left, meaning }) => `  ${left.padEnd(width)}  ${meaning}`);
  const parts = [`usage: ${usageLine(name, command)}`, does, lines.join("\n"), notes.join("\n")];
  return parts.filter((part) => part !== "").join("\n\n");
}
