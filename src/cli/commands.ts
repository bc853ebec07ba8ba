// The commands of `svc` as a table: options, help and the function that runs each. Arguments, help,
// `docs/cli.md` and completion follow from this table. A command is loaded when it runs.
import type { Commands, Option } from "./command.ts";

const option = (value: string | null, meaning: string): Option => ({ value, meaning });
const config = option("FILE", "configuration file; default: SVC_CONFIG, else svc.yml");

/** All commands. */
export const COMMANDS: Commands = {
  serve: {
    run: async (input) => (await import("./serve.ts")).serve(input),
    does:
      "Starts the service. The default command. Without a file it serves every known chain by " +
      "public addresses, to this machine only.",
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
      devnet: option(
        null,
        "starts local EVM nodes as chain local; without a file this is the local demonstration",
      ),
      "devnet-nodes": option(
        "N",
        "local EVM nodes where devnet is true, 1 to 8; 1 allows anvil_*, evm_* and hardhat_*; " +
          "before devnet_nodes",
      ),
    },
    notes: [
      "Signals: SIGHUP reads chains, providers and limits again, SIGTERM and SIGINT finish what was " +
        "accepted and end (a second one ends at once).",
      "Environment: NODE_ENV=production refuses development settings; SVC_SECRET (at least 32 " +
        "bytes) is needed there with hosted.enabled.",
    ],
  },
  init: {
    run: async (input) => (await import("./init.ts")).init(input),
    does: "Writes a commented svc.yml from your answers, or from options.",
    options: {
      config: option("FILE", "the file to write; default: svc.yml"),
      chains: option(
        "NAMES",
        "known chains by name or id, with commas; all = every one; default: all",
      ),
      vendors: option(
        "NAMES",
        "vendors with commas, each with the variable that holds its key: alchemy=ALCHEMY_KEY",
      ),
      port: option("N", "port to listen on; default: 4000"),
      hosted: option(null, "callers have keys, balances and usage"),
      yes: option(null, "asks nothing; so it is where the input is no terminal"),
      force: option(null, "overwrites the file"),
    },
  },
  "check-config": {
    run: async (input) => (await import("./read-config.ts")).checkConfig(input),
    operands: "FILE",
    does:
      "Checks a configuration without starting. Exit code 1 with every fault and its line; " +
      "warnings leave it at 0.",
    options: {
      live: option(
        null,
        "also asks every provider: is it there, of the right chain, not behind, and when does its " +
          "certificate end; exit code 1 where one is not",
      ),
    },
  },
  import: {
    run: async (input) => (await import("./import/import.ts")).importConfig(input),
    operands: "FILE",
    does:
      "Makes a svc.yml of a configuration of eRPC, proxyd, Lasso or nodecore. Comments say what is " +
      "not carried over; keys become references to environment variables.",
    options: {
      out: option("FILE", "where to write it, a new file; default: standard output"),
      keys: option(
        "FILE",
        "also writes the keys of the imported file as variables, to a new file that only you can read",
      ),
      from: option("FORMAT", "erpc, proxyd, lasso or nodecore; default: as its content tells"),
      chain: option(
        "CHAIN",
        "id or name of the chain of providers whose chain the file does not say (proxyd never " +
          "says it); default: each is asked for it",
      ),
    },
  },
  probe: {
    run: async (input) => (await import("./probe/probe.ts")).probe(input),
    operands: "URL…",
    does:
      "Asks endpoints what they can do: chain, head, history by kind of data, limits of logs, " +
      "methods, batches, subscriptions and latency. Prints a table and entries for svc.yml. Exit " +
      "code 1 where one does not answer.",
    options: { json: option(null, "prints everything as JSON instead") },
    notes: [
      "One request at a time, at most 250 an endpoint, 50 ms apart; about one minute each. A ws:// " +
        "or wss:// URL belongs to the http:// or https:// URL of the same host; without one, the " +
        "same address is tried.",
      "No address is printed with its key.",
    ],
  },
  "providers check": {
    run: async (input) => (await import("./providers-check.ts")).checkProviders(input),
    operands: "[FILE]",
    does:
      "Tells which vendors of a configuration close or have closed, which facts are more than a " +
      "year old, and which addresses are not known. Exit code 1 where one closes within 90 days.",
  },
  export: {
    run: async (input) => (await import("./export.ts")).exportStore(input),
    does: "Copies the embedded store of a stopped service into an empty PostgreSQL database.",
    options: {
      to: { ...option("postgres://…", "the database; required"), isRequired: true },
      config,
    },
  },
  audit: {
    run: async (input) => (await import("./audit.ts")).audit(input),
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
    run: async (input) => (await import("./pay.ts")).payOffer(input),
    operands: "URL",
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
  completion: {
    run: async (input) => (await import("./completion.ts")).printCompletion(COMMANDS, input),
    operands: "bash|zsh|fish",
    does: "Prints a script that completes command lines of svc, for the start-up file of a shell.",
    notes: [
      'bash and zsh: eval "$(svc completion bash)", eval "$(svc completion zsh)"; fish: svc ' +
        "completion fish | source",
    ],
  },
  version: {
    run: ({ version }) => console.log(version),
    does: "Prints the version and the commit of this build.",
  },
  worker: { run: async () => (await import("./worker.ts")).work() },
};
