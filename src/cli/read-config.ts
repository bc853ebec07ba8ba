// Reads the configuration file of a command and applies the command's flags on top.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type ConfigResult, loadConfig } from "../config/config.ts";
import { errorText } from "../core/fields.ts";
import { type CommandInput, codeOf, refuse } from "./command.ts";
import { usage } from "./help.ts";

/** A configuration file with the flags and variables that override it. */
export interface ConfigSource extends Pick<CommandInput, "env"> {
  readonly file: string;
  readonly flags: Readonly<Record<string, string | undefined>>;
}

/** A configuration, and what tells the text of its file from another; null = it was not read. */
export type ReadConfig = ConfigResult & { readonly revision: string | null };

const REVISION_CHARS = 12;

/** Loads a configuration; an unreadable file is reported as a configuration fault. */
export function readConfig({ file, flags, env }: ConfigSource): ReadConfig {
  let text: Uint8Array;
  try {
    text = readFileSync(file);
  } catch (error) {
    const message = `cannot be read (${codeOf(error)}); name a configuration file with --config`;
    const faults = [{ file, line: 0, column: 0, path: "", message }];
    return { ok: false, faults, revision: null };
  }
  const revision = createHash("sha256").update(text).digest("hex").slice(0, REVISION_CHARS);
  return { ...loadConfig({ file, text, env, flags }), revision };
}

/** Parses the flags that override settings, and the extra flags of a command. */
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
        "devnet-nodes": option,
        ...more,
      },
    });
    return { ...values };
  } catch (error) {
    return refuse(`svc: ${errorText(error)}\n${usage()}`);
  }
}
