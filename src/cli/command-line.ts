// Reads a command line by a table of commands; runs or explains the command that it names.
import { parseArgs } from "node:util";
import { errorText } from "../core/fields.ts";
import { type CliCommand, type CommandInput, type Commands, refuse } from "./command.ts";
import { helpOf, inGroup, operandsOf, usageLine, usageOf } from "./usage.ts";

/** A command line and its process. */
export interface CommandLine extends Pick<CommandInput, "env" | "version"> {
  readonly args: readonly string[];
}

/** The command of a line that begins with an option, or is empty. */
const DEFAULT_COMMAND = "serve";

/** Runs the command, or prints its help. */
export async function runCommandLine(
  commands: Commands,
  { args, env, version }: CommandLine,
): Promise<void> {
  const [first] = args;
  const asksForHelp = first === "help" || args.some(isHelp);
  const words = first === "help" ? args.slice(1) : args;
  if (asksForHelp && words.every(isHelp)) return console.log(usageOf(commands));
  const { name, rest } = nameIn(commands, words);
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command !== undefined)
    return asksForHelp
      ? console.log(helpOf(name, command))
      : command.run({ ...argumentsOf(name, command, rest), env, version });
  const group = inGroup(commands, name);
  if (group === null) return refuse(`svc: unknown command ${name}\n${usageOf(commands)}`);
  if (asksForHelp) return console.log(usageOf(group));
  const [word = ""] = rest;
  refuse(`svc: unknown command ${`${name} ${word}`.trim()}\n${usageOf(group)}`);
}

function isHelp(arg: string): boolean {
  return arg === "--help" || arg === "-h";
}

/** The command that the words name, and what follows its name. */
function nameIn(
  commands: Commands,
  words: readonly string[],
): { readonly name: string; readonly rest: readonly string[] } {
  const [first = DEFAULT_COMMAND, second = ""] = words;
  if (first === "--version") return { name: "version", rest: words.slice(1) };
  if (first.startsWith("-")) return { name: DEFAULT_COMMAND, rest: words };
  const pair = `${first} ${second}`;
  return Object.hasOwn(commands, pair)
    ? { name: pair, rest: words.slice(2) }
    : { name: first, rest: words.slice(1) };
}

/** The operands and options of a command; ends the process where the command takes others. */
function argumentsOf(
  name: string,
  command: CliCommand,
  args: readonly string[],
): Pick<CommandInput, "operands" | "flags"> {
  const { options = {}, operands } = command;
  const { least, most, words } = operandsOf(operands);
  const wrong = (message: string): never =>
    refuse(`svc: ${message}\nusage: ${usageLine(name, command)}`);
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: Object.fromEntries(
        Object.entries(options).map(([key, { value }]) => [
          key,
          { type: value === null ? "boolean" : "string" } as const,
        ]),
      ),
      allowPositionals: true,
    });
    const lacks = Object.keys(options).find(
      (key) => options[key]?.isRequired && values[key] === undefined,
    );
    if (lacks !== undefined) return wrong(`--${lacks} is required`);
    if (positionals.length < least) return wrong(`${operands} is missing`);
    const [surplus] = positionals.slice(most);
    if (surplus !== undefined) return wrong(`unexpected argument ${surplus}`);
    const odd = positionals.find((word) => words.length > 0 && !words.includes(word));
    if (odd !== undefined) return wrong(`${odd} is not one of ${words.join(", ")}`);
    const flags = Object.entries(values).map(([key, value]) => [key, String(value)]);
    return { operands: positionals, flags: Object.fromEntries(flags) };
  } catch (error) {
    return wrong(errorText(error));
  }
}
