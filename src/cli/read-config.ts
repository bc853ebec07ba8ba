// Reads the configuration that a command names, and the flags that stand above it.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type ConfigResult, loadConfig } from "../config/config.ts";
import { type CommandInput, codeOf, refuse } from "./command.ts";
import { usage } from "./help.ts";

/** A configuration file with what overrides it. */
export interface ConfigSource extends Pick<CommandInput, "env"> {
  readonly file: string;
  readonly flags: Readonly<Record<string, string | undefined>>;
}

/** Loads a configuration; a file that cannot be read is a fault of the configuration. */
export function readConfig({ file, flags, env }: ConfigSource): ConfigResult {
  let text: Uint8Array;
  try {
    text = readFileSync(file);
  } catch (error) {
    const message = `cannot be read (${codeOf(error)}); name a configuration file with --config`;
    return { ok: false, faults: [{ file, line: 0, column: 0, path: "", message }] };
  }
  return loadConfig({ file, text, env, flags });
}

/** Parses the flags that override settings, and those that only one command has. */
export function readFlags(
  args: readonly string[],
  more: Readonly<Record<string, { readonly type: "string" }>> = {},
): Readonly<Record<string, string | undefined>> {
  const option = { type: "string" } as const;
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        config: option,
        port: option,
        host: option,
        workers: option,
        "log-level": option,
        ...more,
      },
    });
    return { ...values };
  } catch (error) {
    return refuse(`svc: ${error instanceof Error ? error.message : String(error)}\n${usage()}`);
  }
}
