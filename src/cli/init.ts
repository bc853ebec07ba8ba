// `svc init`: writes a commented configuration file from answers or options. Names the variables
// that hold keys of vendors; no key goes into the file.
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline/promises";
import { knownChain } from "../presets/chains.ts";
import { VENDORS } from "../presets/vendors.ts";
import { type CommandInput, codeOf, refuse } from "./command.ts";
import { DEFAULT_FILE } from "./read-config.ts";

/** What the file is to say. */
export interface InitChoices {
  /** Names of known chains; `all` = every known chain, opened when it is called. */
  readonly chains: readonly string[] | "all";
  readonly vendors: readonly ChosenVendor[];
  readonly port: number;
  readonly hosted: boolean;
}

interface ChosenVendor {
  readonly vendor: string;
  /** The variable that holds its key; null = it needs none. */
  readonly variable: string | null;
}

/** What is asked: the option that answers it as well, and what counts where nothing is said. */
interface InitOption {
  readonly option: string;
  readonly text: string;
  readonly fallback: string;
}

type Answers = Readonly<Record<string, string>>;

const INIT_OPTIONS: readonly InitOption[] = [
  {
    option: "chains",
    text: "Chains by name or id, with commas; all = every known",
    fallback: "all",
  },
  {
    option: "vendors",
    text: "Vendors with the variable of each key, such as alchemy=ALCHEMY_KEY; empty = public ones",
    fallback: "",
  },
  { option: "port", text: "Port", fallback: "4000" },
  { option: "hosted", text: "Keys for callers, with balances and usage (yes, no)", fallback: "no" },
];

/** Writes the file and says what to do next. */
export async function init({ flags, env }: CommandInput): Promise<void> {
  const file = flags["config"] ?? DEFAULT_FILE;
  const given = { ...flags, ...(flags["hosted"] === undefined ? {} : { hosted: "yes" }) };
  const isAsking = flags["yes"] === undefined && stdin.isTTY === true;
  const choices = choicesOf(isAsking ? await answersTo(given) : fallbacksFor(given));
  if (typeof choices === "string") return refuse(`svc: ${choices}`);
  try {
    const flag = flags["force"] === undefined ? "wx" : "w";
    writeFileSync(file, configText(choices), { flag });
  } catch (error) {
    const code = codeOf(error);
    return refuse(
      code === "EEXIST"
        ? `svc: ${file} exists; --force overwrites it`
        : `svc: ${file} cannot be written (${code})`,
    );
  }
  console.log(`wrote ${resolve(file)}`);
  const lacking = choices.vendors.flatMap(({ variable }) =>
    variable === null || env[variable] !== undefined ? [] : [variable],
  );
  for (const variable of lacking) console.log(`next: export ${variable}=…`);
  console.log(`next: svc serve${file === DEFAULT_FILE ? "" : ` --config ${file}`}`);
}

function fallbacksFor(given: CommandInput["flags"]): Answers {
  const answers = INIT_OPTIONS.map(({ option, fallback }) => [option, given[option] ?? fallback]);
  return Object.fromEntries(answers);
}

/** Asks what no option says; an answer that cannot be used is asked for again. */
async function answersTo(given: CommandInput["flags"]): Promise<Answers> {
  const lines = createInterface({ input: stdin, output: stdout });
  // Ctrl-D and Ctrl-C end the questions.
  lines.once("close", () => refuse("\nsvc: nothing was written"));
  const answers: Record<string, string> = {};
  for (const { option, text, fallback } of INIT_OPTIONS) {
    let answer = given[option];
    while (answer === undefined) {
      const said = (await lines.question(`${text}${fallback && ` [${fallback}]`}: `)).trim();
      const problem = choicesOf({ ...fallbacksFor(given), [option]: said || fallback });
      if (typeof problem === "string") console.log(problem);
      else answer = said || fallback;
    }
    answers[option] = answer;
  }
  lines.removeAllListeners("close");
  lines.close();
  return answers;
}

/** The choices that answers mean, or what is wrong with them. Never repeats what may be a key. */
export function choicesOf(answers: Answers): InitChoices | string {
  const chains = chainsIn(answers["chains"] ?? "all");
  const vendors = vendorsIn(answers["vendors"] ?? "");
  const port = Number(answers["port"]);
  if (typeof chains === "string" && chains !== "all") return chains;
  if (typeof vendors === "string") return vendors;
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    return "the port must be a whole number from 0 to 65535";
  return { chains, vendors, port, hosted: /^(?:y|yes|true)$/i.test(answers["hosted"] ?? "") };
}

