// How to pay from a program: complete examples for the rails of an instance, with its addresses and
// amounts. They run as they stand.
import { unitsOf } from "../../core/billing/payment.ts";
import { usdText } from "../../core/billing/price.ts";
import { chainIn, type DocumentFacts } from "./facts.ts";
import { pathOf, SESSION_FORM } from "./operations.ts";
import type { PaymentTerms, RailTerms } from "./payment-terms.ts";
import type { Site } from "./site.ts";

interface Example {
  readonly title: string;
  /** npm packages that it needs. */
  readonly packages: string;
  readonly code: string;
}

/** An example for each kind of rail; empty where nothing is sold. */
export function paymentFromCode(facts: DocumentFacts, site: Site): string {
  const terms = facts.hosted?.payments ?? null;
  if (terms === null) return "";
  const rails: readonly (RailTerms | undefined)[] = ["tempo", "evm", "session"].map((kind) =>
    terms.rails.find((rail) => rail.kind === kind),
  );
  const examples = rails.flatMap((rail) =>
    rail === undefined ? [] : examplesOf(rail, terms, { facts, site }),
  );
  const sections = examples.map(
    ({ title, packages, code }) =>
      `**${title}** (\`npm install ${packages}\`):\n\n\`\`\`ts\n${code}\n\`\`\`\n`,
  );
  return (
    `### From code\n\nThe wallet's private key comes from the ` +
    `environment.\n\n${sections.join("\n")}`
  );
}

interface Where {
  readonly facts: DocumentFacts;
  readonly site: Site;
}

function examplesOf(rail: RailTerms, terms: PaymentTerms, where: Where): readonly Example[] {
  switch (rail.kind) {
    case "tempo":
      return [tempoExample(rail, terms, where)];
    case "evm":
      return [x402Example(rail, terms, where), evmExample(rail, terms, where)];
    case "session":
      return [sessionExample(rail, where)];
  }
}

const ACCOUNT = `const account = privateKeyToAccount(process.env.MPPX_PRIVATE_KEY as \`0x\${string}\`);`;
const VIEM_ACCOUNT = 'import { privateKeyToAccount } from "viem/accounts";';

/** Buys a key: the one request that needs nothing before it. */
function purchase(paying: string, { minN }: Pick<PaymentTerms, "minN">, { baseUrl }: Site): string {
  return [
    `const answer = await ${paying}("${baseUrl}${pathOf("createAgentKey")}", {`,
    '  method: "POST",',
    '  headers: { "content-type": "application/json" },',
    `  body: JSON.stringify({ initial_fund_usd: "${usdText(minN)}" }),`,
    "});",
    "console.log(answer.status, await answer.text());",
  ].join("\n");
}

/** A client for a local chain, which no library knows; empty elsewhere. */
function localClient({ rpcUrl, local }: RailTerms): {
  readonly imports: readonly string[];
  readonly client: string | null;
} {
  if (!local || rpcUrl === null) return { imports: [], client: null };
  const imports = [
    'import { createClient, http } from "viem";',
    'import { tempoLocalnet } from "viem/chains";',
  ];
  return {
    imports,
    client: `createClient({ account, chain: tempoLocalnet, transport: http("${rpcUrl}") })`,
  };
}

function tempoExample(rail: RailTerms, terms: PaymentTerms, { site }: Where): Example {
  const { imports, client } = localClient(rail);
  const option = client === null ? "" : `, getClient: () => ${client}`;
  const code = [
    'import { Mppx, tempo } from "mppx/client";',
    ...imports,
    VIEM_ACCOUNT,
    "",
    ACCOUNT,
    `const mppx = Mppx.create({ polyfill: false, methods: [tempo.charge({ account${option} })] });`,
    purchase("mppx.fetch", terms, site),
  ];
  return { title: "MPP `tempo`", packages: "mppx viem", code: code.join("\n") };
}

function evmExample(rail: RailTerms, terms: PaymentTerms, { site }: Where): Example {
  const code = [
    'import { Mppx } from "mppx/client";',
    'import { charge } from "mppx/evm/client";',
    VIEM_ACCOUNT,
    "",
    ACCOUNT,
    `const authorization = { name: ${JSON.stringify(rail.tokenName)}, version: ` +
      `${JSON.stringify(rail.tokenVersion)} };`,
    "const mppx = Mppx.create({ polyfill: false, methods: [charge({ account, authorization, " +
      `maxAtomicAmount: "${unitsOf(terms.minN)}" })] });`,
    purchase("mppx.fetch", terms, site),
  ];
  return { title: "MPP `evm` (EIP-3009)", packages: "mppx viem", code: code.join("\n") };
}

function x402Example(rail: RailTerms, terms: PaymentTerms, { site }: Where): Example {
  const code = [
    'import { ExactEvmScheme } from "@x402/evm/exact/client";',
    'import { wrapFetchWithPayment, x402Client } from "@x402/fetch";',
    VIEM_ACCOUNT,
    "",
    ACCOUNT,
    `const network = "eip155:${rail.chainId}";`,
    "const client = x402Client.fromConfig({",
    "  schemes: [{ network, client: new ExactEvmScheme(account) }],",
    "  // The most that one payment may be, in base units; without an entry only well-known " +
      "tokens are paid, and 1 USD at most.",
    `  spendControls: { allowedAssets: [{ network, asset: "${rail.token}", ` +
      `maxAmountPerPayment: "${unitsOf(terms.minN)}" }] },`,
    "});",
    "const paying = wrapFetchWithPayment(fetch, client);",
    purchase("paying", terms, site),
  ];
  return { title: "x402 `exact`", packages: "@x402/fetch @x402/evm viem", code: code.join("\n") };
}

function sessionExample(rail: RailTerms, { facts, site }: Where): Example {
  const { imports, client } = localClient(rail);
  const option = client === null ? "" : `, client: ${client}`;
  const path = SESSION_FORM.replace("{strategy}", "load-balanced").replace(
    "{chain}",
    chainIn(facts, facts.defaultProfile.withKey) ?? "{chain}",
  );
  const call = '{ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] }';
  const code = [
    'import { tempo } from "mppx/client";',
    ...imports,
    VIEM_ACCOUNT,
    "",
    ACCOUNT,
    "const session = tempo.session.manager({ account, maxDeposit: " +
      `"${usdText(rail.depositN ?? 1_000_000_000n)}"${option} });`,
    `const answer = await session.fetch("${site.baseUrl}${path}", {`,
    '  method: "POST",',
    '  headers: { "content-type": "application/json" },',
    `  body: JSON.stringify(${call}),`,
    "});",
    "console.log(answer.status, await answer.text());",
    "await session.close(); // returns what is left of the deposit",
  ];
  return {
    title: "Call by call, without a key (MPP `tempo`/`session`)",
    packages: "mppx viem",
    code: code.join("\n"),
  };
}
