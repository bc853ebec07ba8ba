// The 402 of a key whose balance is used up: it offers to fund the key, and a payment with the same
// call is credited before the call is served.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { CALL, paywallFixture } from "./rpc-paywall-fixture.ts";

const PRICE_N = 15_000n;
const MIN_N = 100_000_000n;
const pathOf = (secret: string): string => `/rpc/k/${secret}/load-balanced/ethereum`;
type Sent = Readonly<Record<string, string>>;
const pay = (text: string): Sent => ({ "payment-signature": text });
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
const jsonOf = async (response: Response): Promise<any> => response.json();

test(
  "a used up key is told how to fund it: every offer, for this key, the smallest purchase, " +
    "with nothing of the key in it",
  async (t) => {
    const { post, key, payments } = await paywallFixture(t);
    const made = await key(PRICE_N);
    assert.equal((await post(pathOf(made.secret))).status, 200, "what it has is spent first");
    const response = await post(pathOf(made.secret));
    const { error, id } = await jsonOf(response);
    assert.deepEqual(
      [response.status, id, error.code, error.data.code, error.data.retryable],
      [402, 7, -32040, "balance_exhausted", false],
    );
    assert.match(error.data.next_action, /sign one challenge/);
    assert.equal(response.headers.get("www-authenticate")?.split(/, (?=Payment )/).length, 2);
    assert.ok(response.headers.has("payment-required"));
    assert.equal(response.headers.get("cache-control"), "no-store");
    const [order] = payments.offered;
    assert.deepEqual(
      [order?.purpose, order?.amountN],
      [{ kind: "fund_key", accountId: made.accountId, keyId: made.id }, MIN_N],
    );
    assert.match(
      order?.request.resourceUrl ?? "",
      /^http:\/\/127\.0\.0\.1:\d+\/rpc\/k\/redacted\/load-balanced\/ethereum$/,
    );
    assert.equal(
      JSON.stringify(order, (_, it) => (typeof it === "bigint" ? "n" : it)).includes(made.secret),
      false,
    );
  },
);

test(
  "a payment on the same URL is credited, felt at once, and the call is served and billed with " +
    "a receipt",
  async (t) => {
    const { post, key, balanceN } = await paywallFixture(t);
    const made = await key();
    assert.equal((await post(pathOf(made.secret))).status, 402);
    const response = await post(pathOf(made.secret), pay("good-1"));
    assert.deepEqual([response.status, (await jsonOf(response)).result], [200, ["a"]]);
    assert.ok(response.headers.has("payment-receipt"));
    assert.equal(response.headers.get("cache-control"), "private");
    assert.deepEqual(
      [
        response.headers.get("x-svc-cu"),
        response.headers.get("x-svc-usd"),
        response.headers.get("x-svc-access"),
      ],
      ["3", "0.000015", "premium"],
    );
    assert.equal(await balanceN(made), MIN_N - PRICE_N);
  },
);

test(
  "the same payment again credits nothing and serves the call; with a balance used up again it " +
    "is a conflict, never a 402",
  async (t) => {
    const { post, key, balanceN, payments } = await paywallFixture(t);
    const made = await key();
    const path = pathOf(made.secret);
    for (let i = 1; i <= 3; i++) assert.equal((await post(path, pay("good-1"))).status, 200);
    assert.equal(await balanceN(made), MIN_N - 3n * PRICE_N);
    assert.equal(payments.ordered.length, 1);
    const batchOf = (method: string) =>
      Array.from({ length: 50 }, (_, id) => ({ ...CALL, method, id }));
    for (const method of ["trace_block", "eth_gasPrice"]) {
      let text = "";
      for (let i = 0; i < 20 && !text.includes("balance_exhausted"); i++)
        text = await (await post(path, {}, batchOf(method))).text();
      assert.match(text, /balance_exhausted/, method);
    }
    assert.ok((await balanceN(made)) < PRICE_N);
    const conflict = await post(path, pay("good-1"));
    const { error } = await jsonOf(conflict);
    assert.deepEqual([conflict.status, error.data.code], [409, "payment_conflict"]);
    assert.match(error.data.status_url, /\/api\/v1\/purchases\/pur_\w+$/);
    for (const name of ["www-authenticate", "payment-receipt"])
      assert.equal(conflict.headers.has(name), false);
    assert.equal((await post(path)).status, 402, "without the payment it is offered anew");
    assert.equal((await post(path, pay("good-2"))).status, 200);
  },
);

