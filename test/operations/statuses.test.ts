// A test for every answer and every refusal that an operation declares, over HTTP and on both
// engines. One that is declared and not tried fails the run.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { claimByLink } from "../../src/hosted/accounts/claim-links.ts";
import { decideConnection } from "../../src/hosted/accounts/connections.ts";
import { insertManagementToken } from "../../src/hosted/keys/management-token.ts";
import { grantCustomAccess } from "../../src/hosted/profiles/custom-access.ts";
import { newId, newSecret } from "../../src/secrets/secret.ts";
import type { LiveView } from "../../src/web/api/parts.ts";
import { type NamedOperation, OPERATIONS } from "../../src/web/contract/contract.ts";
import {
  type ApiAnswered,
  failingStore,
  NO_PROVIDERS,
  OPERATOR_TOKEN,
  type Sent,
  type ServedApi,
  serveApi,
  TARIFF,
  testCustom,
} from "../fakes/hosted.ts";
import { testLive } from "../fakes/live.ts";
import { fakePayments } from "../fakes/payments.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { eachStore } from "../fakes/stores.ts";

interface Call extends Sent {
  readonly what: string;
}

/** What a case finds: an account of its own, and a service in three states. */
interface Fixture {
  readonly api: ServedApi;
  /** Serves nobody: every place is taken. */
  readonly full: ServedApi;
  /** Everything it does is a bug. */
  readonly broken: ServedApi;
  readonly account: {
    readonly id: string;
    readonly token: string;
    readonly keyId: string;
    readonly key: string;
  };
  readonly anonymousKey: string;
  /** Approved by the account. */
  readonly connection: { readonly id: string; readonly token: string };
  /** Of a payment for the anonymous key. */
  readonly purchaseId: string;
  /** A payment that was not sent yet, as headers; what becomes of it stands in its name. */
  readonly pay: (fate?: string) => Readonly<Record<string, string>>;
}

type Case = (fixture: Fixture, good: Call) => Promise<ApiAnswered>;

/**
 * A request of each operation that succeeds, or that is only refused because the operation always
 * is.
 */
