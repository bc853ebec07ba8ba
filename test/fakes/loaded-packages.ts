// Loaded before a process's own modules (`node --import`): writes every package that the process
// loads, one a line, to the file that `LOADED_PACKAGES` names.
import { appendFileSync } from "node:fs";
import { registerHooks } from "node:module";

const file = process.env["LOADED_PACKAGES"] ?? "";
const seen = new Set<string>();

registerHooks({
  load(url, context, next) {
    const own = url.replace(/\/\.packages\/[^/]+\//, "/").replace(/\.mjs$/, "/");
    const name = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*\/node_modules\/)/.exec(own)?.[1];
    if (name !== undefined && !seen.has(name)) appendFileSync(file, `${name}\n`);
    if (name !== undefined) seen.add(name);
    return next(url, context);
  },
});
