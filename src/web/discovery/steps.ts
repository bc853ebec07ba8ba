// The first steps with an instance as working shell commands, and how to handle its refusals.
// Shared by several documents.

import { MPPX_COMMAND, pinned } from "../../core/billing/payment.ts";
import { usdText } from "../../core/billing/price.ts";
import { DEFAULT_STRATEGY } from "../../core/routing/strategy.ts";
import type { RailTerms } from "../../payments/rails/rail-kind.ts";
import { type ExamplePlace, examplesOf } from "../../payments/rails/rails.ts";
import { BATCH_DEADLINE_MS } from "../rpc/pacer.ts";
import {
  chainIn,
  type DocumentFacts,
  type HostedFacts,
  type PaymentTerms,
  pathOf,
  SESSION_FORM,
  type Site,
} from "./facts.ts";

/** A step: its purpose and its shell commands. */
export interface FirstStep {
  readonly title: string;
  readonly shell: string;
  readonly note: string;
}

const CALL =
  "-H 'content-type: application/json' -d " +
  `'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'`;

/** The steps to a first answered call. They share one shell. */
export function firstSteps(facts: DocumentFacts, { baseUrl }: Site): readonly FirstStep[] {
  const { hosted, defaultProfile } = facts;
  const chain = chainIn(facts, defaultProfile.withoutKey) ?? "{chain}";
  const chainWithKey = chainIn(facts, defaultProfile.withKey) ?? "{chain}";
  if (hosted === null || hosted.keyless) {
    const call = {
      title: "Call",
      shell: `curl -s ${baseUrl}/rpc/${chain} ${CALL}`,
      note: hosted === null ? "No key is needed." : "Calls without a key are not metered here.",
    };
    return hosted === null ? [call] : [call, ...keyedSteps(hosted, chainWithKey, baseUrl)];
  }
  return keyedSteps(hosted, chainWithKey, baseUrl);
}

function keyedSteps(
  { startingGrantCu, tariff, keysPerHour }: HostedFacts,
  chain: string,
  baseUrl: string,
): readonly FirstStep[] {
  const keys = baseUrl + pathOf("createAgentKey");
  const worth = usdText(startingGrantCu * tariff.nanoPerCu);
  return [
    {
      title: "Create a key",
      shell: `KEY=$(curl -s -X POST ${keys} | sed -n 's/.*"key": *"\\([^"]*\\)".*/\\1/p'); echo "$KEY"`,
      note:
        `No credential is needed. The key starts with ${startingGrantCu} CU (${worth} USD) and ` +
        `is shown only here: keep it. One address may create ${keysPerHour} keys an hour.`,
    },
    {
      title: "Call with the key",
      shell: `curl -s "${baseUrl}/rpc/k/$KEY/load-balanced/${chain}" ${CALL}`,
      note:
        "With `-i` curl shows the headers that tell what it cost: `x-svc-cu`, `x-svc-usd`, " +
        "`x-svc-balance-usd`.",
    },
    {
      title: "Read the balance",
      shell: `curl -s "${keys}/$KEY"`,
      note: "`balance_cu` and `estimated_requests` tell what is left.",
    },
  ];
}