const GOOD: Readonly<Record<string, (fixture: Fixture) => Call>> = {
  listAgentChains: () => ({ what: "GET /api/v1/agent/chains" }),
  createAgentKey: () => ({ what: "POST /api/v1/agent/keys", body: { name: "mine" } }),
  getAgentKey: ({ anonymousKey }) => ({ what: `GET /api/v1/agent/keys/${anonymousKey}` }),
  fundAgentKey: ({ anonymousKey, pay }) => ({
    what: `POST /api/v1/agent/keys/${anonymousKey}/fund`,
    body: { amount_usd: "0.10" },
    headers: pay(),
  }),
  buyCredit: ({ account, pay }) => ({
    what: `POST /api/v1/accounts/${account.id}/credit`,
    token: account.token,
    body: { usd: "5" },
    headers: pay(),
  }),
  buyCustomAccess: ({ account, pay }) => ({
    what: `POST /api/v1/accounts/${account.id}/custom-access`,
    token: account.token,
    body: { days: 2, key_id: account.keyId },
    headers: pay(),
  }),
  getPurchase: ({ purchaseId }) => ({ what: `GET /api/v1/purchases/${purchaseId}` }),
  listPurchases: ({ account }) => ({ what: "GET /api/v1/purchases", token: account.token }),
  getUsage: ({ account }) => ({ what: "GET /api/v1/usage?days=7", token: account.token }),
  listOwnCalls: ({ account }) => ({ what: "GET /api/v1/calls?limit=5", token: account.token }),
  getPricing: () => ({ what: "GET /api/v1/agent/pricing" }),
  createKey: () => ({ what: "POST /api/v1/keys", body: { name: "mine" } }),
  listKeys: ({ account }) => ({ what: "GET /api/v1/keys", token: account.token }),
  getCurrentKey: ({ account }) => ({ what: "GET /api/v1/keys/current", token: account.key }),
  getKey: ({ account }) => ({ what: `GET /api/v1/keys/${account.keyId}`, token: account.token }),
  updateKey: ({ account }) => ({
    what: `PATCH /api/v1/keys/${account.keyId}`,
    token: account.token,
    body: { name: "other" },
  }),
  deleteKey: ({ account }) => ({
    what: `DELETE /api/v1/keys/${account.keyId}`,
    token: account.token,
  }),
  rotateKey: ({ account }) => ({
    what: `POST /api/v1/keys/${account.keyId}/rotate`,
    token: account.token,
    body: { grace_seconds: 60 },
  }),
  getCurrentAccount: ({ account }) => ({
    what: "GET /api/v1/accounts/current",
    token: account.token,
  }),
  getAccount: ({ account }) => ({
    what: `GET /api/v1/accounts/${account.id}`,
    token: account.token,
  }),
  getCurrentAgent: ({ account }) => ({ what: "GET /api/v1/agents/current", token: account.token }),
  claimAgentKey: ({ account, anonymousKey }) => ({
    what: `POST /api/v1/agent/keys/${anonymousKey}/claim`,
    token: account.key,
  }),
  createAgentClaimLink: ({ anonymousKey }) => ({
    what: `POST /api/v1/agent/keys/${anonymousKey}/claim-link`,
  }),
  createAccountClaimLink: ({ account }) => ({
    what: "POST /api/v1/accounts/current/claim-link",
    token: account.token,
  }),
  createConnection: () => ({ what: "POST /api/v1/connections", body: { name: "a program" } }),
  listConnections: ({ account }) => ({ what: "GET /api/v1/connections", token: account.token }),
  getConnection: ({ connection }) => ({
    what: `GET /api/v1/connections/${connection.id}`,
    token: connection.token,
  }),
  deleteConnection: ({ account, connection }) => ({
    what: `DELETE /api/v1/connections/${connection.id}`,
    token: account.token,
  }),
  listProfiles: ({ account }) => ({ what: "GET /api/v1/profiles", token: account.token }),
  getProfile: ({ account }) => ({ what: "GET /api/v1/profiles/mine", token: account.token }),
  putProfile: ({ account }) => ({
    what: "PUT /api/v1/profiles/mine",
    token: account.token,
    body: profileWith("good"),
  }),
  deleteProfile: ({ account }) => ({ what: "DELETE /api/v1/profiles/mine", token: account.token }),
  listProfileRevisions: ({ account }) => ({
    what: "GET /api/v1/profiles/mine/revisions",
    token: account.token,
  }),
  getProfileRevision: ({ account }) => ({
    what: "GET /api/v1/profiles/mine/revisions/1",
    token: account.token,
  }),
  getConfigurationSchema: () => ({ what: "GET /api/v1/configuration-schema" }),
  grantCustomAccess: ({ account }) => ({
    what: `POST /api/v1/operator/accounts/${account.id}/custom-access`,
    token: OPERATOR_TOKEN,
    body: { days: 30 },
  }),
  creditAccount: ({ account }) => ({
    what: `POST /api/v1/operator/accounts/${account.id}/credit`,
    token: OPERATOR_TOKEN,
    body: { usd: "1.5", reference: `invoice-${account.id}` },
  }),
  getOperatorUsage: () => ({ what: "GET /api/v1/operator/usage?hours=48", token: OPERATOR_TOKEN }),
  getOperatorAudit: () => ({ what: "GET /api/v1/operator/audit", token: OPERATOR_TOKEN }),
  submitFeedback: () => ({
    what: "POST /api/v1/feedback",
    body: { message: "It works.", category: "other" },
  }),
  listFeedback: () => ({ what: "GET /api/v1/operator/feedback?limit=5", token: OPERATOR_TOKEN }),
  purgeCache: () => ({
    what: "DELETE /api/v1/operator/cache?profile=public&chain=ethereum&method=eth_call",
    token: OPERATOR_TOKEN,
  }),
  getHistory: () => ({
    what: "GET /api/v1/history?profile=team&chain=test&provider=p0",
    token: OPERATOR_TOKEN,
  }),
  listIncidents: () => ({ what: "GET /api/v1/incidents?open=true", token: OPERATOR_TOKEN }),
  watchEvents: () => ({ what: "HEAD /api/v1/operator/events", token: OPERATOR_TOKEN }),
  listNodes: () => ({ what: "GET /api/v1/operator/nodes", token: OPERATOR_TOKEN }),
  listChanges: () => ({ what: "GET /api/v1/operator/changes", token: OPERATOR_TOKEN }),
  listDecisions: () => ({ what: DECISIONS, token: OPERATOR_TOKEN }),
  getDecision: () => ({ what: `${DECISIONS}/{decision}`, token: OPERATOR_TOKEN }),
  getWhatIf: () => ({ what: `${DECISIONS}/{decision}/what-if`, token: OPERATOR_TOKEN }),
  listProviderErrors: () => ({ what: "GET /api/v1/operator/errors", token: OPERATOR_TOKEN }),
  listStreams: () => ({ what: "GET /api/v1/operator/streams", token: OPERATOR_TOKEN }),
  getSession: () => ({ what: "GET /api/v1/console/session" }),
  signIn: () => ({
    what: "POST /api/v1/console/session",
    body: { token: OPERATOR_TOKEN },
    headers: SAME_ORIGIN,
  }),
  signOut: () => ({ what: "DELETE /api/v1/console/session", headers: SAME_ORIGIN }),
  listAccounts: () => ({
    what: "GET /api/v1/operator/accounts?limit=2&sort=created",
    token: OPERATOR_TOKEN,
  }),
  listAccountKeys: ({ account }) => ({
    what: `GET /api/v1/operator/accounts/${account.id}/keys?hours=1`,
    token: OPERATOR_TOKEN,
  }),
  listAllPurchases: () => ({
    what: "GET /api/v1/operator/purchases?state=settled",
    token: OPERATOR_TOKEN,
  }),
  listWallets: () => ({ what: "GET /api/v1/operator/wallets", token: OPERATOR_TOKEN }),
  getLastAudit: () => ({ what: "GET /api/v1/operator/audit/last", token: OPERATOR_TOKEN }),
  listChainCalls: () => ({
    what: "GET /api/v1/operator/chain-calls?hours=2",
    token: OPERATOR_TOKEN,
  }),
  getRevenue: () => ({ what: "GET /api/v1/operator/revenue?days=2", token: OPERATOR_TOKEN }),
  listCordons: () => ({ what: "GET /api/v1/operator/cordons", token: OPERATOR_TOKEN }),
  cordonProvider: () => ({
    what: "POST /api/v1/operator/cordons",
    token: OPERATOR_TOKEN,
    body: { ...PROVIDER, reason: "slow" },
  }),
  uncordonProvider: () => ({
    what: "DELETE /api/v1/operator/cordons?profile=public&chain=ethereum&provider=a",
    token: OPERATOR_TOKEN,
  }),
  cordonEverywhere: () => ({
    what: "POST /api/v1/operator/cordons/everywhere",
    token: OPERATOR_TOKEN,
    body: { provider: "a", reason: "slow" },
  }),
  uncordonEverywhere: () => ({
    what: "DELETE /api/v1/operator/cordons/everywhere?provider=a",
    token: OPERATOR_TOKEN,
  }),
  endProviderWait: () => ({
    what: "POST /api/v1/operator/waits/end",
    token: OPERATOR_TOKEN,
    body: PROVIDER,
  }),
  testProvider: () => ({
    what: "POST /api/v1/operator/tests",
    token: OPERATOR_TOKEN,
    body: PROVIDER,
  }),
  compareProviders: () => ({
    what: "POST /api/v1/operator/compare",
    token: OPERATOR_TOKEN,
    body: { profile: "public", chain: "ethereum", method: "eth_blockNumber" },
  }),
  reloadConfiguration: () => ({ what: "POST /api/v1/operator/reload", token: OPERATOR_TOKEN }),
  listActions: () => ({ what: "GET /api/v1/operator/actions?limit=5", token: OPERATOR_TOKEN }),
};

