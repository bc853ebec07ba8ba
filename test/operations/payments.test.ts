// Operations that are paid for, over HTTP: what is asked, what is taken and what is never taken
// twice; who repeats a payment gets its first result.
import assert from "node:assert/strict";
import { test } from "node:test";
import { insertManagementToken } from "../../src/hosted/keys/management-token.ts";
import { newSecret } from "../../src/secrets/secret.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { type ApiAnswered, type ServedApi, serveApi } from "../fakes/hosted.ts";
import { type FakePayments, fakePayments } from "../fakes/payments.ts";
import { type Ending, eachStore } from "../fakes/stores.ts";

interface Fixture {
  readonly api: ServedApi;
  readonly payments: FakePayments;
  /** A key of an account of its own. */
  readonly account: {
    readonly id: string;
    readonly token: string;
    readonly keyId: string;
    readonly key: string;
  };
}

async function fixtureOf(t: Ending, store: Store): Promise<Fixture> {
  const changed: string[] = [];
  const changes = {
    key: (id: string) => void changed.push(id),
    account: (id: string) => void changed.push(id),
  };
  let wallMs = (): number => 1;
  const payments = fakePayments({ store, changes, wallMs: () => wallMs() });
  const api = await serveApi(t, store, { payments });
  wallMs = api.runtime.wallMs;
  const { json } = await api.call("POST /api/v1/keys", { body: {} });
  return {
    api,
    payments,
    account: { id: json.account_id, token: json.management_token, keyId: json.id, key: json.key },
  };
}

const codeOf = ({ json }: ApiAnswered): string => json.error.code;
const mpp = (text: string) => ({ authorization: `Payment ${text}` });
const fund = ({ account }: Fixture): string => `POST /api/v1/agent/keys/${account.key}/fund`;
const balance = async ({ api, account }: Fixture): Promise<string> =>
  (await api.call("GET /api/v1/accounts/current", { token: account.token })).json.balance_usd;

