// Writes what is rendered from the configuration table: the published JSON Schema and the reference. Tests compare the committed files with it.
import { mkdirSync, writeFileSync } from "node:fs";
import { configJsonSchema } from "../src/config/allowed.ts";
import { configReference } from "../src/config/reference.ts";

const root = new URL("../", import.meta.url);

write("schema/svc.schema.json", `${JSON.stringify(configJsonSchema(), null, 2)}\n`);
write("docs/configuration.md", configReference());

function write(name: string, content: string): void {
  const file = new URL(name, root);
  mkdirSync(new URL(".", file), { recursive: true });
  writeFileSync(file, content);
  console.log(`wrote ${name}`);
}