test(
  "the key may stand in a header: the payment then comes in one of its own, or in one list " +
    "with it",
  async (t) => {
    const { post, key, payments } = await paywallFixture(t);
    const ways: readonly ((secret: string) => {
      readonly credential: Sent;
      readonly payment: Sent;
      readonly keeps: boolean;
    })[] = [
      (it) => ({
        credential: { authorization: `Bearer ${it}` },
        payment: { "payment-authorization": "Payment good-1" },
        keeps: true,
      }),
      (it) => ({
        credential: { authorization: `Bearer ${it}` },
        payment: { authorization: `Payment good-2, Bearer ${it}` },
        keeps: true,
      }),
      (it) => ({
        credential: { authorization: `Bearer ${it}` },
        payment: { authorization: `Bearer ${it},Payment good-3` },
        keeps: true,
      }),
      (it) => ({
        credential: { "x-svc-api-key": it },
        payment: { authorization: "Payment good-4" },
        keeps: false,
      }),
    ];
    for (const way of ways) {
      const made = await key();
      const { credential, payment, keeps } = way(made.secret);
      assert.equal((await post("/rpc/ethereum", credential)).status, 402);
      assert.equal(payments.offered.at(-1)?.keepsAuthorization, keeps);
      const served = await post("/rpc/ethereum", { ...credential, ...payment });
      assert.deepEqual(
        [served.status, (await jsonOf(served)).result],
        [200, ["a"]],
        JSON.stringify(payment),
      );
      assert.deepEqual(payments.ordered.at(-1)?.purpose, {
        kind: "fund_key",
        accountId: made.accountId,
        keyId: made.id,
      });
    }
  },
);

test("a payment for one key is none for another one, although the URL and the call are the same", async (t) => {
  const { post, key, balanceN } = await paywallFixture(t);
  const [mine, other] = [await key(), await key()];
  const headers = (secret: string) => ({ "x-svc-api-key": secret, ...pay("good-1") });
  assert.equal((await post("/rpc/ethereum", headers(mine.secret))).status, 200);
  const refused = await post("/rpc/ethereum", headers(other.secret));
  assert.deepEqual(
    [refused.status, (await jsonOf(refused)).error.data.code],
    [409, "payment_conflict"],
  );
  assert.equal(await balanceN(other), 0n);
});

test(
  "what is not through is told as JSON-RPC, with the status of its code, when to ask again and " +
    "where",
  async (t) => {
    const { post, key, routed } = await paywallFixture(t);
    const made = await key();
    const rows = [
      ["pending-1", 503, "payment_pending", true, true],
      ["failed-1", 409, "payment_failed", false, true],
      ["gone-1", 409, "beneficiary_conflict", false, true],
      ["down-1", 503, "unavailable", true, false],
      ["busy-1", 429, "rate_limit_exceeded", true, false],
      ["bad-1", 402, "payment_invalid", false, false],
    ] as const;
    for (const [payment, status, code, retryable, recorded] of rows) {
      const response = await post(pathOf(made.secret), pay(payment));
      const { error, id } = await jsonOf(response);
      assert.deepEqual(
        [response.status, error.data.code, error.data.retryable, id],
        [status, code, retryable, CALL.id],
        payment,
      );
      assert.equal(response.headers.has("retry-after"), retryable, payment);
      assert.equal(
        /^http:\/\/.*\/api\/v1\/purchases\/pur_/.test(error.data.status_url ?? ""),
        recorded,
        payment,
      );
      assert.equal(response.headers.has("www-authenticate"), status === 402, payment);
      assert.equal(response.headers.has("payment-receipt"), false);
    }
    assert.equal(routed(), 0);
  },
);

test("where nothing can be offered the answer is 503, never a 402 without an offer", async (t) => {
  const { post, key, payments } = await paywallFixture(t);
  const made = await key();
  payments.closed = true;
  for (const headers of [{}, pay("bad-1")]) {
    const response = await post(pathOf(made.secret), headers);
    assert.deepEqual(
      [response.status, (await jsonOf(response)).error.data.code],
      [503, "unavailable"],
    );
  }
});

test(
  "nothing is taken for a call that could not be served: wrong JSON, compressed, no such " +
    "chain, no such key, several payments",
  async (t) => {
    const { post, key, payments } = await paywallFixture(t);
    const { secret } = await key();
    const rows = [
      [pathOf(secret), pay("good-1"), '{"jsonrpc":', 400, "parse_error"],
      [
        pathOf(secret),
        { ...pay("good-1"), "content-encoding": "gzip" },
        CALL,
        415,
        "unsupported_media_type",
      ],
      [`/rpc/k/${secret}/load-balanced/nowhere`, pay("good-1"), CALL, 400, "unknown_chain"],
      [
        pathOf(secret.replace(/.$/, (it) => (it === "a" ? "b" : "a"))),
        pay("good-1"),
        CALL,
        401,
        "unauthorized",
      ],
      [
        pathOf(secret),
        { ...pay("good-1"), authorization: "Payment good-2" },
        CALL,
        400,
        "invalid_request",
      ],
    ] as const;
    for (const [path, headers, body, status, code] of rows) {
      const response = await post(path, headers, body);
      assert.deepEqual(
        [response.status, (await jsonOf(response)).error.data.code],
        [status, code],
        code,
      );
    }
    assert.equal(payments.ordered.length, 0);
  },
);

