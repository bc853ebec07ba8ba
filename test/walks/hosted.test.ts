// Calls with a key, over real sockets and a real store: who is served where, what it costs to the
// unit, what the headers say, and every refusal.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { BaseError, createPublicClient, http } from "viem";
import { mainnet } from "viem/chains";
import { realRuntime } from "../../src/runtime.ts";
import { type HostedFixture, hostedFixture, OPERATOR_TOKEN } from "../fakes/hosted-fixture.ts";
import type { Answer } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";

const code = ({ status, json }: Answer) => [status, json.error.code, json.error.data.code];
const paid = ({ headers }: Answer) =>
  ["access", "fallback", "cu", "usd", "balance-usd"].map((it) => headers.get(`x-svc-${it}`));

/**
 * Runs it while the service's clock, by which buckets fill, stands still at a whole millisecond.
 * Timers stay real.
 */
async function atOnce<T>(t: TestContext, run: () => Promise<T>): Promise<T> {
  const at = Math.ceil(realRuntime.now());
  const { mock } = t.mock.method(realRuntime, "now", () => at);
  try {
    return await run();
  } finally {
    mock.restore();
  }
}

async function balanceOf({ service }: HostedFixture, key: string): Promise<number> {
  return (await service.get(`/api/v1/agent/keys/${key}`)).json.balance_cu;
}

test(
  "an anonymous key is served by premium, each call costs its weight times the factor of its " +
    "strategy, and the headers add up",
  async (t) => {
    const fixture = await hostedFixture(t);
    const key = await fixture.anonymousKey();
    const first = await fixture.call(key);
    assert.equal(first.json.result, "0x1");
    assert.deepEqual(paid(first), ["premium", null, "3", "0.000015", "0.024985"]);
    const fast = await fixture.call(key, "eth_getLogs", "fastest/ethereum");
    assert.deepEqual(paid(fast), ["premium", null, "30", "0.00015", "0.024835"]);
    assert.equal(first.headers.get("ratelimit-policy"), '"managed";q=200;w=2');
    assert.match(first.headers.get("ratelimit") ?? "", /^"managed";r=(19\d|200);t=[01]$/);
    assert.equal(fixture.premium.asked.length, 2);
    assert.equal(
      await balanceOf(fixture, key),
      4_967,
      "a reader of the balance sees what was just used",
    );
  },
);

test("what is answered here, refused, or answered by nobody is free; a provider's own error is not", async (t) => {
  const fixture = await hostedFixture(t);
  const key = await fixture.anonymousKey();
  assert.deepEqual(paid(await fixture.call(key, "eth_chainId")).slice(0, 4), [
    "premium",
    null,
    "1",
    "0",
  ]);
  assert.deepEqual(paid(await fixture.call(key, "eth_accounts")).slice(0, 4), [
    "premium",
    null,
    "3",
    "0",
  ]);
  assert.deepEqual(paid(await fixture.call(key, "eth_sign")).slice(0, 4), [
    "premium",
    null,
    "3",
    "0",
  ]);
  fixture.premium.script((_, reply) => reply.reset());
  const nobody = await fixture.call(key);
  assert.deepEqual([nobody.status, nobody.headers.get("x-svc-usd")], [200, "0"]);
  fixture.premium.script((_, reply) => reply.error('{"code":3,"message":"execution reverted"}'));
  assert.deepEqual(paid(await fixture.call(key, "eth_call")).slice(2, 4), ["3", "0.000015"]);
  assert.equal(paid(await fixture.call(key, "no_such_method"))[3], "0.000015");
});

test(
  "the same key in the path, in the query, as Bearer and as X-Svc-Api-Key; no way lets it out " +
    "to a provider or into the log",
  async (t) => {
    const fixture = await hostedFixture(t);
    const key = await fixture.anonymousKey();
    const body = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice" };
    const answers = [
      await fixture.service.post(`/rpc/k/${key}/load-balanced/1`, body),
      await fixture.service.post(`/rpc/ethereum?key=${key}`, body),
      await fixture.service.post("/rpc/ethereum", body, { authorization: `Bearer ${key}` }),
      await fixture.service.post("/rpc/profile/premium/mainnet", body, { "x-svc-api-key": key }),
      await fixture.service.post(`/rpc/k/${key}/provider/p1/1`, body),
    ];
    for (const answer of answers)
      assert.deepEqual([answer.status, answer.json.result], [200, "0x1"]);
    await fixture.call(key, "eth_subscribe");
    const seen = fixture.premium.asked
      .map((it) => JSON.stringify([it.path, it.headers, it.body]))
      .join();
    assert.ok(!seen.includes(key) && !seen.includes("svc_ak_"));
    assert.ok(!fixture.service.log().includes(key.slice(12)));
    assert.ok(!answers.some((it) => it.text.includes(key)));
  },
);

