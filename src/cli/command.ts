// The input of every command, and how a command refuses. Knows no command.

/** The arguments and surroundings of one command. */
export interface CommandInput {
  /** Arguments after the name of the command. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
}

/** Prints why the command cannot be carried out and ends the process with exit code 1. */
export function refuse(message: string): never {
  console.error(message);
  process.exit(1);
}

/** The platform's code of an error, for messages that must not repeat its text. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