test(
  "a batch with a payment is credited and served; a batch without one tells each item that " +
    "nothing is left",
  async (t) => {
    const { post, key, balanceN } = await paywallFixture(t);
    const made = await key();
    const batch = [CALL, { ...CALL, id: 8 }];
    const poor = await post(pathOf(made.secret), {}, batch);
    assert.deepEqual(
      [
        poor.status,
        (await jsonOf(poor)).map((it: { error: { data: { code: string } } }) => it.error.data.code),
      ],
      [200, ["balance_exhausted", "balance_exhausted"]],
    );
    const served = await post(pathOf(made.secret), pay("good-1"), batch);
    assert.deepEqual(
      [served.status, served.headers.has("payment-receipt"), (await jsonOf(served)).length],
      [200, true, 2],
    );
    assert.equal(await balanceN(made), MIN_N - 2n * PRICE_N);
  },
);

test("accounts are told the same; a key whose account is credited otherwise goes on without paying", async (t) => {
  const { post, accountKey, payments } = await paywallFixture(t);
  const made = await accountKey();
  assert.equal((await post(pathOf(made.secret))).status, 402);
  assert.deepEqual(payments.offered.at(-1)?.purpose, {
    kind: "fund_key",
    accountId: made.accountId,
    keyId: made.id,
  });
  assert.equal((await post(pathOf(made.secret), pay("good-1"))).status, 200);
  assert.equal((await post(pathOf(made.secret))).status, 200);
});

test(
  "money for a key that was deleted meanwhile is its account's; the call is not served, and " +
    "the payment buys nothing twice",
  async (t) => {
    const { post, accountKey, remove, balanceN, payments } = await paywallFixture(t);
    const made = await accountKey();
    assert.equal((await post(pathOf(made.secret))).status, 402);
    await remove(made);
    assert.equal((await post(pathOf(made.secret))).status, 401, "nobody is asked to pay for it");
    for (let i = 0; i < 2; i++) {
      const response = await post(pathOf(made.secret), pay("good-1"));
      assert.deepEqual(
        [
          response.status,
          (await jsonOf(response)).error.data.code,
          response.headers.has("payment-receipt"),
        ],
        [401, "key_revoked", false],
      );
    }
    assert.deepEqual(
      [await balanceN(made), payments.ordered.length, payments.offered.length],
      [MIN_N, 1, 1],
    );
  },
);

test("a connection goes on after a payment: the next call on it, with or without one, is served", async (t) => {
  const { port, key } = await paywallFixture(t);
  const { secret } = await key();
  const body = JSON.stringify(CALL);
  const request = (header: string): string =>
    `POST ${pathOf(secret)} HTTP/1.1\r\nHost: x\r\n${header}Content-Type: ` +
    `application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const socket = connect(port, "127.0.0.1");
  t.after(() => socket.destroy());
  const statuses: string[] = [];
  for (const header of [
    "",
    "PAYMENT-SIGNATURE: good-1\r\n",
    "",
    "Authorization: Payment good-1\r\n",
  ]) {
    socket.write(request(header));
    const text = await new Promise<string>((resolve) =>
      socket.once("data", (data) => resolve(data.toString())),
    );
    statuses.push(text.slice(9, 12));
  }
  assert.deepEqual(statuses, ["402", "200", "200", "200"]);
});

test("a caller who leaves while offers are made costs nothing and breaks nothing", async (t) => {
  const { port, key, payments, post, log } = await paywallFixture(t);
  const { secret } = await key();
  const body = JSON.stringify(CALL);
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { challenge } = payments;
  const asked = new Promise<void>((resolve) => {
    Object.assign(payments, {
      async challenge(order: Parameters<typeof challenge>[0]) {
        resolve();
        await held;
        return challenge(order);
      },
    });
  });
  const socket = connect(port, "127.0.0.1");
  socket.write(
    `POST ${pathOf(secret)} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await asked;
  const gone = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.destroy();
  await gone;
  release();
  assert.equal((await post(pathOf(secret), pay("good-1"))).status, 200);
  assert.equal(log(), "");
});

test("a notification that nothing pays for gets no offer and no answer", async (t) => {
  const { post, key, payments } = await paywallFixture(t);
  const { secret } = await key();
  const { id: _, ...notification } = CALL;
  assert.equal((await post(pathOf(secret), {}, notification)).status, 204);
  assert.equal(payments.offered.length, 0);
});
