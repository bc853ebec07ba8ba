// MPP `tempo`/`session`, pay-per-call, as documents know it. Its payments are no
// purchases: `payments/session/` takes them.
import { usdText } from "../../../core/billing/price.ts";
import { ACCOUNT, type Example, type ExamplePlace, localClient, VIEM_ACCOUNT } from "../example.ts";
import type { RailKind } from "../rail-kind.ts";
import type { RailTerms } from "../rail-terms.ts";
import type { SessionRailSettings } from "./settings.ts";

/** The rail of pay-per-call. */
export const SESSION: RailKind<SessionRailSettings> = {
  kind: "session",
  method: "tempo",
  intent: "session",
  offers: ["mpp:tempo/session"],
  stockProtocol: "mpp",
  localNote: "Its channel contract is a stand-in for development.",
  depositN: ({ depositN }) => depositN,
  examples: (rail, place) => [sessionExample(rail, place)],
  open: null,
};

function sessionExample(rail: RailTerms, { callUrl }: ExamplePlace): Example {
  const { imports, client } = localClient(rail);
  const option = client === null ? "" : `, client: ${client}`;
  const call = '{ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] }';
  const code = [
    'import { tempo } from "mppx/client";',
    ...imports,
    VIEM_ACCOUNT,
    "",
    ACCOUNT,
    "const session = tempo.session.manager({ account, maxDeposit: " +
      `"${usdText(rail.depositN ?? 1_000_000_000n)}"${option} });`,
    `const answer = await session.fetch("${callUrl}", {`,
    '  method: "POST",',
    '  headers: { "content-type": "application/json" },',
    `  body: JSON.stringify(${call}),`,
    "});",
    "console.log(answer.status, await answer.text());",
    "await session.close(); // returns what is left of the deposit",
  ];
  return {
    title: "Call by call, without a key (MPP `tempo`/`session`)",
    packages: ["mppx", "viem"],
    code: code.join("\n"),
  };
}
