// The table of rails. A new rail is a folder beside this file, a row here, and its settings in the
// configuration.

import { type ClientPackage, unitsOf } from "../../core/billing/payment.ts";
import { usdText } from "../../core/billing/price.ts";
import type { Rail } from "./rail.ts";
import type {
  EvmRailSettings,
  RailNames,
  RailParts,
  RailTerms,
  SessionRailSettings,
  TempoRailSettings,
} from "./rail-kind.ts";

/** One configured way to pay. */
export type RailSettings = TempoRailSettings | EvmRailSettings | SessionRailSettings;

/** Settings of payments. Holds secrets: never log it. */
export interface PaymentSettings {
  readonly rails: readonly RailSettings[];
  /** Bounds of one purchase, nano-USD. */
  readonly minN: bigint;
  readonly maxN: bigint;
  /** Price of a day of Custom access, nano-USD, and most days per purchase. */
  readonly customDayN: bigint;
  readonly maxCustomDays: number;
  /** How long a request waits for its payment to settle before it is answered `payment_pending`. */
  readonly waitMs: number;
  /** How long an offer is valid. */
  readonly offerMs: number;
}

type KindName = RailSettings["kind"];

const RAILS: Readonly<Record<KindName, Omit<RailNames, "kind">>> = {
  tempo: {
    method: "tempo",
    intent: "charge",
    offers: ["mpp:tempo/charge"],
    stockProtocol: "mpp",
    localNote: null,
  },
  evm: {
    method: "evm",
    intent: "charge",
    offers: ["mpp:evm/charge", "x402:exact"],
    stockProtocol: "x402",
    localNote: null,
  },
  session: {
    method: "tempo",
    intent: "session",
    offers: ["mpp:tempo/session"],
    stockProtocol: "mpp",
    localNote: "Its channel contract is a stand-in for development.",
  },
};

/** Programs that pay by each kind of rail. */
const EXAMPLES: Readonly<
  Record<KindName, readonly ((rail: RailTerms, place: ExamplePlace) => Example)[]>
> = {
  tempo: [tempoExample],
  evm: [x402Example, evmExample],
  session: [sessionExample],
};

/** The kinds of rails. */
export const RAIL_KINDS: readonly KindName[] = ["tempo", "evm", "session"];

/** Loads the libraries of a configured rail and opens it; null = its payments are no purchases. */
export async function openRail(settings: RailSettings, parts: RailParts): Promise<Rail | null> {
  switch (settings.kind) {
    case "tempo":
      return (await import("./tempo/tempo-rail.ts")).createTempoRail(settings, parts);
    case "evm":
      return (await import("./evm/evm-rail.ts")).createEvmRail(settings, parts);
    case "session":
      return null;
  }
}

/** What documents say of a configured rail. */
export function railTerms(settings: RailSettings): RailTerms {
  const { kind, chainId, token, recipient, local, rpcUrl } = settings;
  return {
    ...RAILS[kind],
    kind,
    chainId,
    token: token.address,
    tokenName: token.name,
    tokenVersion: token.version,
    recipient,
    depositN: kind === "session" ? settings.depositN : null,
    local,
    rpcUrl: local ? rpcUrl : null,
  };
}

/** Programs that pay by the rails of an instance: those of the first rail of each kind. */
export function examplesOf(rails: readonly RailTerms[], place: ExamplePlace): readonly Example[] {
  return RAIL_KINDS.flatMap((kind) => {
    const rail = rails.find((other) => other.kind === kind);
    return rail === undefined ? [] : EXAMPLES[kind].map((exampleOf) => exampleOf(rail, place));
  });
}

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

/** A program whose payer's account comes from its environment. */
function program(
  [title, packages]: readonly [string, readonly ClientPackage[]],
  imports: readonly string[],
  lines: readonly string[],
): Example {
  const code = [
    ...imports,
    'import { privateKeyToAccount } from "viem/accounts";',
    "",
    `const account = privateKeyToAccount(process.env.MPPX_PRIVATE_KEY as \`0x\${string}\`);`,
    ...lines,
  ];
  return { title, packages, code: code.join("\n") };
}

/** Lines that send JSON by a function like `fetch`. */
function post(paying: string, url: string, body: string): readonly string[] {
  return [
    `const answer = await ${paying}("${url}", {`,
    '  method: "POST",',
    '  headers: { "content-type": "application/json" },',
    `  body: JSON.stringify(${body}),`,
    "});",
    "console.log(answer.status, await answer.text());",
  ];
}

/** Lines that buy a key. */
function purchase(paying: string, { createKeyUrl, minN }: ExamplePlace): string {
  return post(paying, createKeyUrl, `{ initial_fund_usd: "${usdText(minN)}" }`).join("\n");
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

function evmExample(rail: RailTerms, place: ExamplePlace): Example {
  return program(
    ["MPP `evm` (EIP-3009)", ["mppx", "viem"]],
    ['import { Mppx } from "mppx/client";', 'import { charge } from "mppx/evm/client";'],
    [
      `const authorization = { name: ${JSON.stringify(rail.tokenName)}, version: ` +
        `${JSON.stringify(rail.tokenVersion)} };`,
      "const mppx = Mppx.create({ polyfill: false, methods: [charge({ account, authorization, " +
        `maxAtomicAmount: "${unitsOf(place.minN)}" })] });`,
      purchase("mppx.fetch", place),
    ],
  );
}

function x402Example(rail: RailTerms, place: ExamplePlace): Example {
  return program(
    ["x402 `exact`", ["@x402/fetch", "@x402/evm", "viem"]],
    [
      'import { ExactEvmScheme } from "@x402/evm/exact/client";',
      'import { wrapFetchWithPayment, x402Client } from "@x402/fetch";',
    ],
    [
      `const network = "eip155:${rail.chainId}";`,
      "const client = x402Client.fromConfig({",
      "  schemes: [{ network, client: new ExactEvmScheme(account) }],",
      "  // The most that one payment may be, in base units; without an entry only well-known " +
        "tokens are paid, and 1 USD at most.",
      `  spendControls: { allowedAssets: [{ network, asset: "${rail.token}", ` +
        `maxAmountPerPayment: "${unitsOf(place.minN)}" }] },`,
      "});",
      "const paying = wrapFetchWithPayment(fetch, client);",
      purchase("paying", place),
    ],
  );
}

function tempoExample(rail: RailTerms, place: ExamplePlace): Example {
  const { imports, client } = localClient(rail);
  const option = client === null ? "" : `, getClient: () => ${client}`;
  return program(
    ["MPP `tempo`", ["mppx", "viem"]],
    ['import { Mppx, tempo } from "mppx/client";', ...imports],
    [
      `const mppx = Mppx.create({ polyfill: false, methods: [tempo.charge({ account${option} })] });`,
      purchase("mppx.fetch", place),
    ],
  );
}

function sessionExample(rail: RailTerms, { callUrl }: ExamplePlace): Example {
  const { imports, client } = localClient(rail);
  const option = client === null ? "" : `, client: ${client}`;
  const call = '{ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] }';
  return program(
    ["Call by call, without a key (MPP `tempo`/`session`)", ["mppx", "viem"]],
    ['import { tempo } from "mppx/client";', ...imports],
    [
      "const session = tempo.session.manager({ account, maxDeposit: " +
        `"${usdText(rail.depositN ?? 1_000_000_000n)}"${option} });`,
      ...post("session.fetch", callUrl, call),
      "await session.close(); // returns what is left of the deposit",
    ],
  );
}
