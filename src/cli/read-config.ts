// Reads the configuration file of a command and applies the command's options on top; and `svc
// check-config`, which does nothing else.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type ConfigResult, loadConfig } from "../config/config.ts";
import { type ConfigFault, formatFaults } from "../config/config-fault.ts";
import { isLoopback } from "../devnet/payments/wallets.ts";
import { type CommandInput, codeOf, refuse } from "./command.ts";

/** The options and variables of a command that override settings. */
type ConfigSource = Pick<CommandInput, "flags" | "env">;

/** A configuration, and where it comes from. */
export type ReadConfig = ConfigResult & {
  /** What tells the text of its file from another; null = it was not read. */
  readonly revision: string | null;
  /** Where a file would be, where none is; null = there is one. */
  readonly lackingFile: string | null;
};

/** The file where neither an option nor a variable names one. */
export const DEFAULT_FILE = "svc.yml";

const REVISION_CHARS = 12;
/** What is served without a file: every known chain, by its public addresses. */
const WITHOUT_FILE = "chains: all\n";
/** The same with the local demonstration, as the file of the repository has it. */
const DEVNET_WITHOUT_FILE = `${WITHOUT_FILE}hosted: { enabled: true, keyless: true }\n`;

/** Loads a configuration; an unreadable file is reported as a configuration fault. */
export function readConfig({ flags, env }: ConfigSource, mayLackFile = false): ReadConfig {
  const { config: named = env["SVC_CONFIG"], ...overrides } = flags;
  const file = named ?? DEFAULT_FILE;
  let text: Uint8Array;
  try {
    text = readFileSync(file);
  } catch (error) {
    const isLacking = mayLackFile && named === undefined && codeOf(error) === "ENOENT";
    if (isLacking && env["NODE_ENV"] !== "production")
      return { ...withoutFile(overrides, env), revision: null, lackingFile: resolve(file) };
    const message = `cannot be read (${codeOf(error)}); name a configuration file with --config`;
    return { ok: false, faults: [faultOf(file, "", message)], revision: null, lackingFile: null };
  }
  const revision = createHash("sha256").update(text).digest("hex").slice(0, REVISION_CHARS);
  return { ...loadConfig({ file, text, env, flags: overrides }), revision, lackingFile: null };
}

/** The configuration without a file, for callers on this machine only. */
function withoutFile(flags: ConfigSource["flags"], env: ConfigSource["env"]): ConfigResult {
  const text = flags["devnet"] === undefined ? WITHOUT_FILE : DEVNET_WITHOUT_FILE;
  const result = loadConfig({ file: "without a file", text, env, flags });
  if (!result.ok || isLoopback(result.config.server.host)) return result;
  const isFlag = flags["host"] !== undefined;
  const message =
    "must be a loopback address such as 127.0.0.1 without a configuration file: everybody who " +
    "reaches it could call every chain; `svc init` writes a file";
  const [place, name] = isFlag ? ["command line", "--host"] : ["environment", "HOST"];
  return { ok: false, faults: [faultOf(place, name, message)] };
}

function faultOf(file: string, path: string, message: string): ConfigFault {
  return { file, line: 0, column: 0, path, message };
}

/** A valid configuration; tells the faults of another one and ends the process. */
export function requireConfig(
  source: ConfigSource,
  mayLackFile = false,
): Extract<ReadConfig, { readonly ok: true }> {
  const result = readConfig(source, mayLackFile);
  return result.ok ? result : refuse(formatFaults(result.faults));
}

/** Checks the configuration file that the command names. */
export async function checkConfig({ operands, flags, env }: CommandInput): Promise<void> {
  const [file = ""] = operands;
  const { config, warnings } = requireConfig({ flags: { config: file }, env });
  const { chains, profiles, onDemand } = config;
  for (const warning of warnings) console.error(`warning: ${formatFaults([warning])}`);
  const served = `${chains.length} chains${onDemand === null ? "" : " and every known one"}`;
  console.log(`${file}: valid (${served}, ${profiles.length} profiles)`);
  if (flags["live"] !== "true") return;
  const { lines, isGood } = await (await import("./probe/live-check.ts")).checkLive(config);
  for (const line of lines) console.log(line);
  if (!isGood) process.exitCode = 1;
}
