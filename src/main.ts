// The entry point: runs the command line. Reads the arguments and the environment, and nothing else
// does.
import "./module-hooks.ts";

// Loaded when the hooks are in place.
const { COMMANDS } = await import("./cli/commands.ts");
const { runCommandLine } = await import("./cli/command-line.ts");
const { versionOf } = await import("./cli/version.ts");

const { argv, env } = process;
await runCommandLine(COMMANDS, { args: argv.slice(2), env, version: versionOf(env) });
