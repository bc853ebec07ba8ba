// What a command is, its input, its way to fail, and files that may be absent. Knows no command.
import { readFileSync } from "node:fs";

/** How a shell starts this program: a clone of the repository runs its sources. */
export const PROGRAM: string = import.meta.filename.endsWith(".ts") ? "node bin/svc.mjs" : "svc";

/** A command: what it takes and does. Its arguments, help and completion follow. */
export interface CliCommand {
  readonly run: (input: CommandInput) => Promise<void> | void;
  /**
   * The operands as the usage shows them: `FILE`, `[FILE]` where none may be given, `URL…` where
   * several may be, `a|b` for one of these words. Left out: none may follow.
   */
  readonly operands?: string;
  /** Left out: no help names the command; another process of the service starts it. */
  readonly does?: string;
  /** By name. */
  readonly options?: Readonly<Record<string, Option>>;
  /** Lines below the options. */
  readonly notes?: readonly string[];
}

/** An option of a command. */
export interface Option {
  /** Names its value (`FILE` is completed as one); null = it takes none. */
  readonly value: string | null;
  readonly meaning: string;
  readonly isRequired?: true;
}

/** Commands by name: a word, or two where several belong together (`providers check`). */
export type Commands = Readonly<Record<string, CliCommand>>;

/** The arguments and environment of a command. */
export interface CommandInput {
  /** What follows the command's name besides options. */
  readonly operands: readonly string[];
  /** The values of its options, by name; "true" for one that takes no value. */
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
