// What an instance sells and how it is paid for: as text with working commands, as live values, and
// as `x-payment-info` of OpenAPI.

import { MPPX_COMMAND, type PurposeKind, pinned, unitsOf } from "../../core/billing/payment.ts";
import { usdText } from "../../core/billing/price.ts";
import type { RailTerms } from "../../payments/rails/rail-kind.ts";
import { examplesOf } from "../../payments/rails/rails.ts";
import {
  type DocumentFacts,
  type PaymentTerms,
  pathOf,
  SESSION_FORM,
  type Site,
  sellsCalls,
  sessionPath,
} from "./facts.ts";
import {
  bullets,
  code,
  type GuideStep,
  type Json,
  named,
  numbered,
  type Section,
} from "./sections.ts";

/** The sections on payments. */
export function paySections(facts: DocumentFacts, site: Site): readonly Section[] {
  const { hosted } = facts;
  const terms = hosted?.payments ?? null;
  if (terms === null) {
    const values = { payments: { enabled: false, rails: [] } };
    const text = hosted === null ? [] : ["Payments are not open on this instance."];
    return [{ title: "Pay", text, values }];
  }
  const callUrl = site.baseUrl + sessionPath(facts);
  const steps = [...purchaseSteps(terms, site), ...sessionSteps(terms, callUrl)];
  const examples = examplesOf(terms.rails, {
    createKeyUrl: site.baseUrl + pathOf("createAgentKey"),
    callUrl,
    minN: terms.minN,
  }).map(
    ({ title, packages, code: program }) =>
      `**${title}** (\`npm install ${pinned(packages).join(" ")}\`):\n\n${code("ts", program)}`,
  );
  return [
    {
      title: "Pay",
      text: [salesText(terms), ...numbered(steps)],
      values: { payments: paymentValues(terms, site.baseUrl) },
      isBrief: true,
    },
    {
      title: "Pay from code",
      text: ["The wallet's private key comes from the environment.", ...examples],
    },
    { title: "When a payment is not through", text: [bullets(PAYMENT_NOTES)], isBrief: true },
  ];
}

/** The stock command line paying by a rail. */
function paid({ stockProtocol, rpcUrl }: RailTerms, what: string): string {
  const protocol = stockProtocol === "x402" ? " --protocol x402" : "";
  return `${MPPX_COMMAND} ${what} --silent${protocol}${nodeOption(rpcUrl)}`;
}

/** The option that names the node of a local chain. */
function nodeOption(rpcUrl: string | null): string {
  return rpcUrl === null ? "" : ` --rpc-url ${rpcUrl}`;
}

/** Paying for a single call without a key. */
function sessionSteps({ rails }: PaymentTerms, url: string): readonly GuideStep[] {
  const rail = rails.find(({ intent }) => intent === "session");
  if (rail === undefined) return [];
  const call = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}';
  const standIn = rail.local ? " Here the channel's contract is a stand-in for development." : "";
  const deposit =
    rail.depositN === null ? "" : ` (${usdText(rail.depositN)} USD, unless you say otherwise)`;
  return [
    {
      title: "Pay call by call, without a key",
      shell: paid(rail, `"${url}" --json-body '${call}'`),
      note:
        `The first call opens a payment channel with a deposit${deposit}; ` +
        "each call after that is paid for with a voucher, once it was answered. Calls cost what " +
        "they cost with a key, in whole units of 0.000001 USD. A key is faster, and spares the " +
        `fees of opening and closing: it needs no signature for each call.${standIn}`,
    },
    {
      title: "List your channels, and close one",
      shell:
        `CHANNEL=$(${MPPX_COMMAND} sessions list | sed -n 's/^\\(0x[0-9a-f]*\\).*/\\1/p' | head ` +
        `-n 1); echo "$CHANNEL"\n${MPPX_COMMAND} sessions close "$CHANNEL"` +
        nodeOption(rail.rpcUrl),
      note: "Closing a channel returns what is left of its deposit.",
    },
  ];
}

/**
 * From a 402 answer to a funded key, with `$KEY` in the shell and the wallet's key in
 * `MPPX_PRIVATE_KEY`; then what is bought with a management token. Empty if the stock command line
 * pays by no rail.
 */