test("without a key, with a torn one, an unknown one, a management token: 401 and what to do", async (t) => {
  const fixture = await hostedFixture(t);
  const key = await fixture.anonymousKey();
  const { token } = await fixture.account();
  const none = await fixture.service.post("/rpc/ethereum", {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_gasPrice",
  });
  assert.deepEqual(code(none), [401, -32001, "unauthorized"]);
  assert.match(none.json.error.data.next_action, /POST \/api\/v1\/agent\/keys/);
  for (const wrong of [
    key.slice(0, -1),
    `${key}x`,
    "x",
    key.replace(/.$/, (it) => (it === "a" ? "b" : "a")),
    token,
    "%00",
    "svc_ak_",
  ]) {
    assert.deepEqual(code(await fixture.call(wrong)), [401, -32001, "unauthorized"], wrong);
  }
  assert.equal(fixture.premium.asked.length + fixture.public.asked.length, 0);
});

test(
  "an anonymous key is used up to the last unit and then refused with 402 before any provider " +
    "is asked; nothing is overspent",
  async (t) => {
    const fixture = await hostedFixture(t, { starting_grant_cu: 50 });
    const key = await fixture.anonymousKey();
    const answers: Answer[] = [];
    for (let i = 0; i < 20; i++) answers.push(await fixture.call(key));
    const served = answers.filter((it) => it.status === 200).length;
    assert.equal(served, 16, "16 × 3 CU fit into 50");
    assert.equal(fixture.premium.asked.length, 16);
    const last = answers.at(-1);
    assert.ok(last);
    assert.deepEqual(code(last), [402, -32040, "balance_exhausted"]);
    assert.equal(last.json.error.data.retryable, false);
    assert.equal(
      (await fixture.call(key, "eth_blockNumber")).status,
      200,
      "what is left pays for a smaller call",
    );
    assert.equal(await balanceOf(fixture, key), 1);
  },
);

test(
  "two hundred calls at once on a small balance: as many are served as it pays for, and not " +
    "one more",
  async (t) => {
    const fixture = await hostedFixture(t, { starting_grant_cu: 300 });
    const key = await fixture.anonymousKey();
    const answers = await Promise.all(Array.from({ length: 150 }, () => fixture.call(key)));
    assert.deepEqual(
      [
        answers.filter((it) => it.status === 200).length,
        answers.filter((it) => it.status === 402).length,
      ],
      [100, 50],
    );
    assert.equal(fixture.premium.asked.length, 100);
  },
);

test(
  "a new account is served on public providers by its free allowance: load-balanced, " +
    "uncharged, and told so",
  async (t) => {
    const fixture = await hostedFixture(t, { free_cu_per_month: 20 });
    const { key, accountId, token } = await fixture.account();
    const answer = await fixture.call(key, "eth_getLogs", "fastest/ethereum?include_meta=body");
    assert.deepEqual(
      paid(answer),
      ["public", "free", null, null, "0"],
      "usage of accounts is recorded, not told per request",
    );
    assert.deepEqual(
      [
        answer.json.svc_meta.strategy,
        answer.json.svc_meta.profile,
        answer.json.svc_meta.candidate_providers,
      ],
      ["load-balanced", "public", ["p1"]],
    );
    assert.equal(answer.headers.get("ratelimit-policy"), '"managed";q=60;w=2');
    assert.equal(fixture.public.asked.length, 1);
    assert.deepEqual(code(await fixture.call(key, "eth_getLogs")), [
      402,
      -32040,
      "balance_exhausted",
    ]);
    assert.equal(
      (await fixture.call(key, "eth_getBlockByNumber", "profile/public/ethereum")).status,
      200,
    );
    assert.equal(
      (await fixture.manage(token, "GET", `/api/v1/accounts/${accountId}`)).json.included_usage
        .used_cu,
      20,
    );
  },
);

test(
  "profiles: one that a key may not use is forbidden, one that is not there for its account is " +
    "unknown, and so are chains",
  async (t) => {
    const fixture = await hostedFixture(t);
    const key = await fixture.anonymousKey();
    assert.deepEqual(
      code(await fixture.call(key, "eth_gasPrice", "profile/team/ethereum")),
      [404, -32602, "unknown_profile"],
      "the operator's own is absent",
    );
    assert.deepEqual(code(await fixture.call(key, "eth_gasPrice", "profile/nobody/ethereum")), [
      404,
      -32602,
      "unknown_profile",
    ]);
    assert.deepEqual(code(await fixture.call(key, "eth_gasPrice", "nochain")), [
      400,
      -32602,
      "unknown_chain",
    ]);
    const { key: own, id, token } = await fixture.account();
    assert.equal(
      (
        await fixture.manage(token, "PATCH", `/api/v1/keys/${id}`, {
          allowed_profiles: ["public"],
          default_profile: "public",
        })
      ).status,
      200,
    );
    assert.equal((await fixture.call(own)).headers.get("x-svc-access"), "public");
    assert.deepEqual(code(await fixture.call(own, "eth_gasPrice", "profile/premium/ethereum")), [
      403,
      -32001,
      "forbidden",
    ]);
  },
);

