// How to pay from a program: complete, working examples for each rail of an instance, with its
// addresses and amounts.
import { pinned } from "../../core/billing/payment.ts";
import { DEFAULT_STRATEGY } from "../../core/routing/strategy.ts";
import { type ExamplePlace, examplesOf } from "../../payments/rails/rails.ts";
import { chainIn, type DocumentFacts } from "./facts.ts";
import { pathOf, SESSION_FORM } from "./operations.ts";
import type { Site } from "./site.ts";

/** One example per kind of rail; empty if nothing is sold. */
export function paymentFromCode(facts: DocumentFacts, { baseUrl }: Site): string {
  const terms = facts.hosted?.payments ?? null;
  if (terms === null) return "";
  const chain = chainIn(facts, facts.defaultProfile.withKey) ?? "{chain}";
  const place: ExamplePlace = {
    createKeyUrl: baseUrl + pathOf("createAgentKey"),
    callUrl:
      baseUrl + SESSION_FORM.replace("{strategy}", DEFAULT_STRATEGY).replace("{chain}", chain),
    minN: terms.minN,
  };
  const sections = examplesOf(terms.rails, place).map(
    ({ title, packages, code }) =>
      `**${title}** (\`npm install ${pinned(packages).join(" ")}\`):\n\n\`\`\`ts\n${code}\n\`\`\`\n`,
  );
  return (
    `### From code\n\nThe wallet's private key comes from the ` +
    `environment.\n\n${sections.join("\n")}`
  );
}