/** How to handle refusals that callers with a key may get; empty for an instance without keys. */
export function refusalNotes({ hosted }: DocumentFacts): readonly string[] {
  if (hosted === null) return [];
  const { freeCuPerMonth, buckets, payments } = hosted;
  const paying =
    payments === null
      ? "Payments are not open on this instance."
      : "The answer carries offers to fund the key: sign one and send the same request again " +
        "with it. A batch answers 200 with this error in each item and carries no offer: send " +
        "one call, or fund the key. WebSockets take no payment: fund the key over HTTP.";
  const allowance =
    freeCuPerMonth === 0
      ? ""
      : ` An account made with \`POST ${pathOf("createKey")}\` may use ${freeCuPerMonth} CU a ` +
        `month on public providers, at load-balanced; \`included_usage.resets_at\` of \`GET ` +
        `${pathOf("getCurrentAccount")}\` tells when it begins anew. Anonymous keys have no such ` +
        "allowance.";
  return [
    `**402 \`balance_exhausted\`**: nothing is left that pays for the call. Repeating it does ` +
      `not help.${allowance} ${paying}`,
    `**429 \`rate_limit_exceeded\`**: wait the seconds that \`Retry-After\` names, then send ` +
      `the same request. An account has ${buckets.managed.perSecond} requests a second ` +
      `(${buckets.managed.burst} at once) with premium access, ${buckets.reduced.perSecond} ` +
      `(${buckets.reduced.burst}) where public providers stand in for it, and ` +
      `${buckets.public.perSecond} (${buckets.public.burst}) on profile \`public\`. Each item of ` +
      "a batch counts; items of a batch and requests on a WebSocket wait for the rate, up to " +
      `${BATCH_DEADLINE_MS / 1_000} seconds, and are then refused one by one. Two batches or ` +
      `WebSockets of an account may wait at once, a third gets 429. \`RateLimit\` tells what is left.`,
    "**401 `unauthorized` or `key_revoked`**: the key does not exist, is mistyped, or was " +
      "deleted or replaced. Use the current key or create another one.",
    "**`unavailable`** (-32002; HTTP 200 where no provider of the chain could be asked, 503 " +
      "where the service itself is busy or stopping): wait for `Retry-After`, then send the same " +
      "request. Where `error.data.retryable` is false, waiting does not help.",
  ];
}

/**
 * From a 402 answer to a funded key, with `$KEY` in the shell and the wallet's key in
 * `MPPX_PRIVATE_KEY`; empty if nothing is sold.
 */
export function paymentSteps(facts: DocumentFacts, site: Site): readonly FirstStep[] {
  return [
    ...purchaseSteps(facts, site),
    ...accountSteps(facts, site),
    ...sessionSteps(facts, site),
  ];
}

/** Paying for a single call without a key. */
function sessionSteps(facts: DocumentFacts, { baseUrl }: Site): readonly FirstStep[] {
  const { hosted, defaultProfile } = facts;
  const rail = hosted?.payments?.rails.find(({ intent }) => intent === "session");
  if (rail === undefined) return [];
  const url =
    baseUrl +
    SESSION_FORM.replace("{strategy}", "load-balanced").replace(
      "{chain}",
      chainIn(facts, defaultProfile.withKey) ?? "{chain}",
    );
  const call = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}';
  const standIn = rail.local ? " Here the channel's contract is a stand-in for development." : "";
  return [
    {
      title: "Pay call by call, without a key",
      shell: `${MPPX_COMMAND} "${url}" --json-body '${call}' --silent${nodeOf(rail)}`,
      note:
        "The first call opens a payment channel with a " +
        `deposit${rail.depositN === null ? "" : ` (${usdText(rail.depositN)} USD, unless you say otherwise)`}; ` +
        "each call after that is paid for with a voucher, once it was answered. Calls cost what " +
        "they cost with a key, in whole units of 0.000001 USD. A key is faster, and spares the " +
        `fees of opening and closing: it needs no signature for each call.${standIn}`,
    },
    {
      title: "List your channels, and close one",
      shell:
        `CHANNEL=$(${MPPX_COMMAND} sessions list | sed -n 's/^\\(0x[0-9a-f]*\\).*/\\1/p' | head ` +
        `-n 1); echo "$CHANNEL"\n${MPPX_COMMAND} sessions close "$CHANNEL"${nodeOf(rail)}`,
      note: "Closing a channel returns what is left of its deposit.",
    },
  ];
}

/** The option that names the node of a local chain. */
function nodeOf({ rpcUrl }: RailTerms): string {
  return rpcUrl === null ? "" : ` --rpc-url ${rpcUrl}`;
}

