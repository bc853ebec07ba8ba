// The texts of `svc help`: each command with its options. Knows nothing of what commands do.

interface Command {
  /** What follows the command's name. */
  readonly args: string;
  readonly does: string;
  readonly options: readonly (readonly [option: string, meaning: string])[];
  /** Lines below the options. */
  readonly notes?: readonly string[];
}

const CONFIG: readonly [string, string] = [
  "--config FILE",
  "configuration file; default: SVC_CONFIG, else svc.yml",
];

const COMMANDS: Readonly<Record<string, Command>> = {
  serve: {
    args: "[--config FILE] [--port N] [--host H] [--workers N] [--log-level LEVEL] [--devnet-nodes N]",
    does: "Starts the service. The default command.",
    options: [
      CONFIG,
      ["--port N", "port to listen on, 0 = any free one; before PORT and server.port"],
      ["--host H", "address to listen on, 0.0.0.0 = all; before HOST and server.host"],
      [
        "--workers N",
        "processes that serve, auto = one for each core; before SVC_WORKERS and server.workers",
      ],
      [
        "--log-level LEVEL",
        "trace, debug, info, warn, error, fatal or silent; before LOG_LEVEL and log_level",
      ],
      [
        "--devnet-nodes N",
        "local EVM nodes where devnet is true, 1 to 8; 1 allows anvil_*, evm_* and hardhat_*; " +
          "before devnet_nodes",
      ],
    ],
    notes: [
      "Signals: SIGHUP reads providers and limits again, SIGTERM and SIGINT finish what was " +
        "accepted and end (a second one ends at once).",
      "Environment: NODE_ENV=production refuses development settings; SVC_SECRET (at least 32 " +
        "bytes) is needed there with hosted.enabled.",
    ],
  },
  "check-config": {
    args: "FILE",
    does:
      "Checks a configuration without starting. Exit code 1 with every fault and its line; " +
      "warnings leave it at 0.",
    options: [],
  },
  export: {
    args: "--to postgres://… [--config FILE]",
    does: "Copies the embedded store of a stopped service into an empty PostgreSQL database.",
    options: [["--to URL", "the database; required"], CONFIG],
  },
  audit: {
    args: "[--config FILE] [--since 2026-01-31]",
    does:
      "Compares payment chains, purchases and ledger, beside the running service. Exit code 1 = " +
      "something differs, 2 = it could not be found out.",
    options: [
      CONFIG,
      ["--since DATE", "looks at transfers from this day on; default: as far back as is known"],
    ],
  },
  pay: {
    args: "URL [--method POST] [--data JSON] [--max-usd 1] [--rpc URL] [--key-file FILE]",
    does: "Sends a request and pays the offer of its 402 answer by MPP evm (EIP-3009).",
    options: [
      ["--method NAME", "HTTP method; default: POST with --data, else GET"],
      ["--data JSON", "request body"],
      ["--max-usd N", "refuses to pay more; default: 1"],
      [
        "--rpc URL",
        "node of the offer's chain, asked about the token where the offer does not describe it",
      ],
      [
        "--key-file FILE",
        "file with the wallet's private key; default: the environment variable SVC_PAY_KEY",
      ],
    ],
  },
  version: { args: "", does: "Prints the version and the commit of this build.", options: [] },
  help: { args: "[COMMAND]", does: "Prints the options of a command.", options: [] },
};

/** One line per command. */
export function usage(): string {
  const lines = Object.entries(COMMANDS).map(([name, { args }]) => `svc ${name} ${args}`.trimEnd());
  return `usage: ${lines.join("\n       ")}`;
}

/** The help of one command; null = unknown command. */
export function helpOf(name: string): string | null {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) return null;
  const { args, does, options, notes = [] } = command;
  const width = Math.max(0, ...options.map(([option]) => option.length));
  const listed = options.map(([option, meaning]) => `  ${option.padEnd(width)}  ${meaning}`);
  const parts = [
    `usage: ${`svc ${name} ${args}`.trimEnd()}`,
    does,
    listed.join("\n"),
    notes.join("\n"),
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}