eachStore(({ engine, open }) => {
  const paid = (title: string, run: (fixture: Fixture) => Promise<void>): void =>
    void test(`${title} (${engine})`, async (t) => {
      await run(await fixtureOf(t, await open(t)));
    });

  paid("an unpaid request gets every offer, bound to that request alone", async (fixture) => {
    const { api, payments, account } = fixture;
    const asked = await api.call(fund(fixture), { body: { amount_usd: "0.5" } });
    assert.equal(asked.outcome, "fundAgentKey payment_required");
    assert.equal(asked.headers.get("www-authenticate")?.split(/, (?=Payment )/).length, 2);
    assert.ok(asked.headers.has("payment-required"));
    const { type, title, status, detail } = asked.json;
    assert.deepEqual(
      [type, title, status, detail],
      [
        "https://paymentauth.org/problems/payment-required",
        "Payment Required",
        402,
        asked.json.error.message,
      ],
    );
    const [order] = payments.offered;
    assert.deepEqual(order?.purpose, {
      kind: "fund_key",
      accountId: account.id,
      keyId: account.keyId,
    });
    assert.deepEqual([order?.amountN, order?.keepsAuthorization], [500_000_000n, false]);
    assert.equal(order?.request.resourceUrl, `${api.url}/api/v1/agent/keys/redacted/fund`);
    assert.ok(!order.description.includes(account.key));
    assert.equal(await balance(fixture), "0");
  });

  paid(
    "a payment funds a key once, however often it comes, and says so with a receipt",
    async (fixture) => {
      const { api, account, payments } = fixture;
      const sent = { body: { amount_usd: "0.5" }, headers: mpp("good-1") };
      const answers = [await api.call(fund(fixture), sent), await api.call(fund(fixture), sent)];
      for (const { json, headers, status } of answers) {
        assert.equal(status, 200);
        assert.ok(headers.has("payment-receipt"));
        const { purchase_id, receipt, ...told } = json;
        assert.deepEqual(told, {
          key_prefix: account.key.slice(0, 12),
          balance_cu: 100_000,
          balance_usd: "0.5",
          estimated_requests: { cheap_reads: 100_000, standard_reads: 33_333, heavy_reads: 6_666 },
          funded_cu: 100_000,
          funded_usd: "0.5",
        });
        assert.match(purchase_id, /^pur_/);
        assert.equal(receipt.amount_usd, "0.5");
      }
      assert.deepEqual(answers[0]?.json, answers[1]?.json);
      assert.equal(payments.ordered.length, 1);
      assert.equal(await balance(fixture), "0.5");
    },
  );

  paid(
    "a repeated payment gets its first result although the key, the token and the range are gone",
    async (fixture) => {
      const { api, account, payments } = fixture;
      const funding = { body: { amount_usd: "0.5" }, headers: mpp("good-1") };
      const crediting = { body: { usd: "7" }, headers: mpp("good-2") };
      const credit = `POST /api/v1/accounts/${account.id}/credit`;
      const first = await api.call(fund(fixture), funding);
      const second = await api.call(credit, {
        ...crediting,
        headers: { authorization: `Bearer ${account.token}, Payment good-2` },
      });
      assert.deepEqual([first.status, second.status], [200, 200]);
      await api.call(`DELETE /api/v1/keys/${account.keyId}`, { token: account.token });
      assert.equal(
        (await api.call(fund(fixture), { body: { amount_usd: "0.5" } })).outcome,
        "fundAgentKey not_found",
      );
      assert.deepEqual((await api.call(fund(fixture), funding)).json, first.json);
      assert.deepEqual(
        (await api.call(credit, crediting)).json,
        second.json,
        "the token is not asked for what is settled",
      );
      assert.equal(payments.ordered.length, 2);
    },
  );

  paid("money for a key that was deleted after its offer is its account's", async (fixture) => {
    const { api, account, payments } = fixture;
    await api.call(`DELETE /api/v1/keys/${account.keyId}`, { token: account.token });
    const body = { amount_usd: "0.5" };
    assert.equal((await api.call(fund(fixture), { body })).outcome, "fundAgentKey not_found");
    assert.equal((await api.call(fund(fixture), { body, headers: mpp("good-1") })).status, 200);
    assert.deepEqual([await balance(fixture), payments.offered.length], ["0.5", 0]);
  });

  paid(
    "a key that does not exist is told before anything is asked or taken",
    async ({ api, payments }) => {
      const what = `POST /api/v1/agent/keys/${newSecret("key")}/fund`;
      for (const headers of [{}, mpp("good-1")])
        assert.equal(
          (await api.call(what, { body: { amount_usd: "1" }, headers })).outcome,
          "fundAgentKey not_found",
        );
      assert.deepEqual([payments.offered.length, payments.ordered.length], [0, 0]);
    },
  );

  paid(
    "a key that is paid for has the whole amount and no grant, and is shown again to its payer",
    async ({ api, payments, account }) => {
      const sent = {
        body: { name: "mine", initial_fund_usd: "0.1" },
        headers: { "payment-signature": "good-1" },
      };
      const { json, status } = await api.call("POST /api/v1/agent/keys", sent);
      assert.deepEqual(
        [status, json.balance_usd, json.balance_cu, json.profile],
        [201, "0.1", 20_000, "premium"],
      );
      assert.deepEqual((await api.call("POST /api/v1/agent/keys", sent)).json, json);
      const { json: read } = await api.call(`GET /api/v1/agent/keys/${json.key}`);
      assert.deepEqual([read.name, read.balance_usd, read.type], ["mine", "0.1", "anonymous"]);
      payments.forget();
      const forgotten = await api.call("POST /api/v1/agent/keys", sent);
      assert.deepEqual(
        [forgotten.outcome, forgotten.text.includes(json.key)],
        ["createAgentKey payment_conflict", false],
      );
      const purchase = await api.call(`GET /api/v1/purchases/${json.purchase_id}`, {
        token: account.token,
      });
      assert.deepEqual(
        purchase.json,
        { state: "settled", reason: null },
        "it is no account's of a token",
      );
      const claim = await api.call(`POST /api/v1/agent/keys/${json.key}/claim`, {
        headers: { "x-svc-api-key": account.key },
      });
      assert.equal(claim.status, 200);
      const claimed = await api.call(`GET /api/v1/purchases/${json.purchase_id}`, {
        token: account.token,
      });
      assert.deepEqual([claimed.json.buys, claimed.json.id], ["create_key", json.purchase_id]);
    },
  );

  paid("a management token never pays, and a payment never stands for it", async (fixture) => {
    const { api, account, payments } = fixture;
    const credit = `POST /api/v1/accounts/${account.id}/credit`;
    const body = { usd: "5" };
    const alone = await api.call(credit, { body, token: account.token });
    assert.equal(alone.outcome, "buyCredit payment_required");
    assert.equal(payments.offered.at(-1)?.keepsAuthorization, true);
    assert.match(alone.headers.get("www-authenticate") ?? "", /header="Payment-Authorization"/);
    assert.equal(
      (await api.call(credit, { body, headers: mpp("good-1") })).outcome,
      "buyCredit unauthorized",
    );
    assert.equal(payments.ordered.length, 0);
    const ways = [
      { authorization: `Bearer ${account.token}, Payment good-2` },
      { authorization: `Payment good-3,Bearer ${account.token}` },
      { authorization: `Bearer ${account.token}`, "payment-authorization": "Payment good-4" },
      { authorization: `Bearer ${account.token}`, "payment-signature": "good-5" },
    ];
    for (const headers of ways)
      assert.equal(
        (await api.call(credit, { body, headers })).status,
        200,
        JSON.stringify(Object.keys(headers)),
      );
    assert.equal(await balance(fixture), "20");
  });

  paid(
    "credit says what was credited and what is there; days say from when until when",
    async ({ api, account }) => {
      const credit = await api.call(`POST /api/v1/accounts/${account.id}/credit`, {
        token: account.token,
        body: { usd: "2.000001" },
        headers: { "payment-signature": "good-1" },
      });
      assert.deepEqual(
        [credit.json.credited_usd, credit.json.balance_usd],
        ["2.000001", "2.000001"],
      );
      const access = `POST /api/v1/accounts/${account.id}/custom-access`;
      const [first, second] = [
        await api.call(access, {
          token: account.token,
          body: { days: 1, key_id: account.keyId },
          headers: { "payment-signature": "good-2" },
        }),
        await api.call(access, {
          token: account.token,
          body: { days: 30, key_id: account.keyId },
          headers: { "payment-signature": "good-3" },
        }),
      ];
      assert.deepEqual(
        [first.json.days, first.json.balance_usd, second.json.from, second.json.receipt.amount_usd],
        [1, "2.000001", first.json.until, "39"],
      );
      const other = await api.call("POST /api/v1/keys", { body: {} });
      const foreign = await api.call(access, {
        token: account.token,
        body: { days: 1, key_id: other.json.id },
        headers: { "payment-signature": "good-4" },
      });
      assert.equal(foreign.outcome, "buyCustomAccess not_found");
      const theirs = `POST /api/v1/accounts/${other.json.account_id}/credit`;
      assert.equal(
        (await api.call(theirs, { token: account.token, body: { usd: "1" } })).outcome,
        "buyCredit not_found",
      );
    },
  );

  paid(
    "several payments, one that is too long, and one that nobody asked for are refused and not " +
      "looked at",
    async (fixture) => {
      const { api, payments } = fixture;
      const body = { amount_usd: "1" };
      const several = await api.call(fund(fixture), {
        body,
        headers: { ...mpp("good-1"), "payment-signature": "good-2" },
      });
      assert.equal(several.outcome, "fundAgentKey invalid_request");
      const unasked = await api.call("POST /api/v1/agent/keys", {
        body: { name: "free" },
        headers: mpp("good-3"),
      });
      assert.equal(unasked.outcome, "createAgentKey invalid_request");
      assert.equal(payments.given.length, 0);
      assert.equal(
        (
          await api.call(fund(fixture), {
            body,
            headers: { ...mpp("good-1"), "payment-signature": "good-1" },
          })
        ).status,
        200,
        "one payment in two places is one",
      );
    },
  );

  paid(
    "amounts: the range includes its ends, and what is finer than a token's units is no amount",
    async (fixture) => {
      const { api } = fixture;
      const rows = [
        ["0.1", "payment_required"],
        ["100", "payment_required"],
        ["0.100001", "payment_required"],
        ["0.099999", "amount_out_of_range"],
        ["100.000001", "amount_out_of_range"],
        ["0", "amount_out_of_range"],
        ["0.1000001", "invalid_field"],
        ["1.0000000", "payment_required"],
        ["-1", "invalid_field"],
        ["1e2", "invalid_field"],
        ["", "invalid_field"],
      ] as const;
      for (const [amount_usd, code] of rows)
        assert.equal(
          codeOf(await api.call(fund(fixture), { body: { amount_usd } })),
          code,
          amount_usd,
        );
      const access = `POST /api/v1/accounts/${fixture.account.id}/custom-access`;
      for (const [days, code] of [
        [0, "amount_out_of_range"],
        [1, "payment_required"],
        [30, "payment_required"],
        [31, "amount_out_of_range"],
        [1.5, "invalid_field"],
      ] as const)
        assert.equal(
          codeOf(
            await api.call(access, {
              token: fixture.account.token,
              body: { days, key_id: fixture.account.keyId },
            }),
          ),
          code,
          String(days),
        );
    },
  );

  paid(
    "where nothing can be offered the answer is 503, never a 402 that offers nothing",
    async (fixture) => {
      const { api, payments } = fixture;
      payments.closed = true;
      for (const headers of [{}, mpp("bad-1")]) {
        const answer = await api.call(fund(fixture), { body: { amount_usd: "1" }, headers });
        assert.deepEqual(
          [answer.outcome, answer.headers.has("www-authenticate")],
          ["fundAgentKey unavailable", false],
        );
      }
    },
  );

  paid(
    "a payment that is not right gets fresh offers, and an address that goes on sending such " +
      "is slowed down",
    async (fixture) => {
      const { api, payments } = fixture;
      const send = (text: string, from: string) =>
        api.call(fund(fixture), { body: { amount_usd: "1" }, headers: mpp(text), from });
      const bad = await send("bad-1", "203.0.113.20");
      assert.equal(bad.outcome, "fundAgentKey payment_invalid");
      assert.equal(bad.json.type, "https://paymentauth.org/problems/verification-failed");
      assert.equal(payments.offered.length, 1);
      for (let i = 2; i <= 20; i++)
        assert.equal(codeOf(await send(`bad-${i}`, "203.0.113.20")), "payment_invalid");
      const before = payments.given.length;
      assert.equal(codeOf(await send("good-1", "203.0.113.20")), "rate_limited");
      assert.equal(payments.given.length, before, "it is not even looked at");
      assert.equal(
        (await send("good-2", "203.0.113.21")).status,
        200,
        "others are not slowed down",
      );
      api.runtime.advance(2_000);
      assert.equal((await send("good-1", "203.0.113.20")).status, 200);
    },
  );

  paid("offers are limited by address", async (fixture) => {
    const { api, payments } = fixture;
    const ask = () => api.call(fund(fixture), { body: { amount_usd: "1" }, from: "203.0.113.22" });
    for (let i = 0; i < 100; i++) assert.equal(codeOf(await ask()), "payment_required");
    const limited = await ask();
    assert.deepEqual([codeOf(limited), payments.offered.length], ["rate_limited", 100]);
    api.runtime.advance(1_000);
    assert.equal(codeOf(await ask()), "payment_required");
  });

  paid(
    "what becomes of a payment is read at its status_url, by anyone with that and by the " +
      "account it is for",
    async (fixture) => {
      const { api, account } = fixture;
      const credit = `POST /api/v1/accounts/${account.id}/credit`;
      const sent = { token: account.token, body: { usd: "1" } };
      const states: readonly (readonly [string, string])[] = [
        ["pending", "submitted"],
        ["failed", "failed"],
        ["gone", "settled"],
      ];
      for (const [fate, state] of states) {
        const { json } = await api.call(credit, {
          ...sent,
          headers: { "payment-signature": `${fate}-1` },
        });
        const { purchase_id, status_url } = json.error;
        assert.equal(status_url, `${api.url}/api/v1/purchases/${purchase_id}`);
        const what = `GET ${status_url.slice(api.url.length)}`;
        const { json: told } = await api.call(what);
        assert.deepEqual(
          [Object.keys(told).sort(), told.state],
          [["reason", "state"], state],
          "nothing is told of who paid what for whom",
        );
        const { json: whole } = await api.call(what, { token: account.token });
        assert.deepEqual(
          [whole.state, whole.account_id, whole.id],
          [state, account.id, purchase_id],
        );
        assert.ok(["payer", "tx_hash", "amount_usd", "rail"].every((it) => it in whole));
        const other = await api.call("POST /api/v1/keys", { body: {} });
        assert.equal(
          (await api.call(what, { token: other.json.management_token })).outcome,
          "getPurchase not_found",
        );
      }
      for (const [fate, code] of [
        ["down", "unavailable"],
        ["busy", "rate_limited"],
      ] as const) {
        const answer = await api.call(credit, {
          ...sent,
          headers: { "payment-signature": `${fate}-1` },
        });
        assert.deepEqual(
          [codeOf(answer), "status_url" in answer.json.error],
          [code, false],
          "nothing was recorded",
        );
      }
    },
  );

  paid("a token that may only read buys nothing", async ({ api, account, payments }) => {
    const agent = {
      accountId: account.id,
      name: "",
      profiles: null,
      readOnly: true,
      expiresAtMs: null,
    };
    const { token } = await api.store.transaction((tx) => insertManagementToken(tx, agent, 1));
    const credit = `POST /api/v1/accounts/${account.id}/credit`;
    for (const headers of [{}, { "payment-signature": "good-1" }])
      assert.equal(
        (await api.call(credit, { token, body: { usd: "1" }, headers })).outcome,
        "buyCredit forbidden",
      );
    assert.equal(payments.ordered.length, 0);
  });

  test(
    "without rails everything that is paid for says so, and free keys are made as ever " +
      `(${engine})`,
    async (t) => {
      const api = await serveApi(t, await open(t));
      const { json } = await api.call("POST /api/v1/keys", { body: {} });
      const token = json.management_token;
      const account = `/api/v1/accounts/${json.account_id}`;
      for (const headers of [{}, { "payment-signature": "good-1" }])
        for (const [what, body] of [
          [`POST /api/v1/agent/keys/${json.key}/fund`, { amount_usd: "1" }],
          ["POST /api/v1/agent/keys", { initial_fund_usd: "1" }],
          [`POST ${account}/credit`, { usd: "1" }],
          [`POST ${account}/custom-access`, { days: 1, key_id: json.id }],
        ] as const)
          assert.match(
            (await api.call(what, { body, headers, token })).outcome,
            / unavailable$/,
            what,
          );
      assert.equal((await api.call("POST /api/v1/agent/keys", { body: {} })).status, 201);
      assert.equal(
        (await api.call(`GET /api/v1/purchases/pur_${"0".repeat(20)}`)).outcome,
        "getPurchase not_found",
      );
    },
  );
});
