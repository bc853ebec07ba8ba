// EIP-3009 authorizations, MPP `evm`/`charge` and x402 `exact`, as documents know them.
// The rail itself is loaded when it is opened.
import { unitsOf } from "../../../core/billing/payment.ts";
import { ACCOUNT, type Example, type ExamplePlace, purchase, VIEM_ACCOUNT } from "../example.ts";
import type { RailKind } from "../rail-kind.ts";
import type { RailTerms } from "../rail-terms.ts";
import type { EvmRailSettings } from "./settings.ts";

/** The EIP-3009 rail. */
export const EVM: RailKind<EvmRailSettings> = {
  kind: "evm",
  method: "evm",
  intent: "charge",
  offers: ["mpp:evm/charge", "x402:exact"],
  stockProtocol: "x402",
  localNote: null,
  depositN: () => null,
  examples: (rail, place) => [x402Example(rail, place), evmExample(rail, place)],
  open: async (settings, parts) => (await import("./evm-rail.ts")).createEvmRail(settings, parts),
};

function evmExample(rail: RailTerms, place: ExamplePlace): Example {
  const code = [
    'import { Mppx } from "mppx/client";',
    'import { charge } from "mppx/evm/client";',
    VIEM_ACCOUNT,
    "",
    ACCOUNT,
    `const authorization = { name: ${JSON.stringify(rail.tokenName)}, version: ` +
      `${JSON.stringify(rail.tokenVersion)} };`,
    "const mppx = Mppx.create({ polyfill: false, methods: [charge({ account, authorization, " +
      `maxAtomicAmount: "${unitsOf(place.minN)}" })] });`,
    purchase("mppx.fetch", place),
  ];
  return { title: "MPP `evm` (EIP-3009)", packages: ["mppx", "viem"], code: code.join("\n") };
}

function x402Example(rail: RailTerms, place: ExamplePlace): Example {
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
      `maxAmountPerPayment: "${unitsOf(place.minN)}" }] },`,
    "});",
    "const paying = wrapFetchWithPayment(fetch, client);",
    purchase("paying", place),
  ];
  return {
    title: "x402 `exact`",
    packages: ["@x402/fetch", "@x402/evm", "viem"],
    code: code.join("\n"),
  };
}