const PROVIDER = { profile: "public", chain: "ethereum", provider: "a" };
const DECISIONS = "GET /api/v1/operator/decisions";
/** Of the latest decision. */
const ofDecision =
  (after: string): Case =>
  async ({ api }, good) => {
    const { json } = await api.call(DECISIONS, { token: OPERATOR_TOKEN });
    const what = good.what.replace("{decision}", String(json.decisions[0].id));
    return send(api, { ...good, what: what + after });
  };
const withQuery =
  (query: string): Case =>
  ({ api }, good) =>
    send(api, { ...good, what: good.what.replace(/(\?.*)?$/, `?${query}`) });

/** What a browser says of a request by a page of the service. */
const SAME_ORIGIN = { "sec-fetch-site": "same-origin" };
/** A request by cookie that a page of another site sent. */
const fromElsewhere: Case = ({ api }, { token: _, ...good }) =>
  send(api, { ...good, headers: { cookie: `svc-session=${newSecret("session")}` } });

const send = (api: ServedApi, { what, ...sent }: Call): Promise<ApiAnswered> =>
  api.call(what, sent);
const succeeds: Case = ({ api }, good) => send(api, good);

/** How an outcome comes about; a row of an operation's own goes before these. */
const CASES: Readonly<Record<string, Case>> = {
  200: succeeds,
  201: succeeds,
  202: succeeds,
  204: succeeds,
  internal: ({ broken }, good) => send(broken, good),
  unavailable: ({ full }, good) => send(full, good),
  unauthorized: ({ api }, good) => send(api, { ...good, token: "svc_mt_cut-off" }),
  rate_limited: async ({ api }, good) => {
    const token = newSecret(
      good.token?.startsWith("svc_ak_")
        ? "key"
        : good.token?.startsWith("svc_ct_")
          ? "connection"
          : "token",
    );
    for (let i = 0; i < 3; i++) await send(api, { ...good, token, from: "203.0.113.7" });
    const limited = await send(api, { ...good, token, from: "203.0.113.7" });
    api.runtime.advance(60_000);
    return limited;
  },
  invalid_request: ({ api }, good) => send(api, { ...good, body: '{"name":' }),
  body_too_large: ({ api }, good) =>
    send(api, { ...good, body: JSON.stringify({ name: "x".repeat(70_000) }) }),
  unsupported_media_type: ({ api }, good) =>
    send(api, { ...good, headers: { "content-encoding": "gzip" } }),
  unknown_field: ({ api }, good) =>
    good.what.startsWith("DELETE")
      ? send(api, { ...good, what: `${good.what}&nope=1` })
      : send(api, { ...good, body: { ...Object(good.body), nope: 1 } }),
  invalid_field: ({ api }, good) =>
    send(api, { ...good, what: good.what.replace(/\/(key|acc|con|pur)_\w+/, "/{id}") }),
  not_found: ({ api }, good) =>
    send(api, {
      ...good,
      what: good.what.replace(/(key|acc|con|pur)_\w+/, (_, mark) => newId(mark, 1)),
    }),
  forbidden: async ({ api, account }, good) => {
    const agent = {
      accountId: account.id,
      name: "",
      profiles: null,
      readOnly: true,
      expiresAtMs: null,
    };
    const { token } = await api.store.transaction((tx) => insertManagementToken(tx, agent, 1));
    return send(api, { ...good, token });
  },
  key_revoked: async ({ api, account }, good) => {
    await api.call(`DELETE /api/v1/keys/${account.keyId}`, { token: account.token });
    return send(api, good);
  },
};