function purchaseSteps({ hosted }: DocumentFacts, { baseUrl }: Site): readonly FirstStep[] {
  const terms = hosted?.payments ?? null;
  const rail = terms === null ? undefined : railOf(terms);
  if (terms === null || rail === undefined) return [];
  if (rail.stockProtocol !== "mpp") return [madeByX402(terms, rail, baseUrl)];
  const node = nodeOf(rail);
  const fund = baseUrl + pathOf("fundAgentKey").replace("{key}", "$KEY");
  const body = `'{"amount_usd":"${usdText(terms.minN)}"}'`;
  const paid = {
    title: "Pay in for the key",
    shell: `${MPPX_COMMAND} "${fund}" --json-body ${body} --silent${node}`,
    note:
      `The first answer is 402 with an offer in each \`WWW-Authenticate: Payment ` +
      `…\`${hasX402(terms) ? " and in `PAYMENT-REQUIRED` (x402)" : ""}; the client signs one and ` +
      `sends the same request again. ${WALLET}${rail.local ? ` ${LOCAL_WALLET}` : ""}`,
  };
  const made = {
    title: "Or buy a new key",
    shell:
      `${MPPX_COMMAND} "${baseUrl}${pathOf("createAgentKey")}" --json-body ` +
      `'{"initial_fund_usd":"${usdText(terms.minN)}"}' --silent${node}`,
    note:
      "Amounts are decimals in text. The key has the whole amount as its balance, and no free " +
      "grant. `purchase_id` in the answer names the purchase: `GET /api/v1/purchases/{id}` shows " +
      "it.",
  };
  return [paid, made, byHand({ method: rail.method, fund, body, node })];
}

/** Credit and Custom access for an account; both come with its management token. */
function accountSteps({ hosted }: DocumentFacts, { baseUrl }: Site): readonly FirstStep[] {
  const terms = hosted?.payments ?? null;
  const rail = terms === null ? undefined : railOf(terms);
  if (terms === null || rail === undefined) return [];
  const x402 = rail.stockProtocol === "mpp" ? "" : " --protocol x402";
  const field = (name: string): string => `sed -n 's/.*"${name}": *"\\([^"]*\\)".*/\\1/p'`;
  const pay = (path: string, body: string): string =>
    `${MPPX_COMMAND} "${baseUrl}${path}" -H "Authorization: Bearer $TOKEN" -J ` +
    `"${body.replaceAll('"', '\\"')}" --silent${x402}${nodeOf(rail)}`;
  const made = [
    `MADE=$(curl -s -X POST ${baseUrl}${pathOf("createKey")})`,
    `TOKEN=$(echo "$MADE" | ${field("management_token")}); ACCOUNT=$(echo "$MADE" | ` +
      `${field("account_id")}); KEY_ID=$(echo "$MADE" | ${field("id")})`,
  ];
  return [
    {
      title: "Credit an account",
      shell: [
        ...made,
        pay(pathOf("buyCredit").replace("{id}", "$ACCOUNT"), `{"usd":"${usdText(terms.minN)}"}`),
      ].join("\n"),
      note:
        "The first two lines create an account with a key. `MADE` holds them: the token and the " +
        "key are shown only there.",
    },
    {
      title: "Buy a day of Custom access",
      shell: pay(
        pathOf("buyCustomAccess").replace("{id}", "$ACCOUNT"),
        '{"days":1,"key_id":"$KEY_ID"}',
      ),
      note:
        "With Custom access an account brings its own providers; `GET /api/v1/profiles` shows " +
        "until when.",
    },
  ];
}

const WALLET =
  "The private key of the wallet stands in `MPPX_PRIVATE_KEY`, or in an account that the same " +
  "command makes with `account create`. `@x402/fetch` and any other client of these protocols does as well.";

const LOCAL_WALLET =
  "Money on this development chain is worth nothing: `npm start` prints a wallet that has " +
  "some, `export MPPX_PRIVATE_KEY=0x…` takes it.";

/**
 * Where there is no rail that the command pays by MPP. It pays x402 at the URL that the offer
 * names, and there no key stands: so a key is made.
 */
function madeByX402({ minN }: PaymentTerms, rail: RailTerms, baseUrl: string): FirstStep {
  return {
    title: "Buy a key",
    shell:
      `${MPPX_COMMAND} "${baseUrl}${pathOf("createAgentKey")}" --json-body ` +
      `'{"initial_fund_usd":"${usdText(minN)}"}' --silent --protocol x402${nodeOf(rail)}`,
    note:
      `The first answer is 402 with an offer in \`PAYMENT-REQUIRED\` (x402) and in ` +
      `\`WWW-Authenticate: Payment …\` (MPP \`evm\`); the client signs one and sends the same ` +
      `request again. ${WALLET} A key that you have is funded in the same way at ` +
      `\`${pathOf("fundAgentKey")}\` with such a library; this command cannot, because it pays ` +
      "at the URL in the offer, where keys are left out.",
  };
}

