// `svc export`: copies an embedded store into a PostgreSQL server.

import { formatFaults } from "../config/config-fault.ts";
import { errorText } from "../core/fields.ts";
import { realRuntime } from "../runtime.ts";
import { type CommandInput, refuse } from "./command.ts";
import { usage } from "./help.ts";
import { readConfig, readFlags } from "./read-config.ts";

/** Exports the store of a configuration. */
export async function exportStore({ args, env }: CommandInput): Promise<void> {
  const {
    config: file = env["SVC_CONFIG"] ?? "svc.yml",
    to,
    ...rest
  } = readFlags(args, { to: { type: "string" } });
  if (to === undefined || Object.keys(rest).length > 0) return refuse(usage());
  const result = readConfig({ file, flags: {}, env });
  if (!result.ok) return refuse(formatFaults(result.faults));
  const { exportEmbedded } = await import("../app/hosted.ts");
  console.log(
    await exportEmbedded(result.config, to, realRuntime).catch((error: unknown) =>
      refuse(`svc: ${errorText(error)}`),
    ),
  );
}
