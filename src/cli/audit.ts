// `svc audit`: compares the books with each other and with the payment chains.
import { errorText } from "../core/fields.ts";
import { realRuntime } from "../runtime.ts";
import { type CommandInput, refuse } from "./command.ts";
import { requireConfig } from "./read-config.ts";

/** Runs the audit. Exit code 1 = differences were found, 2 = the comparison failed. */
export async function audit(input: CommandInput): Promise<void> {
  const { since } = input.flags;
  const sinceMs = since === undefined ? null : Date.parse(since);
  if (Number.isNaN(sinceMs)) return refuse("svc: --since is not a day such as 2026-01-31");
  const { config } = requireConfig(input);
  const [{ auditMoney }, { readLocalRails }] = await Promise.all([
    import("../app/audit.ts"),
    import("../devnet/payments/local-rails.ts"),
  ]);
  try {
    const localRails = config.devnet ? readLocalRails(config.dataDir) : [];
    const report = await auditMoney({
      config,
      runtime: realRuntime,
      localRails,
      sinceMs,
      onProgress: (line) => console.error(line),
    });
    for (const line of report.lines) console.log(line);
    if (report.notKept !== null)
      console.error(`the console does not show this result: ${report.notKept}`);
    process.exitCode = report.clean ? 0 : 1;
  } catch (error) {
    console.error(`svc: ${errorText(error)}`);
    process.exitCode = 2;
  }
}
