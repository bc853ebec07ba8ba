// How an instance is used: chains, first steps, URLs, subscriptions, keys and limits.

import type { RateLimitSize } from "../../core/billing/gcra.ts";
import { usdText } from "../../core/billing/price.ts";
import { STRATEGY_NAMES } from "../../core/routing/strategy.ts";
import { SUBSCRIPTION_KINDS, VENDOR_KINDS } from "../../core/stream/subscription.ts";
import type { OperationTag } from "../contract/operation.ts";
import { MAX_DOCUMENT_BYTES } from "../contract/profiles.ts";
import { MAX_BODY_BYTES } from "../http/body.ts";
import { errorSections } from "./errors.ts";
import {
  chainIn,
  type DocumentFacts,
  type HostedFacts,
  pathOf,
  rpcForms,
  SESSION_FORM,
  type Site,
  sellsCalls,
  servedOperations,
} from "./facts.ts";
import { INTERFACE_VERSION } from "./openapi.ts";
import { DOCUMENT_PATHS } from "./paths.ts";
import { paySections } from "./pay.ts";
import { priceSection } from "./prices.ts";
import {
  bullets,
  cell,
  code,
  type GuideStep,
  named,
  numbered,
  type Section,
  table,
} from "./sections.ts";

/** Everything that is told of an instance. */
export function sectionsOf(facts: DocumentFacts, site: Site): readonly Section[] {
  const { hosted } = facts;
  return [
    instance(facts, site),
    chains(facts),
    { title: "First steps", text: numbered(firstSteps(facts, site)), isBrief: true },
    ...paySections(facts, site),
    urls(facts, site),
    subscribing(facts, site),
    EVIDENCE,
    ...(hosted === null
      ? []
      : [managing(site), working(site), priceSection(hosted, facts.methods)]),
    ...errorSections(facts, site),
    { values: { limits: limits(facts), endpoints: endpoints(facts, site) } },
  ];
}

function instance({ version, hosted }: DocumentFacts, { baseUrl }: Site): Section {
  const urls = Object.entries(DOCUMENT_PATHS).map(([name, path]) => [name, baseUrl + path]);
  const values = {
    name: "svc",
    description: "JSON-RPC for EVM chains, routed over several providers.",
    version,
    interface_version: INTERFACE_VERSION,
    base_url: baseUrl,
    documents: Object.fromEntries(urls),
    error_catalog_url: baseUrl + DOCUMENT_PATHS.errors,
    authentication: authentication(hosted),
    features: {
      keys: hosted !== null,
      accounts: hosted !== null,
      keyless_rpc: hosted === null || hosted.keyless,
      routing_evidence: true,
      batches: true,
      payments: hosted !== null && hosted.payments !== null,
      custom_profiles: hosted !== null,
      key_claims: hosted !== null,
    },
  };
  return { values };
}

function authentication(hosted: HostedFacts | null) {
  if (hosted === null) return { rpc: "none" };
  return {
    rpc: hosted.keyless ? "optional" : "required",
    rpc_key: {
      prefix: "svc_ak_",
      carried_in: ["path /rpc/k/{key}/…", "Authorization: Bearer", "X-Svc-Api-Key", "query key"],
    },
    management_token: { prefix: "svc_mt_", carried_in: ["Authorization: Bearer"] },
  };
}

function chains({ chains }: DocumentFacts): Section {
  const rows = chains.map(({ name, chainId, title, aliases, subscriptions }) => [
    `\`${name}\``,
    String(chainId),
    cell(title),
    aliases.join(", "),
    subscriptions.join(", "),
  ]);
  const values = chains.map(({ name, chainId, title, aliases, subscriptions }) => ({
    name,
    chain_id: chainId,
    title,
    aliases,
    strategies: STRATEGY_NAMES,
    subscriptions: subscriptions.length > 0,
    subscription_kinds: subscriptions,
  }));
  return {
    title: "Chains",
    text: [
      "A chain is named by name, alias or decimal id.",
      table(["Name", "Id", "Title", "Aliases", "Subscriptions"], rows),
    ],
    values: { chains: values },
  };
}

const JSON_BODY = "-H 'content-type: application/json' -d";
const CALL = `${JSON_BODY} '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'`;

/** The steps to a first answered call. They share one shell. */
function firstSteps(facts: DocumentFacts, { baseUrl }: Site): readonly GuideStep[] {
  const { hosted, defaultProfile } = facts;
  const keyed = hosted === null ? [] : keyedSteps(facts, hosted, baseUrl);
  if (hosted !== null && !hosted.keyless) return keyed;
  const chain = chainIn(facts, defaultProfile.withoutKey) ?? "{chain}";
  const call = {
    title: "Call",
    shell: `curl -s ${baseUrl}/rpc/${chain} ${CALL}`,
    note: hosted === null ? "No key is needed." : "Calls without a key are not metered here.",
  };
  return [call, ...keyed];
}

