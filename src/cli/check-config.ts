// `svc check-config`: says whether a configuration is valid, and what is wrong with it.
import { formatFaults } from "../config/config-fault.ts";
import { type CommandInput, refuse } from "./command.ts";
import { usage } from "./help.ts";
import { readConfig } from "./read-config.ts";

/** Checks the configuration file that the first argument names. */
export function checkConfig({ args: [file], env }: CommandInput): void {
  if (file === undefined) return refuse(usage());
  const result = readConfig({ file, flags: {}, env });
  if (!result.ok) return refuse(formatFaults(result.faults));
  const { chains, profiles } = result.config;
  if (result.warnings.length > 0)
    console.error(
      result.warnings.map((warning) => `warning: ${formatFaults([warning])}`).join("\n"),
    );
  console.log(`${file}: valid (${chains.length} chains, ${profiles.length} profiles)`);
}