test(
  "the bucket refuses what is too much with 429, says when to come back, and charges nothing " +
    "for it",
  async (t) => {
    const fixture = await hostedFixture(t, { buckets: { managed: { per_second: 1, burst: 3 } } });
    const key = await fixture.anonymousKey();
    const answers: Answer[] = await atOnce(t, () =>
      Promise.all([1, 2, 3, 4, 5].map(() => fixture.call(key))),
    );
    assert.deepEqual(answers.map((it) => it.status).sort(), [200, 200, 200, 429, 429]);
    const no = answers.find((it) => it.status === 429);
    assert.ok(no);
    assert.deepEqual(code(no), [429, -32005, "rate_limit_exceeded"]);
    assert.equal(no.headers.get("retry-after"), "1");
    assert.equal(no.headers.get("ratelimit-policy"), '"managed";q=3;w=3');
    assert.match(no.headers.get("ratelimit") ?? "", /^"managed";r=0;t=[123]$/);
    assert.deepEqual([fixture.premium.asked.length, no.headers.get("x-svc-cu")], [3, null]);
  },
);

test(
  "a batch is charged per item: each refused one has its own error, one beyond the rate waits, " +
    "and the headers are the sum",
  async (t) => {
    const fixture = await hostedFixture(t, { buckets: { managed: { per_second: 1, burst: 3 } } });
    const key = await fixture.anonymousKey();
    const items = [1, 2, 3, 4].map((id) => ({
      jsonrpc: "2.0",
      id,
      method: id === 1 ? "eth_chainId" : "eth_gasPrice",
    }));
    const answer = await fixture.service.post(`/rpc/k/${key}/ethereum`, [...items, 7]);
    assert.equal(answer.status, 200);
    assert.deepEqual(
      answer.json.map((it: { id: number; error?: { data: { code: string } } }) => [
        it.id,
        it.error?.data.code ?? "ok",
      ]),
      [
        [1, "ok"],
        [2, "ok"],
        [3, "ok"],
        [4, "ok"],
        [null, "invalid_request"],
      ],
    );
    assert.deepEqual(paid(answer).slice(2, 4), ["10", "0.000045"]);
  },
);

test(
  "a deleted key is refused at once; a rotated one works on until its overlap ends, and its " +
    "successor from the start",
  async (t) => {
    const fixture = await hostedFixture(t);
    const { key, id, token } = await fixture.account();
    assert.equal((await fixture.call(key)).status, 200);
    const kept = (
      await fixture.manage(token, "POST", `/api/v1/keys/${id}/rotate`, { grace_seconds: 3_600 })
    ).json.key;
    assert.deepEqual(
      [(await fixture.call(key)).status, (await fixture.call(kept)).status],
      [200, 200],
    );
    const next = (
      await fixture.manage(token, "POST", `/api/v1/keys/${id}/rotate`, { grace_seconds: 0 })
    ).json.key;

    assert.deepEqual(code(await fixture.call(kept)), [401, -32001, "key_revoked"]);
    assert.equal((await fixture.call(next)).status, 200);
    assert.equal((await fixture.manage(token, "DELETE", `/api/v1/keys/${id}`)).status, 204);

    assert.deepEqual(code(await fixture.call(next)), [401, -32001, "key_revoked"]);
  },
);

test(
  "with keyless allowed, callers without a key are served as by a plain router, and keys are " +
    "metered all the same",
  async (t) => {
    const fixture = await hostedFixture(t, { keyless: true });
    const key = await fixture.anonymousKey();
    const plain = await fixture.service.post("/rpc/ethereum", {
      jsonrpc: "2.0",
      id: 1,
      method: "eth_gasPrice",
    });
    assert.deepEqual([plain.json.result, plain.headers.get("x-svc-access")], ["0x1", null]);
    assert.equal(
      (
        await fixture.service.post("/rpc/profile/team/ethereum", {
          jsonrpc: "2.0",
          id: 1,
          method: "eth_gasPrice",
        })
      ).status,
      200,
    );
    assert.equal((await fixture.call(key)).headers.get("x-svc-cu"), "3");
    assert.equal((await fixture.call(`${key}x`)).status, 401, "a wrong key is not a missing one");
  },
);

