// `/SKILL.md`: how an agent uses an instance, step by step, with current values. A pure function of
// its facts and base URL.

import {
  cacheShareOf,
  cuOf,
  notificationCuOf,
  rangePriceOf,
  type Tariff,
} from "../../core/billing/price.ts";
import { STRATEGY_NAMES } from "../../core/routing/strategy.ts";
import type { MethodTable } from "../../core/rpc/method-table.ts";
import { SUBSCRIPTION_KINDS, VENDOR_KINDS } from "../../core/stream/subscription.ts";
import { cuPerUsd, PRICE_EXAMPLES, priceOf } from "./agent-json.ts";
import { errorEntries, statusText } from "./errors.ts";
import {
  chainIn,
  type DocumentFacts,
  type HostedFacts,
  pathOf,
  rpcForms,
  SESSION_FORM,
  type Site,
  sellsCalls,
} from "./facts.ts";
import { DOCUMENT_PATHS } from "./paths.ts";
import { cell, prose, table } from "./schema-text.ts";
import {
  type FirstStep,
  firstSteps,
  PAYMENT_NOTES,
  paymentFromCode,
  paymentSteps,
  refusalNotes,
  salesText,
} from "./steps.ts";

/** The document. */
export function skillText(facts: DocumentFacts, site: Site): string {
  const { hosted } = facts;
  return [
    FRONT_MATTER,
    "# Use svc\n",
    `Base URL: ${site.baseUrl}. Live values: ${site.baseUrl}${DOCUMENT_PATHS.agent} and ` +
      `${site.baseUrl}${DOCUMENT_PATHS.openapi}; where this text differs, they are right.\n`,
    chains(facts),
    steps(facts, site),
    ...(hosted === null ? [] : [payments(facts, site)]),
    urls(facts),
    subscribing(facts, site),
    EVIDENCE,
    ...(hosted === null ? [] : [accounts(site), pricing(hosted, facts.methods)]),
    errors(facts, site),
  ].join("\n");
}

const FRONT_MATTER = `---
name: svc
description: Calls EVM chains by JSON-RPC over HTTP or WebSocket through one URL that fails over between providers. Use it to read chain state, send signed transactions and subscribe to heads and logs.
---
`;

function chains({ chains }: DocumentFacts): string {
  const rows = chains.map((chain) => [
    `\`${chain.name}\``,
    String(chain.chainId),
    cell(chain.title),
    chain.aliases.join(", "),
    chain.subscriptions.join(", "),
  ]);
  return (
    `## Chains\n\nA chain is named by name, alias or decimal ` +
    `id.\n\n${table(["Name", "Id", "Title", "Aliases", "Subscriptions"], rows)}`
  );
}

function steps(facts: DocumentFacts, site: Site): string {
  return ["## First steps\n", ...numbered(firstSteps(facts, site))].join("\n");
}

function numbered(steps: readonly FirstStep[]): readonly string[] {
  return steps.map(
    ({ title, shell, note }, i) =>
      `### ${i + 1}. ${title}\n\n\`\`\`sh\n${shell}\n\`\`\`\n\n${note}\n`,
  );
}

function payments(facts: DocumentFacts, site: Site): string {
  const steps = paymentSteps(facts, site);
  const notes =
    steps.length === 0
      ? []
      : [
          `### When a payment is not through\n\n${PAYMENT_NOTES.map((note) => `- ${note}\n`).join("")}`,
        ];
  return [
    `## Pay\n\n${salesText(facts)}\n`,
    ...numbered(steps),
    paymentFromCode(facts, site),
    ...notes,
  ].join("\n");
}

