// `svc check-config`: validates a configuration and lists its faults.
import { formatFaults } from "../config/config-fault.ts";
import { type CommandInput, refuse } from "./command.ts";
import { usage } from "./help.ts";
import { readConfig } from "./read-config.ts";

/** Checks the configuration file named by the first argument. */
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