function purchaseSteps({ rails, minN }: PaymentTerms, { baseUrl }: Site): readonly GuideStep[] {
  const charges = rails.filter(({ intent }) => intent === "charge");
  const rail =
    charges.find(({ stockProtocol }) => stockProtocol === "mpp") ??
    charges.find(({ stockProtocol }) => stockProtocol === "x402");
  if (rail === undefined) return [];
  const least = usdText(minN);
  const made = paid(
    rail,
    `"${baseUrl}${pathOf("createAgentKey")}" --json-body '{"initial_fund_usd":"${least}"}'`,
  );
  if (rail.stockProtocol === "x402")
    return [
      { title: "Buy a key", shell: made, note: MADE_BY_X402 },
      ...accountSteps(rail, baseUrl, least),
    ];
  const fund = baseUrl + pathOf("fundAgentKey").replace("{key}", "$KEY");
  const body = `'{"amount_usd":"${least}"}'`;
  const isX402 = rails.some(({ offers }) => offers.some((offer) => offer.startsWith("x402:")));
  return [
    {
      title: "Pay in for the key",
      shell: paid(rail, `"${fund}" --json-body ${body}`),
      note:
        "The first answer is 402 with an offer in each `WWW-Authenticate: Payment …`" +
        `${isX402 ? " and in `PAYMENT-REQUIRED` (x402)" : ""}; the client signs one and ` +
        `sends the same request again. ${WALLET}${rail.local ? ` ${LOCAL_WALLET}` : ""}`,
    },
    {
      title: "Or buy a new key",
      shell: made,
      note:
        "Amounts are decimals in text. The key has the whole amount as its balance, and no free " +
        "grant. `purchase_id` in the answer names the purchase: `GET /api/v1/purchases/{id}` " +
        "shows it.",
    },
    byHand(rail, fund, body),
    ...accountSteps(rail, baseUrl, least),
  ];
}

/** Credit and Custom access for an account; both come with its management token. */
function accountSteps(rail: RailTerms, baseUrl: string, least: string): readonly GuideStep[] {
  const field = (name: string): string => `sed -n 's/.*"${name}": *"\\([^"]*\\)".*/\\1/p'`;
  const pay = (id: "buyCredit" | "buyCustomAccess", body: string): string => {
    const url = baseUrl + pathOf(id).replace("{id}", "$ACCOUNT");
    const json = body.replaceAll('"', '\\"');
    return paid(rail, `"${url}" -H "Authorization: Bearer $TOKEN" -J "${json}"`);
  };
  return [
    {
      title: "Credit an account",
      shell: [
        `MADE=$(curl -s -X POST ${baseUrl}${pathOf("createKey")})`,
        `TOKEN=$(echo "$MADE" | ${field("management_token")}); ACCOUNT=$(echo "$MADE" | ` +
          `${field("account_id")}); KEY_ID=$(echo "$MADE" | ${field("id")})`,
        pay("buyCredit", `{"usd":"${least}"}`),
      ].join("\n"),
      note:
        "The first two lines create an account with a key. `MADE` holds them: the token and the " +
        "key are shown only there.",
    },
    {
      title: "Buy a day of Custom access",
      shell: pay("buyCustomAccess", '{"days":1,"key_id":"$KEY_ID"}'),
      note:
        "With Custom access an account brings its own providers; `GET /api/v1/profiles` shows " +
        "until when.",
    },
  ];
}

const WALLET =
  "The private key of the wallet stands in `MPPX_PRIVATE_KEY`, or in an account that the same " +
  "command makes with `account create`. `@x402/fetch` and any other client of these protocols " +
  "does as well.";

const LOCAL_WALLET =
  "Money on this development chain is worth nothing: the service prints at its start a wallet that has " +
  "some, `export MPPX_PRIVATE_KEY=0x…` takes it.";

/**
 * Where there is no rail that the command pays by MPP. It pays x402 at the URL that the offer
 * names, and there no key stands: so a key is made.
 */
const MADE_BY_X402 =
  "The first answer is 402 with an offer in `PAYMENT-REQUIRED` (x402) and in " +
  "`WWW-Authenticate: Payment …` (MPP `evm`); the client signs one and sends the same " +
  `request again. ${WALLET} A key that you have is funded in the same way at ` +
  `\`${pathOf("fundAgentKey")}\` with such a library; this command cannot, because it pays ` +
  "at the URL in the offer, where keys are left out.";