function urls(facts: DocumentFacts): string {
  const { hosted } = facts;
  const key =
    hosted === null
      ? "No key is needed."
      : `${hosted.keyless ? "A key may be left out." : "Every call needs a key."} It stands in ` +
        `the path (\`/rpc/k/{key}/…\`), or in \`Authorization: Bearer\`, \`X-Svc-Api-Key\` or ` +
        `\`?key=\` on the forms without it. With a key on profile \`public\`, and wherever the ` +
        `free allowance pays, the strategy is always load-balanced; \`svc_meta.strategy\` tells ` +
        `which was used. \`x-svc-access\` tells how a call was served, and \`x-svc-fallback\` ` +
        `that it was served elsewhere than asked for: \`payment\` (nothing pays any more, public ` +
        `providers for a while), \`free\` (the free allowance), \`profile\` (the named profile ` +
        "is gone or rests).";
  return `## URLs

POST JSON-RPC 2.0, one call or a batch of up to ${facts.limits.maxBatchItems}, in at most ${facts.limits.maxBodyBytes} bytes. The same paths under \`/ws\` are WebSockets.

${rpcForms(facts)
  .map((form) => `- \`${form}\``)
  .join(
    "\n",
  )}${sellsCalls(hosted?.payments ?? null) ? `\n- \`${SESSION_FORM}\` (paid for call by call, without a key)` : ""}

Strategies: ${STRATEGY_NAMES.map((strategy) => `\`${strategy}\``).join(", ")}; \`${facts.defaultStrategy}\` where none is named. ${key}

Profiles: ${facts.profiles.map((profile) => `\`${profile.slug}\` (${profile.chains.join(", ")})`).join("; ")}.
`;
}

function subscribing(facts: DocumentFacts, { socketUrl }: Site): string {
  const isKeyless = facts.hosted === null || facts.hosted.keyless;
  const { withKey, withoutKey } = facts.defaultProfile;
  const profile = isKeyless ? withoutKey : withKey;
  const chain = chainIn(facts, profile);
  if (chain === null) return `## Subscribe\n\nProfile \`${profile}\` serves no chain.\n`;
  const path = isKeyless ? `/ws/rpc/${chain}` : `/ws/rpc/k/$KEY/load-balanced/${chain}`;
  const paid =
    facts.hosted === null
      ? ""
      : ", 1008 with a reason (`balance_exhausted`, `key_revoked`, `default_profile_changed`)";
  return `## Subscribe

Open \`${socketUrl}${path}\` and send:

\`\`\`json
{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}
\`\`\`

The answer's \`result\` is the id of the subscription; events follow as \`eth_subscription\` with \`params.subscription\` and \`params.result\`. Kinds: ${SUBSCRIPTION_KINDS.map((kind) => `\`${kind}\``).join(", ")}; the table of chains tells which a chain has. Where no provider has a WebSocket, heads and logs are polled. ${VENDOR_KINDS.map((kind) => `\`${kind}\``).join(", ")} are passed on from one provider that serves them, as they come; the socket is closed with 1011 when that provider is lost.
A subscription goes on at another provider when its own fails. Where that cannot be done without a gap, the socket is closed with 1011: connect and subscribe again. Other codes: 1012 the service restarts, 1013 reading too slowly, 1002 no answer to pings${paid}.
One socket has at most ${facts.limits.maxSocketSubscriptions} subscriptions and ${facts.limits.maxSocketRequests} requests under way; send as many as you like, further ones wait in order.
`;
}

const EVIDENCE = `## See how a call was routed

\`?include_meta=body\` adds \`svc_meta\` to the answer; \`?include_meta=headers\` adds the header \`x-svc-meta\` (the same as JSON in unpadded base64url). On a WebSocket put \`"svc_meta": "notify"\` into the request. It tells strategy, candidates, who answered, attempts and latencies. Name \`x-svc-request-id\` when you report something.
`;

