// `CONFORMANCE.md`: what came back unchanged of the official exchanges, the clients that were
// tried, and what a validator says of the OpenAPI documents.
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import type { DocumentFacts } from "../../src/web/discovery/facts.ts";
import { openApiDocument } from "../../src/web/discovery/openapi.ts";
import { HOSTED, ROUTER, SITE } from "../web/discovery/facts-fixture.ts";
import { type ExchangeResult, WAYS, type Way } from "./exchange-run.ts";
import { type Exchange, isOfAll, isRefused, servedOf } from "./exchanges.ts";

/** Where the document is. */
export const DOCUMENT = new URL("../../CONFORMANCE.md", import.meta.url);

const CLIENTS = "<!-- clients: written by `npm run clients` -->";
const CLIENTS_END = "<!-- /clients -->";

const TITLES: Readonly<Record<Way, string>> = {
  http: "HTTP",
  batch: "in a batch",
  socket: "WebSocket",
  again: "asked again",
  failover: "after a failure",
};

/** The document; the part about clients is kept as it is. */
export async function conformanceDocument(
  exchanges: readonly Exchange[],
  result: ExchangeResult,
): Promise<string> {
  const refused = exchanges.filter(isRefused);
  const ofAll = exchanges.filter(isOfAll);
  return `# Conformance

Written by \`npm run conformance\`; \`npm test\` fails where it is out of date.

## Ethereum execution APIs

The exchanges of [ethereum/execution-apis](https://github.com/ethereum/execution-apis/tree/033ca6e69da000445840d2060ff47e5e56172a86/tests) (CC0 1.0, ${exchanges.length} requests; kept in \`test/data/execution-apis.txt.gz\`) are given by scripted providers, and each answer is compared byte for byte with the one that a node gave: over HTTP, in batches, over a WebSocket, asked again where answers of final blocks come from the cache, and while another provider fails before each answer. Settings are the default ones, except that tags go to the provider as they are written (\`consistency: off\`).

${exchangeTable(exchanges, result)}

Not served: ${refused.length} requests of \`testing_*\`, which are for nodes under test and are refused as \`method_blocked\`. Answered with what all providers have together, in the form of the exchange: ${ofAll.length} request of \`eth_capabilities\`.

## Stock clients

${CLIENTS}${clientsPart()}${CLIENTS_END}

## OpenAPI

\`GET /openapi.json\`, checked with a validator of OpenAPI 3.1; \`test/operations\` holds the answers of the service against it.

${await openApiTable()}
`;
}

function exchangeTable(exchanges: readonly Exchange[], { differences }: ExchangeResult): string {
  const served = servedOf(exchanges);
  const line = (name: string, those: readonly Exchange[]): string => {
    const unchanged = WAYS.map((way) => {
      const others = differences.filter(
        (each) => each.way === way && those.includes(each.exchange),
      ).length;
      return `${those.length - others}`;
    });
    return `| ${name} | ${those.length} | ${unchanged.join(" | ")} |`;
  };
  const byMethod = Map.groupBy(served, ({ method }) => method);
  return [
    `| Method | Requests | ${WAYS.map((way) => TITLES[way]).join(" | ")} |`,
    `|---|---|${WAYS.map(() => "---|").join("")}`,
    ...[...byMethod].sort().map(([method, those]) => line(`\`${method}\``, those)),
    line("all, unchanged", served),
  ].join("\n");
}

/** What stands there about clients. */
function clientsPart(): string {
  const text = readFileSync(DOCUMENT, "utf8");
  return text.slice(text.indexOf(CLIENTS) + CLIENTS.length, text.indexOf(CLIENTS_END));
}

async function openApiTable(): Promise<string> {
  const lines = [];
  for (const [name, facts] of [
    ["a router", ROUTER],
    ["a hosted service", HOSTED],
  ] as const)
    lines.push(`| ${name} | ${operationsOf(facts)} | ${await validityOf(facts)} |`);
  return ["| Of | Operations | Valid |", "|---|---|---|", ...lines].join("\n");
}

function operationsOf(facts: DocumentFacts): number {
  const { paths } = documentOf(facts);
  return Object.values(paths).flatMap((path) => Object.keys(path)).length;
}

async function validityOf(facts: DocumentFacts): Promise<string> {
  const { valid, errors } = await new Validator().validate(documentOf(facts));
  return valid ? "yes" : `no: ${JSON.stringify(errors)}`;
}

function documentOf(facts: DocumentFacts): { readonly paths: Readonly<Record<string, object>> } {
  return JSON.parse(JSON.stringify(openApiDocument(facts, SITE)));
}
