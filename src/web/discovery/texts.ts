// The documents that are made of sections: `/agent.json`, `/SKILL.md`, `/llms.txt` in the format of
// llmstxt.org, and the list of documents. Each is a pure function of facts and base URL.
import { type DocumentFacts, type Site, servedOperations } from "./facts.ts";
import { sectionsOf } from "./guide.ts";
import { DOCUMENT_PATHS } from "./paths.ts";
import { bullets, type Json, markdownOf, type Section, valuesOf } from "./sections.ts";

/** `/agent.json`: chains, strategies, prices, limits and endpoints in live values. */
export function agentDocument(facts: DocumentFacts, site: Site): Json {
  return valuesOf(sectionsOf(facts, site));
}

/** `/SKILL.md`: how an agent uses an instance, step by step. */
export function skillText(facts: DocumentFacts, site: Site): string {
  return markdownOf(
    [
      FRONT_MATTER,
      "# Use svc",
      `Base URL: ${site.baseUrl}. Live values: ${site.baseUrl}${DOCUMENT_PATHS.agent} and ` +
        `${site.baseUrl}${DOCUMENT_PATHS.openapi}; where this text differs, they are right.`,
    ],
    sectionsOf(facts, site),
  );
}

const FRONT_MATTER = `---
name: svc
description: Calls EVM chains by JSON-RPC over HTTP or WebSocket through one URL that fails over between providers. Use it to read chain state, send signed transactions and subscribe to heads and logs.
---`;

/** `/llms.txt`: what an instance is, and the first commands. */
export function llmsText(facts: DocumentFacts, site: Site): string {
  const { hosted, chains } = facts;
  const keys =
    hosted === null
      ? ""
      : " Calls are made with a key that carries a balance in compute units (CU); a first key is " +
        "free.";
  const names = chains.map((chain) => `${chain.name} (${chain.chainId})`);
  return markdownOf(
    [
      "# svc",
      "> JSON-RPC for EVM chains over HTTP and WebSocket. Each request goes to one of several " +
        `providers and to the next one when that fails.${keys}`,
      `Chains: ${names.join(", ")}. Live values stand in ${site.baseUrl}${DOCUMENT_PATHS.agent}; ` +
        `where anything differs, that and ${site.baseUrl}${DOCUMENT_PATHS.openapi} are right.`,
    ],
    [
      ...sectionsOf(facts, site).filter(({ isBrief }) => isBrief),
      { title: "Documents", text: [bullets(documentLinks(facts, site))] },
      openEndpoints(facts, site),
    ],
  );
}

function openEndpoints(facts: DocumentFacts, { baseUrl }: Site): Section {
  const links = servedOperations(facts)
    .filter(
      ({ method, path, auth }) => method === "GET" && !path.includes("{") && auth.includes("none"),
    )
    .map(({ endpoint, path, summary }) => `[${endpoint}](${baseUrl}${path}): ${summary}`);
  return { title: "Open endpoints", text: [bullets(links)] };
}

/** `/docs`: the list of an instance's documents. */
export function indexText(facts: DocumentFacts, site: Site): string {
  const links = bullets(documentLinks(facts, site));
  const what = `svc ${facts.version}: JSON-RPC for EVM chains at ${site.baseUrl}.`;
  return markdownOf(["# Documents", what, links], []);
}

/** What each document is for, as Markdown links. */
function documentLinks({ hosted }: DocumentFacts, { baseUrl }: Site): readonly string[] {
  const [prices, uses] = hosted === null ? ["", ""] : [" prices,", ": keys, calls, payments"];
  const rows = [
    ["API reference", DOCUMENT_PATHS.api, "every operation with its fields"],
    ["Errors", DOCUMENT_PATHS.errors, "every code, what it means and what to do"],
    ["llms.txt", DOCUMENT_PATHS.llms, "what this instance is, and the first commands"],
    ["SKILL.md", DOCUMENT_PATHS.skill, `a guide for agents, step by step${uses}`],
    [
      "agent.json",
      DOCUMENT_PATHS.agent,
      `chains, strategies,${prices} limits and endpoints in live values`,
    ],
    [
      "openapi.json",
      DOCUMENT_PATHS.openapi,
      "OpenAPI 3.1 for code generators: every operation with its schemas, and the error catalogue",
    ],
  ];
  return rows.map(([name, path, about]) => `[${name}](${baseUrl}${path}): ${about}`);
}