test(
  "viem with a key in its URL works as it comes, and its 402 reaches the caller with the words " +
    "of the service",
  async (t) => {
    const fixture = await hostedFixture(t, { starting_grant_cu: 7 });
    const key = await fixture.anonymousKey();
    const client = createPublicClient({
      chain: mainnet,
      transport: http(`${fixture.service.url}/rpc/k/${key}/load-balanced/ethereum`, {
        retryCount: 0,
      }),
    });
    fixture.premium.script((_, reply) => reply.result('"0x64"'));
    assert.equal(await client.getGasPrice(), 100n);
    assert.equal(await client.getGasPrice(), 100n);
    const { json } = await fixture.call(key);
    await assert.rejects(client.getGasPrice(), (error) => {
      assert.ok(error instanceof BaseError);
      // Codes that viem knows are told in its own words, here as a rejected transaction.
      assert.deepEqual(
        [error.shortMessage, error.details],
        ["RPC Request failed.", json.error.message],
      );
      return true;
    });
  },
);

test("the operator reads usage by method and key, and the books agree; nobody else can", async (t) => {
  const fixture = await hostedFixture(t);
  const key = await fixture.anonymousKey();
  await fixture.call(key);
  await fixture.call(key, "eth_getLogs", "fastest/ethereum");
  const usage = (await fixture.manage(OPERATOR_TOKEN, "GET", "/api/v1/operator/usage")).json;
  assert.equal(usage.totals.calls, 2);
  assert.deepEqual([usage.totals.cu, usage.totals.usd], [33, "0.000165"]);
  assert.deepEqual(
    usage.by_method.map((it: { method: string; cu: number }) => [it.method, it.cu]).sort(),
    [
      ["eth_gasPrice", 3],
      ["eth_getLogs", 30],
    ].sort(),
  );
  assert.equal(
    (await fixture.manage(OPERATOR_TOKEN, "GET", "/api/v1/operator/audit")).json.ok,
    true,
  );
  assert.equal((await fixture.manage(key, "GET", "/api/v1/operator/usage")).status, 401);
});

for (const [rest, usd] of [
  ["nothing", "0.00003"],
  ["a rest that pays for no such call", "0.00004"],
] as const)
  test(
    `an account of whose credit ${rest} is left says so as its calls do, and from when it ran ` +
      "out, also where no call follows",
    async (t) => {
      const fixture = await hostedFixture(t, { free_cu_per_month: 0 });
      const { key, token, accountId } = await fixture.account();
      const credited = await fixture.manage(
        OPERATOR_TOKEN,
        "POST",
        `/api/v1/operator/accounts/${accountId}/credit`,
        { usd, reference: "gift" },
      );
      assert.equal(credited.status, 200, credited.text);
      const account = async () =>
        (await fixture.manage(token, "GET", "/api/v1/accounts/current")).json;
      const before = Date.now();
      for (let call = 0; call < 2; call++)
        assert.equal(paid(await fixture.call(key))[0], "premium");
      const idle = rest === "nothing" ? await account() : null;
      const after = await fixture.call(key);
      assert.deepEqual(paid(after).slice(0, 2), ["public", "payment"]);
      const told = await until("it is noted", async () =>
        ((it) => it.managed_access === "public" && it)(await account()),
      );
      const ranOutMs = Date.parse(told.fallback.until) - 30 * 86_400_000;
      assert.ok(ranOutMs >= before && ranOutMs <= Date.now(), told.fallback.until);
      if (idle !== null)
        assert.deepEqual(
          [idle.managed_access, idle.fallback],
          [told.managed_access, told.fallback],
          "the same before a call found nothing",
        );
    },
  );

test("equal calls of two accounts share one call to a provider: each pays, and has its own limit", async (t) => {
  const buckets = { managed: { per_second: 1, burst: 2 } };
  const fixture = await hostedFixture(t, { buckets }, { coalesce: "on" });
  const keys = [await fixture.anonymousKey(), await fixture.anonymousKey()];
  let isReleased = false;
  const held: (() => void)[] = [];
  fixture.premium.script((_, reply) => {
    const answer = (): void => reply.result('"0x1"');
    if (isReleased) answer();
    else held.push(answer);
  });
  let refused = 0;
  const callBy = async (key: string): Promise<number> => {
    const { status, json } = await fixture.call(key);
    if (status === 429) refused++;
    else assert.equal(json.result, "0x1");
    return status;
  };
  const statuses = await atOnce(t, async () => {
    const calls = keys.map((key) => Promise.all([1, 2, 3].map(() => callBy(key))));
    // A refusal says that the other two of its account were admitted before it.
    await until("each account is at its limit", () => refused === 2 && held.length > 0);
    isReleased = true;
    for (const answer of held) answer();
    return Promise.all(calls);
  });
  for (const ofAccount of statuses) assert.deepEqual(ofAccount.sort(), [200, 200, 429]);
  assert.equal(fixture.premium.asked.length, 1);
  for (const key of keys) assert.equal(await balanceOf(fixture, key), 4_994);
});