function chainsIn(text: string): InitChoices["chains"] | string {
  const words = partsOf(text);
  if (words.length === 0 || words.includes("all")) return "all";
  const names: string[] = [];
  for (const word of words) {
    const known = knownChain(word);
    if (known === null)
      return `no known chain is called ${word}; write the others, and add it to the file by hand`;
    if (known.isShared)
      return `several networks have the id of ${word}; add it to the file by hand`;
    names.push(known.chainName);
  }
  return [...new Set(names)];
}

function vendorsIn(text: string): readonly ChosenVendor[] | string {
  const chosen: ChosenVendor[] = [];
  for (const part of partsOf(text)) {
    const [vendor = "", variable] = part.split("=");
    const row = INIT_VENDORS.get(vendor);
    if (row === undefined)
      return `vendors are named ${[...INIT_VENDORS.keys()].join(", ")}, each with =VARIABLE for its key`;
    if (variable !== undefined && !VARIABLE.test(variable))
      return (
        `what follows ${vendor}= must be the name of an environment variable, such as ` +
        `${variableOf(vendor)}: keys do not go into the file`
      );
    const isNeeded = row.key === "required" || variable !== undefined;
    chosen.push({ vendor, variable: isNeeded ? (variable ?? variableOf(vendor)) : null });
  }
  return chosen;
}

/** The vendors that are open, and whose addresses follow from a chain and a key. */
export const INIT_VENDORS: typeof VENDORS = new Map(
  [...VENDORS].filter(([, { sunset, chains }]) => sunset === undefined && chains !== "endpoints"),
);

/** In capitals: what looks otherwise may be a key. */
const VARIABLE = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/;

function variableOf(vendor: string): string {
  return `${vendor
    .toUpperCase()
    .replace(/[^A-Z0-9]/g, "_")
    .replace(/^(?=\d)/, "SVC_")}_KEY`;
}

function partsOf(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((part) => part !== "");
}

/** The file. */
export function configText(choices: InitChoices): string {
  return [HEAD, serverText(choices), chainsText(choices), profilesText(choices)].join("\n");
}

const HEAD = `# Configuration of svc, written by \`svc init\`.
#
# Every setting, with its default and bounds: docs/configuration.md
# Check a changed file without starting: svc check-config svc.yml
`;

function serverText({ port, hosted }: InitChoices): string {
  return `server:
  host: 127.0.0.1 # 0.0.0.0 = reachable from other machines
  port: ${port}

# Callers with keys: each request is sized in compute units and paid from a prepaid balance. Without
# it this is a plain router that needs no database. More: docs/hosted.md
hosted:
  enabled: ${hosted}
  keyless: true # false = every call needs a key
`;
}

function chainsText({ chains }: InitChoices): string {
  const head = `# The chains this instance serves. Ids, names, block times and public addresses of about 700 chains are
# known: \`{}\` is enough for them, and what is written here counts. The key is the name in URLs.
`;
  if (chains === "all")
    return `${head}# \`all\`: every known chain, opened when it is called. Instead, or beside \`all: true\`, by name:
#
# chains:
#   ethereum: {}
#   mine: { chain_id: 424242, block_time_ms: 1000 }
chains: all
`;
  const lines = chains.map((name) => `  ${name}: {}\n`).join("");
  return `${head}chains:
${lines}  # all: true # every other known chain as well, opened when it is called
  # mine: { chain_id: 424242, block_time_ms: 1000 }
`;
}

function profilesText({ vendors }: InitChoices): string {
  const head = `# Named sets of providers; \`public\` serves URLs that name none. Public addresses are used for chains
# for which no profile names a provider: they are shared by everyone, expect rate limits.
`;
  const own = `#     chains:
#       ethereum:
#         providers:
#           - id: node # your own node
#             url: http://127.0.0.1:8545
#             ws_url: ws://127.0.0.1:8546
`;
  if (vendors.length === 0) return `${head}#\n# profiles:\n#   public:\n${own}`;
  const entries = vendors.map(({ vendor, variable }) => {
    const key = variable === null ? "" : `, key: "\${${variable}}"`;
    return `      - { vendor: ${vendor}${key} }\n`;
  });
  return `${head}profiles:
  public:
    # Each serves all chains above that it knows; \`chains: [ethereum, base]\` in an entry bounds it.
    providers:
${entries.join("")}${own}`;
}
