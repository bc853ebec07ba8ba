// The commands of `svc` as a table: options, help and the function that runs each. Arguments, usage
// and help follow from this table.
import { parseArgs } from "node:util";
import { errorText } from "../core/fields.ts";
import { audit } from "./audit.ts";
import { type CommandInput, refuse } from "./command.ts";
import { exportStore } from "./export.ts";
import { payOffer } from "./pay.ts";
import { checkConfig } from "./read-config.ts";
import { serve } from "./serve.ts";
import { work } from "./worker.ts";

/** What `--help` does with a command, and what the command line may hold. */
interface Command {
  readonly run: (input: CommandInput) => Promise<void> | void;
  /** What has to follow the name of the command; left out = nothing may. */
  readonly operand?: string;
  /** Left out: the supervisor alone starts it. */
  readonly does?: string;
  /** Options by name, each with what its value is. */
  readonly options?: Readonly<Record<string, Option>>;
  /** Lines below the options. */
  readonly notes?: readonly string[];
}

interface Option {
  readonly value: string;
  readonly meaning: string;
  readonly isRequired?: true;
}

const option = (value: string, meaning: string): Option => ({ value, meaning });
const config = option("FILE", "configuration file; default: SVC_CONFIG, else svc.yml");

const COMMANDS: Readonly<Record<string, Command>> = {
  serve: {
    run: serve,
    does: "Starts the service. The default command.",
    options: {
      config,
      port: option("N", "port to listen on, 0 = any free one; before PORT and server.port"),
      host: option("H", "address to listen on, 0.0.0.0 = all; before HOST and server.host"),
      workers: option(
        "N",
        "processes that serve, auto = one for each core; before SVC_WORKERS and server.workers",
      ),
      "log-level": option(
        "LEVEL",
        "trace, debug, info, warn, error, fatal or silent; before LOG_LEVEL and log_level",
      ),
      "devnet-nodes": option(
        "N",
        "local EVM nodes where devnet is true, 1 to 8; 1 allows anvil_*, evm_* and hardhat_*; " +
          "before devnet_nodes",
      ),
    },
    notes: [
      "Signals: SIGHUP reads providers and limits again, SIGTERM and SIGINT finish what was " +
        "accepted and end (a second one ends at once).",
      "Environment: NODE_ENV=production refuses development settings; SVC_SECRET (at least 32 " +
        "bytes) is needed there with hosted.enabled.",
    ],
  },
  "check-config": {
    run: checkConfig,
    operand: "FILE",
    does:
      "Checks a configuration without starting. Exit code 1 with every fault and its line; " +
      "warnings leave it at 0.",
  },
  export: {
    run: exportStore,
    does: "Copies the embedded store of a stopped service into an empty PostgreSQL database.",
    options: {
      to: { ...option("postgres://…", "the database; required"), isRequired: true },
      config,
    },
  },
  audit: {
    run: audit,
    does:
      "Compares payment chains, purchases and ledger, beside the running service. Exit code 1 = " +
      "something differs, 2 = it could not be found out.",
    options: {
      config,
      since: option(
        "2026-01-31",
        "looks at transfers from this day on; default: as far back as is known",
      ),
    },
  },
  pay: {
    run: payOffer,
    operand: "URL",
    does: "Sends a request and pays the offer of its 402 answer by MPP evm (EIP-3009).",
    options: {
      method: option("NAME", "HTTP method; default: POST with --data, else GET"),
      data: option("JSON", "request body"),
      "max-usd": option("N", "refuses to pay more; default: 1"),
      rpc: option(
        "URL",
        "node of the offer's chain, asked about the token where the offer does not describe it",
      ),
      "key-file": option(
        "FILE",
        "file with the wallet's private key; default: the environment variable SVC_PAY_KEY",
      ),
    },
  },
  version: {
    run: ({ version }) => console.log(version),
    does: "Prints the version and the commit of this build.",
  },
  worker: { run: work },
};

/** Runs a command line. */
export async function runCommand(
  [name = "serve", ...args]: readonly string[],
  { env, version }: Pick<CommandInput, "env" | "version">,
): Promise<void> {
  const [subject = "help"] = args;
  if (name === "--help" || (name === "help" && subject === "help")) return console.log(usage());
  const asked = name === "help" ? args[0] : name.replace(/^--(?=version$)/, "");
  const command = asked !== undefined && Object.hasOwn(COMMANDS, asked) ? COMMANDS[asked] : null;
  if (asked === undefined || command == null)
    return refuse(`svc: unknown command ${asked}\n${usage()}`);
  if (name === "help" || args.includes("--help")) return console.log(helpOf(asked, command));
  await command.run({ ...argumentsOf(command, args), env, version });
}

/** The operand and the options of a command line; ends the process where it has others. */
function argumentsOf(
  { operand, options = {} }: Command,
  args: readonly string[],
): Pick<CommandInput, "operand" | "flags"> {
  const names = Object.keys(options);
  const known = Object.fromEntries(names.map((name) => [name, { type: "string" } as const]));
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: known,
      allowPositionals: operand !== undefined,
    });
    const lacks = names.some((name) => options[name]?.isRequired && values[name] === undefined);
    if (lacks || positionals.length !== (operand === undefined ? 0 : 1)) return refuse(usage());
    return { operand: positionals[0] ?? "", flags: values };
  } catch (error) {
    return refuse(`svc: ${errorText(error)}\n${usage()}`);
  }
}

/** One line per command. */
function usage(): string {
  const lines = Object.entries(COMMANDS)
    .filter(([, { does }]) => does !== undefined)
    .map(([name, command]) => lineOf(name, command));
  return `usage: ${[...lines, "svc help [COMMAND]"].join("\n       ")}`;
}

function lineOf(name: string, { operand, options = {} }: Command): string {
  const given = Object.entries(options).map(([key, { value, isRequired }]) =>
    isRequired ? `--${key} ${value}` : `[--${key} ${value}]`,
  );
  return ["svc", name, ...(operand === undefined ? [] : [operand]), ...given].join(" ");
}

function helpOf(name: string, command: Command): string {
  const { does = "", options = {}, notes = [] } = command;
  const rows = Object.entries(options).map(([key, { value, meaning }]) => ({
    left: `--${key} ${value}`,
    meaning,
  }));
  const width = Math.max(0, ...rows.map(({ left }) => left.length));
  const listed = rows.map(({ left, meaning }) => `  ${left.padEnd(width)}  ${meaning}`);
  const parts = [`usage: ${lineOf(name, command)}`, does, listed.join("\n"), notes.join("\n")];
  return parts.filter((part) => part !== "").join("\n\n");
}
