// The configuration reference as Markdown, rendered from the configuration table. Names no settings
// itself, except in the introduction.
import {
  allowedText,
  type JsonSchema,
  recordOf,
  valuesOf,
  variantsOf,
} from "../core/json-schema.ts";
import { schemaOf } from "./kinds.ts";
import { configFile, environment } from "./schema.ts";

const INTRODUCTION = `# Configuration

Rendered from the table in \`src/config/schema.ts\`; change it there and run \`npm run docs\`.

The service reads one YAML 1.2 file, \`svc.yml\` unless \`--config FILE\` or the environment variable \`SVC_CONFIG\` names another.
\`svc check-config FILE\` tells everything that is wrong with a file, each with its line, without starting. Editors that know
JSON Schema can use \`schema/svc.schema.json\`.

- **Precedence**: command-line flag (\`--port\`, \`--host\`, \`--workers\`, \`--log-level\`), then environment variable, then file, then default.
- **Variables**: \`\${NAME}\` inside any text value becomes the value of the environment variable; one that is not set is a fault.
  Write \`$\${\` for a literal \`\${\`. Inside \`{ }\` and \`[ ]\` put quotes around text that holds a variable.
- **Strictness**: unknown keys, keys given twice and values out of bounds are refused. A broken file never replaces a running configuration.
- **Limits**: a file has at most 10,000,000 bytes of UTF-8; YAML anchors and aliases work, tags and several documents do not.
- **Secrets**: URLs and headers of providers are secret. They never appear in logs, errors or metrics.
- **Changes**: \`SIGHUP\` re-reads chains, providers and limits. \`server\`, \`upstream\`, \`storage\`, \`data_dir\`, \`devnet\`, \`cluster\` and \`hosted\` change at restart.

A small complete file:

\`\`\`yaml
chains:
  ethereum: {} # known: its id, name, aliases, block time
  base: {} # no profile names a provider: its public addresses are used
  mine: { chain_id: 424242, block_time_ms: 1000 }
profiles:
  public:
    chains:
      ethereum:
        providers:
          - id: publicnode
            url: https://ethereum-rpc.publicnode.com
            ws_url: wss://ethereum-rpc.publicnode.com
          - id: own
            url: https://node.example.com/\${NODE_KEY}
            archival: true
      mine:
        providers: [{ id: own, url: "http://10.0.0.5:8545" }]
\`\`\`
`;

const RULES = `## Rules across settings

- A chain of which nothing is known has \`chain_id\`; so has one whose id several networks share, under the name of the one that
  is meant. An id is written once. Public addresses are used only in the profile that serves URLs without one (\`public\`, else the
  first), and only for chains for which no profile names a provider.
- Names and aliases of chains lead to one chain only, letter case ignored; a decimal one may not be another chain's id; none may be a
  strategy, \`all\`, or a word of the URL grammar (\`fastest\`, \`rpc\`, \`ws\`, \`k\`, …).
- Provider ids are unique per chain and profile; so are aliases, also against the ids of others.
- An entry of a vendor names a known vendor and plan, has a \`key\` where the vendor's addresses hold one, and names in \`chains\` only
  chains that the vendor serves. Two entries of one vendor on a chain have an \`id\` each.
- Every provider has \`url\`, \`ws_url\` or both. Credentials in a URL (\`https://user:password@host\`) are sent as an \`Authorization\`
  header, so \`headers\` may not have that header as well, and \`url\` and \`ws_url\` must carry the same ones.
- A profile names only chains that are configured, or known ones with \`chains: all\`. At least one chain is configured, or
  \`devnet\` is \`true\`.
- \`hosted.enabled: true\` needs a profile \`public\`, or known chains and no profile at all, and in production the environment
  variable \`SVC_SECRET\`.
- \`devnet: true\` takes the name \`local\` and the chain id 31337, and is refused with \`NODE_ENV=production\`.
- \`selection.region_preference: only\` needs \`cluster.region\`.
- An error rule has a \`category\`, and \`code\` or \`message_contains\` or both.
`;

/** The reference as Markdown. */
export function configReference(): string {
  return [INTRODUCTION, ...sections(schemaOf(configFile), ""), RULES, environmentSection()].join(
    "\n",
  );
}

function sections(node: JsonSchema, path: string): readonly string[] {
  const members = Object.entries(node.properties ?? {});
  const nested = members.flatMap(([key, child]): readonly string[] => {
    const at = path === "" ? key : `${path}.${key}`;
    const inner = innersOf(child);
    if (inner.length > 0)
      return inner.flatMap(({ node: record, suffix }) => sections(record, `${at}${suffix}`));
    return variantsOf(child.items ?? child).flatMap(({ kind, node: variant }) =>
      sections(variant, `${at}[] of kind ${kind}`),
    );
  });
  const rows = members.map(([key, child]) =>
    row(key, child, node.required?.includes(key) ?? false),
  );
  const table = ["| Key | May be | Default | Meaning |", "|---|---|---|---|", ...rows].join("\n");
  const head = path === "" ? "The file" : `\`${path}\`\n\n${node.description ?? ""}`;
  return [`## ${head}\n\n${table}\n`, ...nested];
}

function row(key: string, child: JsonSchema, required: boolean): string {
  const [inner = null] = innersOf(child);
  const item = child.items ?? null;
  const kind =
    inner === null && item !== null && child.title === undefined
      ? `a list, each ${allowedText(item)}`
      : allowedText(child);
  const fallback =
    inner !== null || child.default === undefined ? "" : `\`${JSON.stringify(child.default)}\``;
  return (
    `| \`${key}\` | ${cell(kind)} | ${required ? "required" : fallback} | ` +
    `${cell(child.description ?? inner?.node.description ?? "")} |`
  );
}

/** A record within a setting, and what its path has behind that of the setting. */
interface InnerRecord {
  readonly node: JsonSchema;
  readonly suffix: string;
}

/** The records within a setting: itself, the values of a map, the items of a list. */
function innersOf(node: JsonSchema): readonly InnerRecord[] {
  const record = recordOf(node);
  const own = record === null ? [] : [{ node: record, suffix: "" }];
  const values = valuesOf(record ?? node);
  const value = values === null ? null : recordOf(values);
  const named = value === null ? [] : [{ node: value, suffix: ".NAME" }];
  const item = node.items === undefined ? null : recordOf(node.items);
  return [...own, ...named, ...(item === null ? [] : [{ node: item, suffix: "[]" }])];
}

function environmentSection(): string {
  const rows = Object.entries(schemaOf(environment).properties ?? {}).map(
    ([key, child]) => `| \`${key}\` | ${cell(allowedText(child))} | ${child.description ?? ""} |`,
  );
  return [
    "## Environment variables\n",
    "An empty variable counts as not set. `SVC_CONFIG` names the file; `NODE_ENV=production` " +
      "marks production.\n",
    "| Variable | May be | Setting |",
    "|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
