// `svc export`: copies an embedded store into a PostgreSQL server.
import { errorText } from "../core/fields.ts";
import { realRuntime } from "../runtime.ts";
import { type CommandInput, refuse } from "./command.ts";
import { requireConfig } from "./read-config.ts";

/** Exports the store of a configuration. */
export async function exportStore(input: CommandInput): Promise<void> {
  const { exportEmbedded } = await import("../app/hosted.ts");
  const { to = "" } = input.flags;
  const summary = await exportEmbedded(requireConfig(input).config, to, realRuntime).catch(
    (error: unknown) => refuse(`svc: ${errorText(error)}`),
  );
  console.log(summary);
}
