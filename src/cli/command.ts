// The input of every command, its way to fail, and files that may be absent. Knows no command.
import { readFileSync } from "node:fs";

/** The arguments and environment of a command. */
export interface CommandInput {
  /** What follows the command's name; empty = the command has none. */
  readonly operand: string;
  /** The values of its options, by name. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
}

/** Prints the reason of a failure and exits with code 1. */
export function refuse(message: string): never {
  console.error(message);
  process.exit(1);
}

/** The `code` of a platform error, for messages that must not include its text. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

/** The text of a file; null = it cannot be read. */
export function textOf(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}
