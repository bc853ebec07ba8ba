// Reads the configuration file of a command and applies the command's options on top; and `svc
// check-config`, which does nothing else.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type ConfigResult, loadConfig } from "../config/config.ts";
import { formatFaults } from "../config/config-fault.ts";
import { type CommandInput, codeOf, refuse } from "./command.ts";

/** The options and variables of a command that override settings. */
type ConfigSource = Pick<CommandInput, "flags" | "env">;

/** A configuration, and what tells the text of its file from another; null = it was not read. */
export type ReadConfig = ConfigResult & { readonly revision: string | null };

const REVISION_CHARS = 12;

/** Loads a configuration; an unreadable file is reported as a configuration fault. */
export function readConfig({ flags, env }: ConfigSource): ReadConfig {
  const { config: file = env["SVC_CONFIG"] ?? "svc.yml", ...overrides } = flags;
  let text: Uint8Array;
  try {
    text = readFileSync(file);
  } catch (error) {
    const message = `cannot be read (${codeOf(error)}); name a configuration file with --config`;
    const faults = [{ file, line: 0, column: 0, path: "", message }];
    return { ok: false, faults, revision: null };
  }
  const revision = createHash("sha256").update(text).digest("hex").slice(0, REVISION_CHARS);
  return { ...loadConfig({ file, text, env, flags: overrides }), revision };
}

/** A valid configuration; tells the faults of another one and ends the process. */
export function requireConfig(source: ConfigSource): Extract<ReadConfig, { readonly ok: true }> {
  const result = readConfig(source);
  return result.ok ? result : refuse(formatFaults(result.faults));
}

/** Checks the configuration file that the command names. */
export function checkConfig({ operands: [file = ""], env }: CommandInput): void {
  const { config, warnings } = requireConfig({ flags: { config: file }, env });
  const { chains, profiles } = config;
  for (const warning of warnings) console.error(`warning: ${formatFaults([warning])}`);
  console.log(`${file}: valid (${chains.length} chains, ${profiles.length} profiles)`);
}