/** The same without a paying client: only the signature is made by one. */
function byHand({
  method,
  fund,
  body,
  node,
}: {
  readonly method: string;
  readonly fund: string;
  readonly body: string;
  readonly node: string;
}): FirstStep {
  const post = `curl -s -X POST "${fund}" -H 'content-type: application/json' -d ${body}`;
  return {
    title: "Pay with your own HTTP client",
    shell: [
      `OFFER=$(${post} -o /dev/null -D - | tr -d '\\r' | sed -n 's/^[Ww]*-[Aa]uthenticate: ` +
        `*//p' | grep 'method="${method}"' | head -n 1)`,
      `SIGNED=$(${MPPX_COMMAND} sign --challenge "$OFFER"${node})`,
      `${post} -H "PAYMENT-SIGNATURE: $SIGNED"`,
    ].join("\n"),
    note:
      "Sign one offer and send the same method, path and body with it: in `PAYMENT-SIGNATURE`, " +
      "in `Authorization: Payment …`, or in `Payment-Authorization` where `Authorization` has to " +
      "keep a token. The answer carries `Payment-Receipt` (`PAYMENT-RESPONSE` for x402). Sent " +
      "once more, the same payment gets its first answer again and costs nothing. At the URL of " +
      "a call it is credited once, and the call is made again and charged as usual.",
  };
}

/** The rail that the steps show; undefined = the stock command line pays none. */
function railOf({ rails }: PaymentTerms): RailTerms | undefined {
  const charges = rails.filter((rail) => rail.intent === "charge");
  return (
    charges.find(({ stockProtocol }) => stockProtocol === "mpp") ??
    charges.find(({ stockProtocol }) => stockProtocol === "x402")
  );
}

function hasX402({ rails }: PaymentTerms): boolean {
  return rails.some(({ offers }) => offers.some((offer) => offer.startsWith("x402:")));
}

/** What is sold and within which range, in one paragraph. */
export function salesText({ hosted }: DocumentFacts): string {
  const terms = hosted?.payments ?? null;
  if (terms === null) return "Payments are not open on this instance.";
  const { minN, maxN, customDayN, maxCustomDays } = terms;
  const rails = terms.rails.map(
    ({ offers, chainId, local }) =>
      `${offers.map((offer) => `\`${offer}\``).join(", ")} on ` +
      `eip155:${chainId}${local ? " (a development chain: worthless money)" : ""}`,
  );
  return [
    "A payment needs no account: it comes with the request itself. One purchase is " +
      `${usdText(minN)} to ${usdText(maxN)} USD; Custom access costs ${usdText(customDayN)} USD ` +
      `a day, up to ${maxCustomDays} days at once.`,
    `Sold: credit for a key (\`${pathOf("fundAgentKey")}\`), a new key with credit ` +
      `(\`${pathOf("createAgentKey")}\` with \`initial_fund_usd\`), credit for an account ` +
      `(\`${pathOf("buyCredit")}\`) and days of Custom access ` +
      `(\`${pathOf("buyCustomAccess")}\`), these two with the management token beside the ` +
      "payment: a token never pays by itself.",
    `Rails: ${rails.join("; ")}.`,
  ].join(" ");
}

/** What to do when a payment was not answered with what it buys. */
export const PAYMENT_NOTES: readonly string[] = [
  "**402 `payment_required`**: nothing was paid. Sign one of the offers and send the same " +
    "request again with it.",
  "**402 `payment_invalid`**: the payment is not right and nothing was taken; the message says " +
    "why. The answer carries fresh offers.",
  "**503 `payment_pending`**: the payment is recorded and will be credited without you. Do not " +
    "pay again. After `Retry-After` read `error.status_url`, or send the same request with the " +
    "same payment.",
  "**409 `payment_conflict`**: this payment was sent with another request. Read " +
    "`error.status_url`; never sign a second one while the first is pending.",
  "**409 `payment_failed`**: its chain did not carry it out and nothing was taken. Send the " +
    "request without payment for a fresh offer.",
  "**409 `beneficiary_conflict`**: the money has arrived and what it was for is gone. Do not " +
    "pay again: keep the purchase id and the signed payment, report it with `POST " +
    "/api/v1/feedback`, and send the same request later.",
  "**No answer at all** (the connection broke after you paid): send the same request with the " +
    "same payment. It is credited once, however often it comes.",
];

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