const fated =
  (fate: string): Case =>
  ({ api, pay }, good) =>
    send(api, { ...good, headers: pay(fate) });

/** Everything that is asked of it is a bug. */
function brokenLive(bug: () => never): LiveView {
  const live = testLive(simulatedWorld(1));
  const history = { steps: bug, hours: bug, changes: bug };
  return {
    ...live,
    hub: new Proxy(live.hub, { get: bug }),
    report: bug,
    history,
    incidents: bug,
    nodes: bug,
  };
}

/** What comes of payments, where `body` has to be paid for and `other` is another such body. */
const payingCases = (
  body: object,
  { other, beyond }: { readonly other: object; readonly beyond: object },
): Readonly<Record<string, Case>> => {
  const paid =
    (run: Case): Case =>
    (fixture, good) =>
      run(fixture, { ...good, body: { ...Object(good.body), ...body } });
  return {
    payment_required: paid(({ api }, good) => send(api, { ...good, headers: {} })),
    payment_invalid: paid(fated("bad")),
    payment_failed: paid(fated("failed")),
    payment_pending: paid(fated("pending")),
    beneficiary_conflict: paid(fated("gone")),
    payment_conflict: paid(async ({ api, pay }, good) => {
      const once = { ...good, headers: pay() };
      assert.match((await send(api, once)).outcome, / 20[01]$/);
      return send(api, { ...once, body: { ...Object(once.body), ...other } });
    }),
    amount_out_of_range: paid(({ api, pay }, good) =>
      send(api, { ...good, headers: pay(), body: { ...Object(good.body), ...beyond } }),
    ),
  };
};

const unknownPathKey: Case = ({ api }, good) =>
  send(api, { ...good, what: good.what.replace(/svc_ak_\w+/, newSecret("key")) });
const wrongPathKeys: Case = async ({ api }, good) => {
  const wrong = {
    ...good,
    what: good.what.replace(/svc_ak_\w+/, newSecret("key")),
    from: "203.0.113.8",
  };
  for (let i = 0; i < 3; i++) await send(api, wrong);
  const limited = await send(api, wrong);
  api.runtime.advance(60_000);
  return limited;
};
const manyKeys: Case = async ({ api }, good) => {
  for (let i = 0; i < 8; i++)
    assert.equal((await send(api, { ...good, from: "203.0.113.9" })).status, 201);
  const limited = await send(api, { ...good, from: "203.0.113.9" });
  api.runtime.advance(3_600_000);
  return limited;
};
const invalidBody =
  (body: unknown): Case =>
  ({ api }, good) =>
    send(api, { ...good, body });