/** The same without a paying client: only the signature is made by one. */
function byHand({ method, rpcUrl }: RailTerms, fund: string, body: string): GuideStep {
  const post = `curl -s -X POST "${fund}" -H 'content-type: application/json' -d ${body}`;
  return {
    title: "Pay with your own HTTP client",
    shell: [
      `OFFER=$(${post} -o /dev/null -D - | tr -d '\\r' | sed -n 's/^[Ww]*-[Aa]uthenticate: ` +
        `*//p' | grep 'method="${method}"' | head -n 1)`,
      `SIGNED=$(${MPPX_COMMAND} sign --challenge "$OFFER"${nodeOption(rpcUrl)})`,
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

/** What is sold and within which range, in one paragraph. */
function salesText({ rails, minN, maxN, customDayN, maxCustomDays }: PaymentTerms): string {
  const shown = rails.map(
    ({ offers, chainId, local }) =>
      `${named(offers)} on eip155:${chainId}` +
      (local ? " (a development chain: worthless money)" : ""),
  );
  return (
    "A payment needs no account: it comes with the request itself. One purchase is " +
    `${usdText(minN)} to ${usdText(maxN)} USD; Custom access costs ${usdText(customDayN)} USD ` +
    `a day, up to ${maxCustomDays} days at once. ` +
    `Sold: credit for a key (\`${pathOf("fundAgentKey")}\`), a new key with credit ` +
    `(\`${pathOf("createAgentKey")}\` with \`initial_fund_usd\`), credit for an account ` +
    `(\`${pathOf("buyCredit")}\`) and days of Custom access ` +
    `(\`${pathOf("buyCustomAccess")}\`), these two with the management token beside the ` +
    `payment: a token never pays by itself. Rails: ${shown.join("; ")}.`
  );
}

/** What to do when a payment was not answered with what it buys. */
const PAYMENT_NOTES: readonly string[] = [
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

/** The `payments` field of `/agent.json`. */
function paymentValues(terms: PaymentTerms, baseUrl: string): Json {
  return {
    enabled: true,
    rails: terms.rails.map(railValues),
    purchase_usd: { min: usdText(terms.minN), max: usdText(terms.maxN) },
    custom_access: {
      usd_per_day: usdText(terms.customDayN),
      days: { min: 1, max: terms.maxCustomDays },
    },
    carried_in: ["Authorization: Payment", "Payment-Authorization", "PAYMENT-SIGNATURE"],
    unit: "base units of a token with six decimals: 1000000 = 1 USD",
    status_url: `${baseUrl}/api/v1/purchases/{id}`,
    calls: {
      keyed:
        "402 balance_exhausted on /rpc/k/{key}/… carries an offer to fund the key; the same " +
        "request with the payment is credited and served",
      session: sellsCalls(terms) ? baseUrl + SESSION_FORM : null,
      websocket: "takes no payment: fund the key over HTTP",
    },
  };
}

function railValues(rail: RailTerms): Json {
  const { chainId, tokenName, depositN, local, localNote } = rail;
  return {
    kind: rail.kind,
    offers: rail.offers,
    network: `eip155:${chainId}`,
    chain_id: chainId,
    token: rail.token,
    ...(tokenName === "" ? {} : { token_name: tokenName, token_version: rail.tokenVersion }),
    recipient: rail.recipient,
    ...(depositN === null ? {} : { suggested_deposit_usd: usdText(depositN) }),
    local,
    ...(local
      ? { rpc_url: rail.rpcUrl, note: [WORTHLESS, localNote].filter(Boolean).join(" ") }
      : {}),
    ...(local && localNote !== null ? { stand_in: true } : {}),
  };
}

const WORTHLESS = "A development chain of this instance: its money is worth nothing.";

/** Declared minimum price of a call in base units; the challenge contains the exact price. */
const CALL_UNITS = 100n;

/**
 * `x-payment-info` for what a payment buys; null = nothing can be bought. Amounts are minimums, in
 * base units of the token.
 */
export function paymentInfo(terms: PaymentTerms | null, buys: PurposeKind | "call"): Json | null {
  if (terms === null) return null;
  const least = unitsOf(buys === "custom_access" ? terms.customDayN : terms.minN);
  const amount = String(buys === "call" ? CALL_UNITS : least);
  const description = DESCRIPTIONS[buys];
  const offers = terms.rails
    .filter((rail) => (rail.intent === "session") === (buys === "call"))
    .map(({ method, intent, token }) => ({ amount, currency: token, description, intent, method }));
  return offers.length > 1 ? { offers } : (offers[0] ?? null);
}

const DESCRIPTIONS: Readonly<Record<PurposeKind | "call", string>> = {
  fund_key: "Funds the key. The least: `amount_usd` of the body says how much.",
  create_key:
    "A key with this much, where the body has `initial_fund_usd`. The least: that field says " +
    "how much.",
  credit_account: "Credits the account. The least: `usd` of the body says how much.",
  custom_access: "A day of Custom access: `days` of the body says how many.",
  call: "One call. The challenge says what its method costs.",
};
