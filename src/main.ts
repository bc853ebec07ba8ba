// The entry point: runs the command line. Reads the arguments and the environment, and nothing else
// does.
import { runCommand } from "./cli/commands.ts";
import { versionOf } from "./cli/version.ts";

const { argv, env } = process;
await runCommand(argv.slice(2), { env, version: versionOf(env) });
