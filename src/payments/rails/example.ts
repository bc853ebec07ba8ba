// What programs that pay have in common: they are printed in documents and run by callers, in their
// own environment.
import type { ClientPackage } from "../../core/billing/payment.ts";
import { usdText } from "../../core/billing/price.ts";
import type { RailTerms } from "./rail-terms.ts";

/** A complete program. */
export interface Example {
  readonly title: string;
  /** npm packages that it needs. */
  readonly packages: readonly ClientPackage[];
  readonly code: string;
}

/** Where a program pays, and how much. */
export interface ExamplePlace {
  /** Creates a key: the one purchase that needs nothing before it. */
  readonly createKeyUrl: string;
  /** Calls a chain, paid call by call. */
  readonly callUrl: string;
  /** The smallest purchase, nano-USD. */
  readonly minN: bigint;
}

/** The payer's account, from the environment of the program. */
export const ACCOUNT = `const account = privateKeyToAccount(process.env.MPPX_PRIVATE_KEY as \`0x\${string}\`);`;
/** What `ACCOUNT` imports. */
export const VIEM_ACCOUNT = 'import { privateKeyToAccount } from "viem/accounts";';

/** Lines that buy a key by a function like `fetch`. */
export function purchase(paying: string, { createKeyUrl, minN }: ExamplePlace): string {
  return [
    `const answer = await ${paying}("${createKeyUrl}", {`,
    '  method: "POST",',
    '  headers: { "content-type": "application/json" },',
    `  body: JSON.stringify({ initial_fund_usd: "${usdText(minN)}" }),`,
    "});",
    "console.log(answer.status, await answer.text());",
  ].join("\n");
}

/** A client for a local chain, which no library knows; empty elsewhere. */
export function localClient({ rpcUrl, local }: RailTerms): {
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
