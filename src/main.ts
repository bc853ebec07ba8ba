// The entry point: parses the command and runs it. Reads the arguments and the environment, and
// nothing else does.
import { audit } from "./cli/audit.ts";
import { checkConfig } from "./cli/check-config.ts";
import { type CommandInput, refuse } from "./cli/command.ts";
import { exportStore } from "./cli/export.ts";
import { helpOf, usage } from "./cli/help.ts";
import { payOffer } from "./cli/pay.ts";
import { serve } from "./cli/serve.ts";
import { ownVersion } from "./cli/version.ts";
import { work } from "./cli/worker.ts";

const COMMANDS: Readonly<Record<string, (input: CommandInput) => Promise<void> | void>> = {
  serve,
  worker: work,
  "check-config": checkConfig,
  export: exportStore,
  audit,
  pay: payOffer,
  version: ({ version }) => console.log(version),
  "--version": ({ version }) => console.log(version),
};

const [command = "serve", ...args] = process.argv.slice(2);
const run = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
if (command === "help") help(args[0]);
else if (process.argv.includes("--help")) help(command);
else if (run === undefined) refuse(`svc: unknown command ${command}\n${usage()}`);
else await run({ args, env: process.env, version: ownVersion(process.env) });

function help(about: string | undefined): void {
  const text = about === undefined || about === "--help" ? usage() : helpOf(about);
  if (text === null) refuse(`svc: unknown command ${about}\n${usage()}`);
  else console.log(text);
}
