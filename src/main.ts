// The entry point: runs the command line. Reads the arguments and the environment, and nothing else
// does.
import "./module-hooks.ts";

// Loaded when the hooks are in place.
const { runCommand } = await import("./cli/commands.ts");
const { versionOf } = await import("./cli/version.ts");

const { argv, env } = process;
await runCommand(argv.slice(2), { env, version: versionOf(env) });
