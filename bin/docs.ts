// Writes what is rendered from tables: the JSON Schema and the reference of the configuration, and
// the references of the API, of the metrics, of vendors and of the command line. Tests compare the
// committed files with them.
import { mkdirSync, writeFileSync } from "node:fs";
import { COMMANDS } from "../src/cli/commands.ts";
import { commandReference } from "../src/cli/reference.ts";
import { schemaOf } from "../src/config/kinds.ts";
import { configReference } from "../src/config/reference.ts";
import { configFile } from "../src/config/schema.ts";
import { metricsReference } from "../src/observe/metrics-reference.ts";
import { vendorsReference } from "../src/presets/vendors-reference.ts";
import { OPERATIONS } from "../src/web/contract/contract.ts";
import { apiReference } from "../src/web/discovery/reference.ts";

const root = new URL("../", import.meta.url);

write("schema/svc.schema.json", `${JSON.stringify(schemaOf(configFile), null, 2)}\n`);
write("docs/configuration.md", configReference());
write("docs/api.md", apiReference(OPERATIONS, "{base_url}"));
write("docs/metrics.md", metricsReference());
write("docs/vendors.md", vendorsReference());
write("docs/cli.md", commandReference(COMMANDS));

function write(name: string, content: string): void {
  const file = new URL(name, root);
  mkdirSync(new URL(".", file), { recursive: true });
  writeFileSync(file, content);
  console.log(`wrote ${name}`);
}
