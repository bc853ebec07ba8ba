// `/llms.txt`: describes an instance and lists its documents, in the format of llmstxt.org. A pure
// function of its facts and base URL.

import { type DocumentFacts, documentLinks, type Site, servedOperations } from "./facts.ts";
import { DOCUMENT_PATHS } from "./paths.ts";
import { firstSteps, paymentSteps, refusalNotes, salesText } from "./steps.ts";

/** The document. */
export function llmsText(facts: DocumentFacts, site: Site): string {
  const { hosted } = facts;
  return [
    "# svc\n",
    `> JSON-RPC for EVM chains over HTTP and WebSocket. Each request goes to one of several providers and to the next one when that fails.${
      hosted === null
        ? ""
        : " Calls are made with a key that carries a balance in compute units (CU); a first key is free."
    }\n`,
    `Chains: ${facts.chains.map((chain) => `${chain.name} (${chain.chainId})`).join(", ")}. Live values ` +
      `stand in ${site.baseUrl}${DOCUMENT_PATHS.agent}; where anything differs, that and ` +
      `${site.baseUrl}${DOCUMENT_PATHS.openapi} are right.\n`,
    gettingStarted(facts, site),
    ...(hosted === null || hosted.payments === null
      ? []
      : [
          `${salesText(facts)} What to do when a payment is not through at once: ` +
            `${site.baseUrl}${DOCUMENT_PATHS.skill}\n`,
        ]),
    refusals(facts, site),
    links(facts, site),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

function gettingStarted(facts: DocumentFacts, site: Site): string {
  const steps = [...firstSteps(facts, site), ...paymentSteps(facts, site)].map(
    ({ title, shell, note }, i) => `${i + 1}. ${title}. ${note}\n\n\`\`\`sh\n${shell}\n\`\`\`\n`,
  );
  return ["## First steps\n", ...steps].join("\n");
}

function refusals(facts: DocumentFacts, { baseUrl }: Site): string {
  const notes = refusalNotes(facts).map((note) => `- ${note}`);
  return [
    "## Refusals\n",
    ...notes,
    `- Errors of the service name \`next_action\`, those of calls \`retryable\` too. Errors of ` +
      "a provider pass unchanged, with HTTP status 200. All codes: " +
      `${baseUrl}${DOCUMENT_PATHS.errors}\n`,
  ].join("\n");
}

function links(facts: DocumentFacts, site: Site): string {
  const operations = servedOperations(facts).filter(
    (operation) =>
      operation.method === "GET" &&
      !operation.path.includes("{") &&
      operation.auth.includes("none"),
  );
  return [
    "## Documents\n",
    ...documentLinks(facts, site),
    "\n## Open endpoints\n",
    ...operations.map(
      (operation) =>
        `- [${operation.endpoint}](${site.baseUrl}${operation.path}): ${operation.summary}`,
    ),
    "",
  ].join("\n");
}

/** `/docs`: the list of an instance's documents. */
export function indexText(facts: DocumentFacts, site: Site): string {
  return [
    "# Documents\n",
    `svc ${facts.version}: JSON-RPC for EVM chains at ${site.baseUrl}.\n`,
    ...documentLinks(facts, site),
    "",
  ].join("\n");
}
