// `/docs`: the list of an instance's documents. A pure function of its facts and base URL.
import type { DocumentFacts } from "./facts.ts";
import { DOCUMENT_PATHS } from "./operations.ts";
import type { Site } from "./site.ts";

/** The document. */
export function indexText({ hosted, version }: DocumentFacts, { baseUrl }: Site): string {
  const link = (name: string, path: string, about: string): string =>
    `- [${name}](${baseUrl}${path}): ${about}`;
  return [
    "# Documents\n",
    `svc ${version}: JSON-RPC for EVM chains at ${baseUrl}.\n`,
    link("API reference", DOCUMENT_PATHS.api, "every operation with its fields"),
    link("Errors", DOCUMENT_PATHS.errors, "every code, what it means and what to do"),
    link("llms.txt", DOCUMENT_PATHS.llms, "what this instance is, and the first commands"),
    link(
      "SKILL.md",
      DOCUMENT_PATHS.skill,
      hosted === null ? "a guide for agents" : "a guide for agents: keys, calls, payments",
    ),
    link(
      "agent.json",
      DOCUMENT_PATHS.agent,
      `chains, strategies,${hosted === null ? "" : " prices,"} limits and endpoints in live values`,
    ),
    link("openapi.json", DOCUMENT_PATHS.openapi, "OpenAPI 3.1 for code generators"),
    "",
  ].join("\n");
}