function accounts({ baseUrl }: Site): string {
  return `## Manage several keys

\`\`\`sh
curl -s -X POST ${baseUrl}${pathOf("createKey")} -H 'content-type: application/json' -d '{"name":"first"}'
\`\`\`

creates an account with a key and answers its \`management_token\`, shown only there. The account starts without credit. Send the token as \`Authorization: Bearer\` to create, list, change, rotate and delete keys (\`${pathOf("listKeys")}\`, \`${pathOf("rotateKey")}\`) and to read the account (\`${pathOf("getCurrentAccount")}\`). The token does not make RPC calls; keys do.

## Work for a person

A key of yours can become a person's: send them the link that

\`\`\`sh
curl -s -X POST "${baseUrl}${pathOf("createAgentClaimLink").replace("{key}", "$KEY")}"
\`\`\`

answers as \`claim_url\`. It works once, for \`expires_in\` seconds, and shows what is claimed; a new link ends the old one. The key goes on working, and its balance is the person's. An agent with an account links the whole account with \`POST ${pathOf("createAccountClaimLink")}\`.

To manage an account that a person has, ask for a connection:

\`\`\`sh
curl -s -X POST ${baseUrl}${pathOf("createConnection")} -H 'content-type: application/json' -d '{"name":"my agent"}'
\`\`\`

answers \`approval_url\` for the person and a \`token\` for you. Read \`GET ${pathOf("getConnection")}\` with that token every 5 seconds or less often; once the person has approved, it answers a management token, once.
`;
}

function pricing(
  { tariff, freeCuPerMonth, startingGrantCu }: HostedFacts,
  methods: MethodTable,
): string {
  const priced = PRICE_EXAMPLES.map((name) => ({
    name: `\`${name}\``,
    price: priceOf(tariff, (strategy) => cuOf(tariff, methods.of(name), strategy)),
  }));
  const all = [
    ...priced,
    {
      name: "a notification",
      price: priceOf(tariff, (strategy) => notificationCuOf(tariff, strategy)),
    },
  ];
  const rows = all.map(({ name, price }) => [
    name,
    ...STRATEGY_NAMES.map((strategy) => `${price[strategy].cu} CU, ${price[strategy].usd} USD`),
  ]);
  return `## Prices

${cuPerUsd(tariff)} CU cost 1 USD. Calls that a provider answered are charged, and calls that were sent to one and left before the answer.${cachePrice(tariff)} A new anonymous key has ${startingGrantCu} CU; an account may use ${freeCuPerMonth} CU a month on public providers. All methods: \`GET ${pathOf("getPricing")}\`.

${rangePrice(cuOf(tariff, methods.of("eth_getLogs"), "load-balanced"))}

${table(["Call", ...STRATEGY_NAMES], rows)}`;
}

/** What calls over ranges of blocks cost. */
function rangePrice(cu: number): string {
  const { methods, rule, example } = rangePriceOf(cu);
  const names = methods.map((name) => `\`${name}\``).join(", ");
  return `Ranges of blocks (${names}): ${rule}. Example: \`${example.method}\` over ${example.blocks} blocks, of which a provider accepts ${example.blocks_per_part}, has ${example.parts} parts and costs ${example.cu} CU.`;
}

/** What answers from the cache cost, where that is less; empty = as much as any other. */
function cachePrice(tariff: Tariff): string {
  const { cachePercent } = tariff;
  if (cacheShareOf(tariff) === 1) return "";
  return ` An answer from the cache costs ${cachePercent} % of its CU, rounded up; credit for the whole price is needed to ask.`;
}

function errors(facts: DocumentFacts, { baseUrl }: Site): string {
  const rows = errorEntries(facts.hosted !== null).map((entry) => {
    const surface = entry.surface === "json_rpc" ? "RPC" : "API";
    return [
      `\`${entry.code}\``,
      surface,
      statusText(entry),
      entry.retryable ? "yes" : "no",
      cell(prose(entry.nextAction)),
    ];
  });
  const notes = refusalNotes(facts).map((note) => `- ${note}\n`);
  return `## Errors

RPC errors of the service carry \`error.data.code\`, \`next_action\` and \`retryable\`; API errors \`error.code\` and \`error.next_action\`. A provider's error passes unchanged. More on each: ${baseUrl}${DOCUMENT_PATHS.errors}

${notes.join("")}
${table(["Code", "Where", "HTTP", "Retry", "Next action"], rows)}`;
}