const manyConnections: Case = async ({ api }, good) => {
  for (let i = 0; i < 20; i++)
    assert.equal((await send(api, { ...good, from: "203.0.113.10" })).status, 201);
  const limited = await send(api, { ...good, from: "203.0.113.10" });
  api.runtime.advance(3_600_000);
  return limited;
};
/** The account of the fixture has become part of another one. */
const claimed = async ({ api, account }: Fixture): Promise<void> => {
  const { json } = await api.call("POST /api/v1/accounts/current/claim-link", {
    token: account.token,
  });
  const token = String(json.claim_url).split("/claim/")[1] ?? "";
  const parts = {
    store: api.store,
    changes: { key: () => undefined, account: () => undefined },
    maxKeys: 5,
    nowMs: api.runtime.wallMs(),
  };
  assert.ok(typeof (await claimByLink(parts, token, null)) === "object");
};

/** A document of a Custom profile with one provider. */
const profileWith = (name: string) => ({
  chains: { ethereum: { providers: [{ name, url: "https://eth.example.com/key" }] } },
});
const withProfile = async ({ api, account }: Fixture): Promise<void> => {
  await grantCustomAccess(
    api.store,
    { accountId: account.id, days: 1, source: "test" },
    api.runtime.wallMs(),
  );
  assert.equal(
    (
      await api.call("PUT /api/v1/profiles/mine", {
        token: account.token,
        body: profileWith("good"),
      })
    ).status,
    200,
  );
};
const afterProfile: Case = async (fixture, good) => {
  await withProfile(fixture);
  return send(fixture.api, good);
};
const wrongSlug: Case = ({ api }, good) =>
  send(api, { ...good, what: good.what.replace("/mine", "/MINE") });
const withBody =
  (body: unknown): Case =>
  async (fixture, good) => {
    await withProfile(fixture);
    return send(fixture.api, { ...good, body });
  };
const wrongRevision: Case = async (fixture, good) => {
  await withProfile(fixture);
  return send(fixture.api, { ...good, headers: { "if-match": '"9"' } });
};
const merged: Case = async (fixture, good) => {
  await claimed(fixture);
  return send(fixture.api, good);
};

/** Cases of operations on one provider. */
const OPERATOR_CASES: Readonly<Record<string, Case>> = {
  forbidden: fromElsewhere,
  not_found: ({ api }, good) =>
    send(api, { ...good, body: { ...Object(good.body), provider: "b" } }),
  invalid_field: ({ api }, good) =>
    send(api, { ...good, body: { ...Object(good.body), provider: "" } }),
};
const eleven: Case = async ({ api }, good) => {
  api.runtime.advance(60_000);
  for (let i = 0; i < 10; i++) assert.equal((await send(api, good)).status, 200);
  const limited = await send(api, good);
  api.runtime.advance(60_000);
  return limited;
};

const wrongQuery =
  (query: string): Case =>
  ({ api }, good) =>
    send(api, { ...good, what: `${good.what.split("?")[0]}?${query}` });

