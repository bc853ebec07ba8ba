// The page on vendors as Markdown, rendered from their table.
import type { Vendor, VendorPlan } from "./vendor.ts";
import { VENDORS } from "./vendors.ts";

const INTRODUCTION = `# Vendors

Rendered from the tables in \`src/presets/\`; change them there and run \`npm run docs\`.

One line under a profile adds a vendor to every chain of the file that it serves:

\`\`\`yaml
chains: { ethereum: {}, base: {} }
profiles:
  public:
    providers:
      - { vendor: alchemy, key: "\${ALCHEMY_KEY}", plan: free }
      - { vendor: quicknode, endpoints: { ethereum: "\${QUICKNODE_ETHEREUM_URL}" } }
\`\`\`

- \`chains: [...]\` names the chains that it joins. An entry in the list of a chain is for that
  chain alone.
- \`plan\` sets the limits of the account: requests a second, credits, blocks of one
  \`eth_getLogs\`. What is not listed is not known.
- Every setting of a provider may stand in an entry (\`id\`, \`priority\`, \`weight\`, \`limits\`,
  …), and goes before what is listed here.
- Two entries of one vendor need an \`id\` each.
- Keys are secret: they never appear in logs, errors or metrics.
- \`svc providers check\` tells which vendors of a file close, and which rows are old.
`;

/** The page. */
export function vendorsReference(): string {
  const rows = [...VENDORS].map(([word, vendor]) => rowOf(word, vendor));
  const head = [
    "| `vendor` | Kind | Chains | Key | Plans | Source | Looked at | Closes |",
    "|---|---|---|---|---|---|---|---|",
  ];
  return `${INTRODUCTION}\n${[...head, ...rows].join("\n")}\n\n${chainLists()}`;
}

function rowOf(word: string, vendor: Vendor): string {
  const { name, kind = "node", key, plans, sources, lookedAt, sunset = "" } = vendor;
  const links = sources.map((source, index) => `[${index + 1}](${source})`).join(" ");
  const known = Object.entries(plans).map(([plan, limits]) => `\`${plan}\`: ${planText(limits)}`);
  const cells = [
    ...[`\`${word}\` (${name})`, kind, chainsText(vendor), KEYS[key], known.join("; ")],
    ...[links, lookedAt, sunset],
  ];
  return `| ${cells.join(" | ")} |`;
}

const KEYS: Readonly<Record<Vendor["key"], string>> = {
  required: "needed",
  optional: "may be left out",
  none: "none",
};

function chainsText({ chains, ws, httpOnly = [] }: Vendor): string {
  if (chains === "any") return "by id; which ones is not known";
  if (chains === "endpoints") return `\`endpoints\`${ws === undefined ? "" : ", also WebSocket"}`;
  const whole = [...chains.values()].filter((word) => word.includes("{key}")).length;
  const sockets = ws === undefined ? 0 : chains.size - httpOnly.length - whole;
  return `${chains.size}${sockets === 0 ? "" : `, ${sockets} also over WebSocket`}`;
}

function planText({ rps, daily, monthly, price, blocks }: VendorPlan): string {
  const parts = [
    rps === undefined ? "" : `${rps} requests a second`,
    daily === undefined ? "" : `${grouped(daily)} credits a day`,
    monthly === undefined ? "" : `${grouped(monthly)} credits a month`,
    price === undefined ? "" : `$${price} a million credits`,
    blocksText(blocks),
  ];
  return parts.filter((part) => part !== "").join(", ");
}

function blocksText(blocks: VendorPlan["blocks"]): string {
  if (blocks === undefined) return "";
  if (typeof blocks === "number") return `logs of ${grouped(blocks)} blocks`;
  const { other } = blocks;
  return other == null
    ? "logs of any range on most chains"
    : `logs of ${grouped(other)} blocks on most chains`;
}

function grouped(amount: number): string {
  return String(amount).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** The ids of the chains that each vendor serves. */
function chainLists(): string {
  const lists = [...VENDORS].flatMap(([word, { chains }]) =>
    typeof chains === "string" || chains.size === 0
      ? []
      : [`- \`${word}\`: ${[...chains.keys()].sort((a, b) => a - b).join(", ")}`],
  );
  return `## Chains by id\n\n${lists.join("\n")}\n`;
}