function keyedSteps(
  facts: DocumentFacts,
  { startingGrantCu, tariff, keysPerHour }: HostedFacts,
  baseUrl: string,
): readonly GuideStep[] {
  const chain = chainIn(facts, facts.defaultProfile.withKey) ?? "{chain}";
  const keys = baseUrl + pathOf("createAgentKey");
  const worth = usdText(startingGrantCu * tariff.nanoPerCu);
  return [
    {
      title: "Create a key",
      shell:
        `KEY=$(curl -s -X POST ${keys} | sed -n 's/.*"key": *"\\([^"]*\\)".*/\\1/p'); ` +
        'echo "$KEY"',
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

function urls(facts: DocumentFacts, { baseUrl, socketUrl }: Site): Section {
  const { hosted, limits, profiles, defaultProfile, defaultStrategy } = facts;
  const forms = rpcForms(facts);
  const isForSale = sellsCalls(hosted?.payments ?? null);
  const paidForm = `\`${SESSION_FORM}\` (paid for call by call, without a key)`;
  const shown = [...forms.map((form) => `\`${form}\``), ...(isForSale ? [paidForm] : [])];
  const served = profiles.map(({ slug, chains }) => `\`${slug}\` (${chains.join(", ")})`);
  return {
    title: "URLs",
    text: [
      `POST JSON-RPC 2.0, one call or a batch of up to ${limits.maxBatchItems}, in at most ` +
        `${limits.maxBodyBytes} bytes. The same paths under \`/ws\` are WebSockets.`,
      bullets(shown),
      `Strategies: ${named(STRATEGY_NAMES)}; \`${defaultStrategy}\` where none is named. ` +
        keyText(hosted),
      `Profiles: ${served.join("; ")}.`,
    ],
    values: {
      strategies: STRATEGY_NAMES,
      default_strategy: defaultStrategy,
      transports: ["http", "websocket"],
      profiles,
      default_profile: {
        with_key: defaultProfile.withKey,
        without_key: defaultProfile.withoutKey,
      },
      url_forms: {
        http: [...forms, ...(isForSale ? [SESSION_FORM] : [])].map((form) => baseUrl + form),
        websocket: forms.map((form) => `${socketUrl}/ws${form}`),
      },
    },
  };
}

function keyText(hosted: HostedFacts | null): string {
  if (hosted === null) return "No key is needed.";
  return (
    `${hosted.keyless ? "A key may be left out." : "Every call needs a key."} It stands in ` +
    "the path (`/rpc/k/{key}/…`), or in `Authorization: Bearer`, `X-Svc-Api-Key` or " +
    "`?key=` on the forms without it. With a key on profile `public`, and wherever the " +
    "free allowance pays, the strategy is always load-balanced; `svc_meta.strategy` tells " +
    "which was used. `x-svc-access` tells how a call was served, and `x-svc-fallback` " +
    "that it was served elsewhere than asked for: `payment` (nothing pays any more, public " +
    "providers for a while), `free` (the free allowance), `profile` (the named profile " +
    "is gone or rests)."
  );
}

function subscribing(facts: DocumentFacts, { socketUrl }: Site): Section {
  const { hosted, limits, defaultProfile } = facts;
  const isKeyless = hosted === null || hosted.keyless;
  const profile = isKeyless ? defaultProfile.withoutKey : defaultProfile.withKey;
  const chain = chainIn(facts, profile);
  const title = "Subscribe";
  const values = { subscriptions: SUBSCRIPTION_KINDS };
  if (chain === null) return { title, text: [`Profile \`${profile}\` serves no chain.`], values };
  const path = isKeyless ? `/ws/rpc/${chain}` : `/ws/rpc/k/$KEY/load-balanced/${chain}`;
  const paid =
    ", 1008 with a reason (`balance_exhausted`, `key_revoked`, `default_profile_changed`)";
  const text = [
    `Open \`${socketUrl}${path}\` and send:`,
    code("json", '{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}'),
    "The answer's `result` is the id of the subscription; events follow as `eth_subscription` " +
      `with \`params.subscription\` and \`params.result\`. Kinds: ${named(SUBSCRIPTION_KINDS)}; ` +
      "the table of chains tells which a chain has. Where no provider has a WebSocket, heads and " +
      `logs are polled. ${named(VENDOR_KINDS)} are passed on from one provider that serves them, ` +
      "as they come; the socket is closed with 1011 when that provider is lost.",
    "A subscription goes on at another provider when its own fails. Where that cannot be done " +
      "without a gap, the socket is closed with 1011: connect and subscribe again. Other codes: " +
      "1012 the service restarts, 1013 reading too slowly, 1002 no answer to pings" +
      `${hosted === null ? "" : paid}.`,
    `One socket has at most ${limits.maxSocketSubscriptions} subscriptions and ` +
      `${limits.maxSocketRequests} requests under way; send as many as you like, further ones ` +
      "wait in order.",
  ];
  return { title, text, values };
}

const EVIDENCE: Section = {
  title: "See how a call was routed",
  text: [
    "`?include_meta=body` adds `svc_meta` to the answer; `?include_meta=headers` adds the header " +
      "`x-svc-meta` (the same as JSON in unpadded base64url). On a WebSocket put " +
      '`"svc_meta": "notify"` into the request. It tells strategy, candidates, who answered, ' +
      "attempts and latencies. Name `x-svc-request-id` when you report something.",
  ],
};

function managing({ baseUrl }: Site): Section {
  return {
    title: "Manage several keys",
    text: [
      code(
        "sh",
        `curl -s -X POST ${baseUrl}${pathOf("createKey")} ${JSON_BODY} '{"name":"first"}'`,
      ),
      "creates an account with a key and answers its `management_token`, shown only there. The " +
        "account starts without credit. Send the token as `Authorization: Bearer` to create, " +
        `list, change, rotate and delete keys (\`${pathOf("listKeys")}\`, ` +
        `\`${pathOf("rotateKey")}\`) and to read the account (\`${pathOf("getCurrentAccount")}\`). ` +
        "The token does not make RPC calls; keys do.",
    ],
  };
}

function working({ baseUrl }: Site): Section {
  const link = pathOf("createAgentClaimLink").replace("{key}", "$KEY");
  const connection = `${baseUrl}${pathOf("createConnection")} ${JSON_BODY} '{"name":"my agent"}'`;
  return {
    title: "Work for a person",
    text: [
      "A key of yours can become a person's: send them the link that",
      code("sh", `curl -s -X POST "${baseUrl}${link}"`),
      "answers as `claim_url`. It works once, for `expires_in` seconds, and shows what is " +
        "claimed; a new link ends the old one. The key goes on working, and its balance is the " +
        "person's. An agent with an account links the whole account with " +
        `\`POST ${pathOf("createAccountClaimLink")}\`.`,
      "To manage an account that a person has, ask for a connection:",
      code("sh", `curl -s -X POST ${connection}`),
      "answers `approval_url` for the person and a `token` for you. Read " +
        `\`GET ${pathOf("getConnection")}\` with that token every 5 seconds or less often; once ` +
        "the person has approved, it answers a management token, once.",
    ],
  };
}

function limits({ limits, hosted }: DocumentFacts) {
  return {
    body_bytes: limits.maxBodyBytes,
    batch_items: limits.maxBatchItems,
    websocket: {
      requests_in_flight: limits.maxSocketRequests,
      bytes_in_flight: limits.maxSocketBytes,
      subscriptions: limits.maxSocketSubscriptions,
    },
    ...(hosted === null ? {} : hostedLimits(hosted)),
  };
}

function hostedLimits({ buckets, keysPerHour, maxKeys, maxProfiles }: HostedFacts) {
  const size = ({ perSecond, burst }: RateLimitSize, name: string, applies: string) => ({
    name,
    applies,
    per_second: perSecond,
    burst,
  });
  return {
    management_body_bytes: MAX_BODY_BYTES,
    keys_per_account: maxKeys,
    profiles_per_account: maxProfiles,
    profile_document_bytes: MAX_DOCUMENT_BYTES,
    key_creations_per_hour_per_address: keysPerHour,
    rate_limits_per_account: [
      size(buckets.managed, "managed", "premium access"),
      size(buckets.reduced, "managed", "public providers by fallback or free allowance"),
      size(buckets.public, "public", "profile public when it was asked for"),
      size(buckets.custom, "the slug of the profile", "each Custom profile"),
    ],
  };
}

/** Tags of operations, grouped by their users. */
const GROUPS: Readonly<Record<string, readonly OperationTag[]>> = {
  instance: ["instance"],
  agent: ["agent"],
  account_resources: ["keys", "accounts", "profiles"],
  operator: ["operator"],
  console: ["console"],
};

function endpoints(facts: DocumentFacts, { baseUrl }: Site) {
  const operations = servedOperations(facts);
  const groups = Object.entries(GROUPS).map(([group, tags]) => {
    const urls = operations
      .filter(({ tag }) => tags.includes(tag))
      .map(({ id, method, path }) => [id, { method, url: baseUrl + path }] as const);
    return [group, urls] as const;
  });
  const served = groups.filter(([, urls]) => urls.length > 0);
  return Object.fromEntries(served.map(([group, urls]) => [group, Object.fromEntries(urls)]));
}