const OWN_CASES: Readonly<Record<string, Readonly<Record<string, Case>>>> = {
  createAgentKey: {
    ...payingCases(
      { initial_fund_usd: "1" },
      { other: { initial_fund_usd: "2" }, beyond: { initial_fund_usd: "100.000001" } },
    ),
    rate_limited: manyKeys,
    invalid_field: invalidBody({ name: 7 }),
  },
  getAgentKey: { not_found: unknownPathKey, rate_limited: wrongPathKeys },
  fundAgentKey: {
    ...payingCases({}, { other: { amount_usd: "0.2" }, beyond: { amount_usd: "0.099999" } }),
    not_found: unknownPathKey,
    rate_limited: wrongPathKeys,
    invalid_field: invalidBody({ amount_usd: "1e3" }),
  },
  buyCredit: {
    ...payingCases({}, { other: { usd: "6" }, beyond: { usd: "0" } }),
    already_claimed: merged,
  },
  buyCustomAccess: {
    ...payingCases({}, { other: { days: 3 }, beyond: { days: 31 } }),
    already_claimed: merged,
    async already_subscribed({ api, account }, good) {
      await grantCustomAccess(
        api.store,
        { accountId: account.id, days: 1, source: "operator:invoice" },
        api.runtime.wallMs(),
      );
      return send(api, good);
    },
  },
  createKey: {
    rate_limited: manyKeys,
    invalid_field: invalidBody({ allowed_profiles: ["no-such"] }),
    async already_claimed(fixture, good) {
      await claimed(fixture);
      return send(fixture.api, { ...good, token: fixture.account.token });
    },
    async key_limit({ api, account }, good) {
      for (let i = 1; i < 5; i++) await send(api, { ...good, token: account.token });
      return send(api, { ...good, token: account.token });
    },
  },
  claimAgentKey: {
    not_found: unknownPathKey,
    async key_limit({ api, account }, good) {
      for (let i = 1; i < 5; i++)
        await api.call("POST /api/v1/keys", { token: account.token, body: {} });
      return send(api, good);
    },
  },
  createAgentClaimLink: {
    not_found: unknownPathKey,
    rate_limited: wrongPathKeys,
    async already_claimed({ api, account, anonymousKey }, good) {
      await api.call(`POST /api/v1/agent/keys/${anonymousKey}/claim`, { token: account.key });
      return send(api, good);
    },
  },
  createAccountClaimLink: {
    async already_claimed(fixture, good) {
      await claimed(fixture);
      return send(fixture.api, good);
    },
  },
  createConnection: {
    rate_limited: manyConnections,
    invalid_field: invalidBody({ name: "line\nbreak" }),
  },
  listKeys: {
    invalid_field: ({ api }, good) => send(api, { ...good, what: `${good.what}?limit=0` }),
  },
  getUsage: {
    invalid_field: ({ api }, good) => send(api, { ...good, what: "GET /api/v1/usage?days=91" }),
  },
  listOwnCalls: {
    invalid_field: ({ api }, good) => send(api, { ...good, what: "GET /api/v1/calls?key=other" }),
  },
  listPurchases: {
    invalid_field: ({ api }, good) => send(api, { ...good, what: `${good.what}?after=pur_1` }),
  },
  submitFeedback: { invalid_field: invalidBody({ message: "" }) },
  listFeedback: {
    invalid_field: ({ api }, good) =>
      send(api, { ...good, what: `${good.what.split("?")[0]}?after=fbk_1` }),
  },
  getProfile: { 200: afterProfile, invalid_field: wrongSlug, not_found: succeeds },
  listProfileRevisions: { 200: afterProfile, invalid_field: wrongSlug, not_found: succeeds },
  getProfileRevision: { 200: afterProfile, invalid_field: wrongSlug, not_found: succeeds },
  deleteProfile: {
    204: afterProfile,
    invalid_field: wrongSlug,
    not_found: succeeds,
    revision_conflict: wrongRevision,
  },
  putProfile: {
    200: afterProfile,
    invalid_field: wrongSlug,
    body_too_large: ({ api }, good) =>
      send(api, { ...good, body: JSON.stringify({ name: "x".repeat(270_000) }) }),
    invalid_config: withBody({ chains: {} }),
    unknown_chain: withBody({ chains: { nowhere: profileWith("good").chains.ethereum } }),
    provider_check_failed: withBody(profileWith("bad")),
    custom_access_required: succeeds,
    async profile_suspended(fixture, good) {
      await withProfile(fixture);
      fixture.api.runtime.advance(86_400_000);
      return send(fixture.api, good);
    },
    async profile_limit(fixture, good) {
      await withProfile(fixture);
      await send(fixture.api, { ...good, what: "PUT /api/v1/profiles/second" });
      return send(fixture.api, { ...good, what: "PUT /api/v1/profiles/third" });
    },
    revision_conflict: wrongRevision,
    account_merged: merged,
  },
  cordonProvider: OPERATOR_CASES,
  endProviderWait: OPERATOR_CASES,
  uncordonProvider: {
    forbidden: fromElsewhere,
    invalid_field: ({ api }, good) => send(api, { ...good, what: good.what.replace("=a", "=") }),
  },
  cordonEverywhere: OPERATOR_CASES,
  uncordonEverywhere: {
    forbidden: fromElsewhere,
    invalid_field: ({ api }, good) => send(api, { ...good, what: good.what.replace("=a", "=") }),
  },
  testProvider: { ...OPERATOR_CASES, rate_limited: eleven },
  compareProviders: {
    forbidden: fromElsewhere,
    not_found: ({ api }, good) =>
      send(api, { ...good, body: { ...Object(good.body), profile: "nowhere" } }),
    invalid_field: ({ api }, good) =>
      send(api, { ...good, body: { ...Object(good.body), method: "eth_sendRawTransaction" } }),
    rate_limited: eleven,
  },
  reloadConfiguration: { forbidden: fromElsewhere },
  listActions: {
    invalid_field: ({ api }, good) =>
      send(api, { ...good, what: `${good.what.split("?")[0]}?limit=0` }),
  },
  listAccounts: { invalid_field: wrongQuery("after=acc_1") },
  listAccountKeys: { invalid_field: wrongQuery("hours=soon") },
  listAllPurchases: { invalid_field: wrongQuery("state=lost") },
  listChainCalls: { invalid_field: wrongQuery("to=2026-11-01") },
  getRevenue: { invalid_field: wrongQuery("from=2026-11-02&to=2026-11-01") },
  signIn: {
    unauthorized: invalidBody({ token: "svc_mt_cut-off" }),
    forbidden: ({ api }, good) => send(api, { ...good, headers: {} }),
    invalid_field: invalidBody({ token: "" }),
    async rate_limited({ api }, good) {
      const wrong = { ...good, body: { token: newSecret("token") }, from: "203.0.113.11" };
      for (let i = 0; i < 10; i++) await send(api, wrong);
      const limited = await send(api, { ...good, from: "203.0.113.11" });
      api.runtime.advance(60_000);
      return limited;
    },
    internal: ({ broken }, good) => send(broken, { ...good, body: { token: newSecret("token") } }),
  },
  getHistory: {
    not_found: withQuery("profile=team&chain=nowhere"),
    invalid_field: withQuery("profile=team"),
    unavailable: withQuery("range=90d"),
  },
  watchEvents: {
    // A HEAD request has no body to read a code from.
    ...Object.fromEntries(
      ["unauthorized", "unavailable", "internal"].map((code) => [
        code,
        ((fixture, good) =>
          (CASES[code] ?? succeeds)(fixture, {
            ...good,
            what: "GET /api/v1/operator/events",
          })) satisfies Case,
      ]),
    ),
    invalid_field: ({ api }, good) =>
      send(api, { ...good, what: "GET /api/v1/operator/events?outcome=odd" }),
    async forbidden({ api }, { token: _, ...good }) {
      const signedIn = await api.call("POST /api/v1/console/session", {
        body: { token: OPERATOR_TOKEN },
        headers: SAME_ORIGIN,
      });
      const cookie = (signedIn.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
      const what = "GET /api/v1/operator/events";
      return send(api, { ...good, what, headers: { cookie } });
    },
  },
  listChanges: { invalid_field: withQuery("limit=0") },
  listIncidents: { invalid_field: withQuery("limit=0") },
  listDecisions: { invalid_field: withQuery("limit=0") },
  getDecision: {
    200: ofDecision(""),
    not_found: succeeds,
    invalid_field: ({ api }, good) =>
      send(api, { ...good, what: `${DECISIONS}/${"x".repeat(101)}` }),
  },
  getWhatIf: {
    200: ofDecision("?strategy=fastest&without=p0"),
    not_found: succeeds,
    invalid_field: ofDecision("?without=nobody"),
  },
  listProviderErrors: { invalid_field: withQuery("limit=0") },
  listStreams: { invalid_field: withQuery("profile=") },
  getSession: {
    internal: ({ broken }, good) =>
      send(broken, { ...good, headers: { cookie: `svc-session=${newSecret("session")}` } }),
  },
  purgeCache: {
    forbidden: fromElsewhere,
    not_found: ({ api }, good) =>
      send(api, { ...good, what: good.what.replace("public", "no-such") }),
    invalid_field: ({ api }, good) => send(api, { ...good, what: `${good.what}&provider=` }),
  },
  signOut: {
    forbidden: fromElsewhere,
    internal: ({ broken }, good) =>
      send(broken, {
        ...good,
        headers: {
          ...SAME_ORIGIN,
          cookie: `svc-session=${newSecret("session")}`,
          "content-type": "application/json",
        },
      }),
  },
  grantCustomAccess: {
    invalid_field: invalidBody({ days: 0 }),
    account_merged: merged,
    forbidden: fromElsewhere,
  },
  creditAccount: {
    forbidden: fromElsewhere,
    account_merged: merged,
    async invalid_field({ api }, good) {
      assert.equal((await send(api, good)).json.credited, true);
      assert.equal((await send(api, good)).json.credited, false);
      return send(api, { ...good, body: { ...Object(good.body), usd: "2" } });
    },
  },
  getOperatorUsage: {
    invalid_field: ({ api }, good) =>
      send(api, { ...good, what: `${good.what.split("?")[0]}?hours=soon` }),
  },
};

eachStore(({ engine, open }) => {
  describe(`every declared answer (${engine})`, () => {
    const endings: (() => Promise<void>)[] = [];
    const t = { after: (run: () => Promise<void>) => void endings.unshift(run) };
    const tried = new Set<string>();
    let payments = 0;
    let services: Pick<Fixture, "api" | "full" | "broken">;

    before(async () => {
      const store = await open(t);
      const bug = (): never => {
        throw new TypeError("a bug of this program");
      };
      const settings = new Proxy(
        { startingGrantCu: 1, tariff: TARIFF, maxKeys: 1, freeCuPerMonth: 1, fallbackMs: 1 },
        { get: bug },
      );
      const payments = fakePayments({
        store,
        changes: { key: () => undefined, account: () => undefined },
        wallMs: () => services.api.runtime.wallMs(),
      });
      services = {
        api: await serveApi(t, store, { payments }),
        full: await serveApi(t, store, {
          limits: {
            maxReading: 1_024,
            maxUnderWay: 0,
            missesPerMinute: 3,
            writesPerMinute: 10_000,
          },
        }),
        broken: await serveApi(
          t,
          failingStore(() => new TypeError("a bug of this program")),
          {
            settings,
            audit: bug,
            servedChains: bug,
            instance: {
              live: brokenLive(bug),
              providers: new Proxy(NO_PROVIDERS, { get: bug }),
              methods: bug,
              purgeCache: bug,
            },
            payments: new Proxy(payments, { get: bug }),
            custom: {
              ...testCustom(),
              get requestsPerSecond() {
                return bug();
              },
            },
          },
        ),
      };
    });
    after(async () => {
      for (const end of endings) await end();
    });

    for (const operation of OPERATIONS.filter((it) => it.servedBy !== "pages")) {
      for (const outcome of outcomesOf(operation)) {
        test(`${operation.id}: ${outcome}`, async () => {
          const run = OWN_CASES[operation.id]?.[outcome] ?? CASES[outcome];
          const good = GOOD[operation.id];
          assert.ok(
            run !== undefined && good !== undefined,
            "no case shows this outcome: write one",
          );
          const { json: made } = await services.api.call("POST /api/v1/keys", { body: {} });
          const { json: anonymous } = await services.api.call("POST /api/v1/agent/keys");
          const account = {
            id: made.account_id,
            token: made.management_token,
            keyId: made.id,
            key: made.key,
          };
          const connection = await approvedConnection(services.api, account.id);
          const pay = (fate = "good") => ({ "payment-signature": `${fate}-${++payments}` });
          const funding = { body: { amount_usd: "0.1" }, headers: pay() };
          const { json: funded } = await services.api.call(
            `POST /api/v1/agent/keys/${anonymous.key}/fund`,
            funding,
          );
          const fixture = {
            ...services,
            account,
            connection,
            anonymousKey: anonymous.key,
            purchaseId: funded.purchase_id,
            pay,
          };
          const answer = await run(fixture, good(fixture));
          assert.equal(answer.outcome, `${operation.id} ${outcome}`, answer.text);
          tried.add(answer.outcome);
        });
      }
    }

    test("nothing is declared that was not shown", () => {
      const declared = OPERATIONS.filter((it) => it.servedBy !== "pages").flatMap((it) =>
        outcomesOf(it).map((outcome) => `${it.id} ${outcome}`),
      );
      assert.ok(declared.length > 100);
      assert.deepEqual(
        declared.filter((it) => !tried.has(it)),
        [],
      );
    });
  });
});

/** A connection that the owner of an account has approved. */
async function approvedConnection(
  api: ServedApi,
  accountId: string,
): Promise<Fixture["connection"]> {
  const { json } = await api.call("POST /api/v1/connections", { body: { name: "approved" } });
  const owner = {
    kind: "owner",
    accountId,
    profiles: null,
    manages: true,
    expiresAtMs: null,
  } as const;
  const decision = {
    kind: "approve",
    owner,
    restrictions: { profiles: null, readOnly: false, expiresAtMs: null },
  } as const;
  await decideConnection(
    api.store,
    { approval: String(json.approval_url).split("/connect/")[1] ?? "", decision },
    api.runtime.wallMs(),
  );
  return { id: json.id, token: json.token };
}

function outcomesOf({ answers, faults }: NamedOperation): readonly string[] {
  return [...Object.keys(answers), ...faults];
}
