// Calls that must not be sent twice: when another provider may be asked, when the outcome is
// unknown, and how a transaction is recognised by its hash.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Hex, keccak256, serializeTransaction } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { type Answer, configText, startService } from "../fakes/service.ts";
import { serviceFixture, until, walked } from "../fakes/service-fixture.ts";
import {
  type Replier,
  type Script,
  type ScriptedUpstream,
  scriptedUpstream,
} from "../fakes/upstream.ts";

const ALICE = privateKeyToAccount(
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
);
const RAW = await ALICE.signTransaction({
  chainId: 1,
  nonce: 0,
  to: ALICE.address,
  value: 1n,
  type: "eip1559",
  gas: 21_000n,
  maxFeePerGas: 9n,
});
const HASH = keccak256(RAW);
const accepts: Script = (_, reply) => reply.result(`"${HASH}"`);
const says =
  (error: string): Script =>
  (_, reply) =>
    reply.error(error);

test("a transaction that certainly never left goes to the next provider", async (t) => {
  const { call, upstreams } = await serviceFixture(t, [
    undefined,
    (_, reply) => reply.result(`"${HASH}"`),
  ]);
  await upstreams[0]?.close();
  const answer = await call("eth_sendRawTransaction", [RAW]);
  assert.equal(answer.json.result, HASH);
  assert.equal(walked(answer), "a:unsent b:ok");
});

const BROKEN: readonly (readonly [
  name: string,
  category: string,
  answer: (reply: Replier) => void,
])[] = [
  ["a reset after sending", "network", (reply) => reply.reset()],
  ["HTTP 502", "server", (reply) => reply.body("<html>", 502)],
  [
    "an answer with another id",
    "bad_body",
    (reply) => reply.body('{"jsonrpc":"2.0","id":1,"result":"0x1"}'),
  ],
  ["half an answer", "network", (reply) => reply.begin('{"jsonrpc"').reset()],
];
for (const [name, category, answerWith] of BROKEN) {
  const breaks: Script = (_, reply) => answerWith(reply);
  test(`a transaction met by ${name} is handed to the next provider: its bytes run once`, async (t) => {
    const { call, upstreams } = await serviceFixture(t, [breaks, accepts, undefined]);
    const answer = await call("eth_sendRawTransaction", [RAW]);
    assert.equal(answer.json.result, HASH);
    assert.equal(walked(answer), `a:${category} b:ok`);
    assert.deepEqual(handed(upstreams), [[RAW], [RAW], []]);
    upstreams[1]?.script(says('{"code":-32000,"message":"already known"}'));
    assert.equal((await call("eth_sendRawTransaction", [RAW])).json.result, HASH);
  });

  test(`a transaction met by ${name} at its pin stays there, its outcome unknown, its hash told`, async (t) => {
    const { service, upstreams } = await serviceFixture(t, [breaks, accepts]);
    const answer = await service.post("/rpc/provider/a/1", sending(RAW));
    assertUnknown(answer, { category, attempts: 1 });
    assert.deepEqual(handed(upstreams), [[RAW], []]);
  });

  test(`a transaction met by ${name} everywhere is of unknown outcome, its hash told`, async (t) => {
    const { call, upstreams } = await serviceFixture(t, [breaks, breaks]);
    const answer = await call("eth_sendRawTransaction", [RAW]);
    assertUnknown(answer, { category, attempts: 2 });
    assert.deepEqual(handed(upstreams), [[RAW], [RAW]]);
  });
}

test("what one node refuses is the answer, although another was handed it and did not answer", async (t) => {
  const error = '{"code":-32000,"message":"insufficient funds for gas * price + value"}';
  const { call } = await serviceFixture(t, [(_, reply) => reply.reset(), says(error)]);
  const { json } = await call("eth_sendRawTransaction", [RAW]);
  assert.equal(JSON.stringify(json.error), error);
});

/** The raw transactions that each provider was handed. */
function handed(upstreams: readonly ScriptedUpstream[]): readonly unknown[][] {
  return upstreams.map(({ asked }) =>
    asked.flatMap(({ method, params }) =>
      method === "eth_sendRawTransaction" ? (params as unknown[]) : [],
    ),
  );
}

const sending = (raw: string) => ({
  jsonrpc: "2.0",
  id: 7,
  method: "eth_sendRawTransaction",
  params: [raw],
});

/** Three providers on simulated time, of which these answer nothing. */
async function hangingFixture(t: TestContext, hanging: readonly number[]) {
  const runtime = simulatedWorld(1);
  const upstreams = await Promise.all(
    [0, 1, 2].map((n) => scriptedUpstream(hanging.includes(n) ? () => {} : accepts)),
  );
  const service = await startService(
    configText(upstreams.map(({ url }, n) => ({ id: "abc".charAt(n), url, priority: n + 1 }))),
    runtime,
  );
  t.after(async () => {
    const flowing = setInterval(() => runtime.advance(100), 5);
    await Promise.all([service.close(), ...upstreams.map((it) => it.close())]);
    clearInterval(flowing);
  });
  const send = (path = "/rpc/priority/1") => service.post(path, sending(RAW));
  const reached = (n: number) => until("the transaction", () => handed(upstreams)[n]?.length === 1);
  return { runtime, service, upstreams, send, reached };
}

test("a provider that hangs is waited for two seconds, then the next one is handed the same", async (t) => {
  const { runtime, upstreams, send, reached } = await hangingFixture(t, [0, 1]);
  const answer = send();
  await reached(0);
  runtime.advance(1_900);
  assert.deepEqual(handed(upstreams), [[RAW], [], []]);
  runtime.advance(200);
  await reached(1);
  runtime.advance(2_100);
  assert.equal((await answer).json.result, HASH);
  assert.deepEqual(handed(upstreams), [[RAW], [RAW], [RAW]]);
});

test("where the pin hangs, the outcome is unknown when the time is over", async (t) => {
  const { runtime, service, upstreams, send, reached } = await hangingFixture(t, [0]);
  const answer = send("/rpc/provider/a/1");
  await reached(0);
  runtime.advance(service.config.deadlines.default + 1_000);
  assertUnknown(await answer, { category: "timeout", attempts: 1 });
  assert.deepEqual(handed(upstreams), [[RAW], [], []]);
});

test("where everybody hangs, the outcome is unknown when the time is over", async (t) => {
  const { runtime, upstreams, send } = await hangingFixture(t, [0, 1, 2]);
  const sent = send();
  const flowing = setInterval(() => runtime.advance(500), 20);
  const answer = await sent.finally(() => clearInterval(flowing));
  assertUnknown(answer, { category: "timeout", attempts: 3 });
  assert.deepEqual(handed(upstreams), [[RAW], [RAW], [RAW]]);
});

function assertUnknown(
  { status, json }: Answer,
  { category, attempts }: { readonly category: string; readonly attempts: number },
): void {
  const { code, data } = json.error;
  assert.deepEqual(
    [status, code, data.code, data.retryable],
    [200, -32000, "outcome_unknown", false],
  );
  assert.deepEqual(
    [data.transaction_hash, data.upstream_attempts, data.reason],
    [HASH, attempts, category],
  );
}

test("already known is success with the transaction's own hash, with any id of the caller", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [
    says('{"code":-32000,"message":"already known"}'),
    undefined,
  ]);
  for (const id of ["7", '"a-b"', '"\\u0061\\n"', "123456789012345678901234567890", "-3"]) {
    const answer = await service.post(
      "/rpc/priority/1",
      `{"jsonrpc":"2.0","id":${id},"method":"eth_sendRawTransaction","params":["${RAW}"]}`,
    );
    assert.equal(answer.text, `{"jsonrpc":"2.0","id":${id},"result":"${HASH}"}`);
  }
  const batch = await service.post("/rpc/priority/1?include_meta=body", [
    { jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [RAW] },
  ]);
  assert.equal(batch.json[0].result, HASH);
  assert.deepEqual(batch.json[0].svc_meta.selected_provider, { id: "a" });
  assert.equal(upstreams[1]?.asked.length, 0);
});

test("the hash of a blob transaction leaves its blobs out", async (t) => {
  const { call } = await serviceFixture(t, [says('{"code":-32000,"message":"already known"}')]);
  const fields = {
    chainId: 1,
    nonce: 0,
    to: ALICE.address,
    gas: 21_000n,
    maxFeePerGas: 9n,
    maxFeePerBlobGas: 9n,
  } as const;
  const blob = {
    ...fields,
    type: "eip4844",
    blobVersionedHashes: [`0x01${"11".repeat(31)}`],
  } as const;
  const signature = { r: `0x${"ab".repeat(32)}`, s: `0x${"12".repeat(32)}`, yParity: 1 } as const;
  const sidecars = [
    {
      blob: `0x${"22".repeat(131_072)}`,
      commitment: `0x${"33".repeat(48)}`,
      proof: `0x${"44".repeat(48)}`,
    },
  ] as const;
  const plain = serializeTransaction(blob, signature);
  const wrapped = serializeTransaction({ ...blob, sidecars }, signature);
  assert.ok(wrapped.length > 262_144);
  assert.equal((await call("eth_sendRawTransaction", [wrapped])).json.result, keccak256(plain));
  assert.equal((await call("eth_sendRawTransaction", [plain])).json.result, keccak256(plain));
  const cells = cellWrapper(plain);
  assert.equal((await call("eth_sendRawTransaction", [cells])).json.result, keccak256(plain));
});

/** `0x03 || rlp([tx, 1, [], [], []])`: the form with cell proofs (EIP-7594). */
function cellWrapper(plain: Hex): Hex {
  const inner = `${plain.slice(4)}01c0c0c0`;
  const length = (inner.length / 2).toString(16);
  return `0x03f8${length.padStart(2, "0")}${inner}`;
}

test("legacy and access-list transactions are recognised too", async (t) => {
  const { call } = await serviceFixture(t, [
    says('{"code":-32010,"message":"Transaction with the same hash was already imported."}'),
  ]);
  const legacy = await ALICE.signTransaction({
    chainId: 1,
    nonce: 0,
    to: ALICE.address,
    type: "legacy",
    gas: 21_000n,
    gasPrice: 9n,
  });
  const listed = await ALICE.signTransaction({
    chainId: 1,
    nonce: 0,
    to: ALICE.address,
    type: "eip2930",
    gas: 21_000n,
    gasPrice: 9n,
  });
  for (const raw of [legacy, listed])
    assert.equal((await call("eth_sendRawTransaction", [raw])).json.result, keccak256(raw));
});

test(
  "nonce too low is a success when the same transaction is known, and the error unchanged when " +
    "it is not",
  async (t) => {
    const error = '{"code":-32000,"message":"nonce too low: next nonce 5, tx nonce 0"}';
    let known = "null";
    const { call, upstreams } = await serviceFixture(t, [
      ({ method }, reply) =>
        method === "eth_getTransactionByHash" ? reply.result(known) : reply.error(error),
      undefined,
    ]);
    assert.match(
      (await call("eth_sendRawTransaction", [RAW])).text,
      /"error":\{"code":-32000,"message":"nonce too low: next nonce 5, tx nonce 0"\}\}$/,
    );
    known = `{"hash":"${HASH}","blockNumber":"0x1"}`;
    assert.equal((await call("eth_sendRawTransaction", [RAW])).json.result, HASH);
    assert.deepEqual(
      upstreams[0]?.asked.map((it) => it.method),
      [
        "eth_sendRawTransaction",
        "eth_getTransactionByHash",
        "eth_sendRawTransaction",
        "eth_getTransactionByHash",
      ],
    );
    assert.equal(
      upstreams[1]?.asked.length,
      0,
      "the node that used the nonce is the one that knows",
    );
  },
);

test("nonce too low from a node that then fails is still told unchanged", async (t) => {
  const error = '{"code":-32000,"message":"nonce too low"}';
  const { call } = await serviceFixture(t, [
    ({ method }, reply) =>
      method === "eth_getTransactionByHash" ? reply.reset() : reply.error(error),
  ]);
  assert.match(
    (await call("eth_sendRawTransaction", [RAW])).text,
    /"error":\{"code":-32000,"message":"nonce too low"\}\}$/,
  );
});

test("a full pool sends the transaction to the next provider, because nothing was accepted", async (t) => {
  const { call } = await serviceFixture(t, [
    says('{"code":-32000,"message":"txpool is full"}'),
    (_, reply) => reply.result(`"${HASH}"`),
  ]);
  const answer = await call("eth_sendRawTransaction", [RAW]);
  assert.equal(answer.json.result, HASH);
  assert.equal(walked(answer), "a:pool_full b:ok");
});

test(
  "an unlisted method is dispatched once: a broken answer is outcome unknown, an error is " +
    "passed on, a refused port is passed over",
  async (t) => {
    const { call, upstreams } = await serviceFixture(t, [(_, reply) => reply.reset(), undefined]);
    const [a, b] = upstreams;
    const broken = await call("vendor_doSomething");
    assert.equal(broken.json.error.data.code, "outcome_unknown");
    assert.equal(broken.json.error.data.transaction_hash, undefined);
    a?.script(says('{"code":-32000,"message":"whatever"}'));
    assert.deepEqual((await call("vendor_doSomething")).json.error, {
      code: -32000,
      message: "whatever",
    });
    assert.deepEqual([a?.asked.length, b?.asked.length], [2, 0]);
    await a?.close();
    assert.equal((await call("vendor_doSomething")).json.result, "0x1");
  },
);

test("a rate limit may be taken elsewhere even by a transaction: it was refused before it ran", async (t) => {
  const { call } = await serviceFixture(t, [
    (_, reply) => reply.body("", 429),
    (_, reply) => reply.result(`"${HASH}"`),
  ]);
  assert.equal(walked(await call("eth_sendRawTransaction", [RAW])), "a:rate_limit b:ok");
});

const RECEIPT = `{"transactionHash":"${HASH}","status":"0x1"}`;

for (const [name, error] of [
  ["already known", '{"code":-32000,"message":"already known"}'],
  ["nonce too low", '{"code":-32003,"message":"nonce too low: next nonce 1, tx nonce 0"}'],
] as const) {
  test(
    `eth_sendRawTransactionSync met by "${name}" is answered with the receipt, where the node ` +
      "has it",
    async (t) => {
      const script: Script = ({ method }, reply) =>
        method === "eth_getTransactionReceipt" ? reply.result(RECEIPT) : reply.error(error);
      const { call, upstreams } = await serviceFixture(t, [script, undefined]);
      const answer = await call("eth_sendRawTransactionSync", [RAW]);
      assert.equal(JSON.stringify(answer.json.result), RECEIPT);
      assert.deepEqual(
        upstreams[0]?.asked.map((it) => it.method),
        ["eth_sendRawTransactionSync", "eth_getTransactionReceipt"],
      );
      assert.equal(upstreams[1]?.asked.length, 0);
    },
  );

  test(`eth_sendRawTransactionSync met by "${name}" and no receipt is told what the node said`, async (t) => {
    const script: Script = ({ method }, reply) =>
      method === "eth_getTransactionReceipt" ? reply.result("null") : reply.error(error);
    const { call, upstreams } = await serviceFixture(t, [script, undefined]);
    assert.equal(
      JSON.stringify((await call("eth_sendRawTransactionSync", [RAW])).json.error),
      error,
    );
    assert.equal(upstreams[1]?.asked.length, 0);
  });
}

test(
  "eth_sendRawTransactionSync that was not processed in time is told so unchanged, and not " +
    "sent again",
  async (t) => {
    const error =
      `{"code":4,"message":"The transaction was added to the mempool but wasn't processed within ` +
      `20s.","data":"${HASH}"}`;
    const { call, upstreams } = await serviceFixture(t, [says(error), undefined]);
    assert.equal(
      JSON.stringify((await call("eth_sendRawTransactionSync", [RAW])).json.error),
      error,
    );
    assert.deepEqual([upstreams[0]?.asked.length, upstreams[1]?.asked.length], [1, 0]);
  },
);

test("eth_sendRawTransactionSync whose answer is lost is handed to the next provider", async (t) => {
  const lost: Script = (_, reply) => reply.reset();
  const { call, upstreams } = await serviceFixture(t, [lost, (_, reply) => reply.result(RECEIPT)]);
  const answer = await call("eth_sendRawTransactionSync", [RAW]);
  assert.equal(JSON.stringify(answer.json.result), RECEIPT);
  upstreams[1]?.script(lost);
  assertUnknown(await call("eth_sendRawTransactionSync", [RAW]), {
    category: "network",
    attempts: 2,
  });
});

test(
  "a node's own word on a transaction is the answer, whatever its code, and costs the node " +
    "nothing",
  async (t) => {
    const refusals = [
      '{"code":-32603,"message":"could not include it"}',
      '{"code":-32005,"message":"gas limit above that of the block"}',
      '{"code":-32016,"message":"odd"}',
    ];
    let said = "";
    const { call, service, upstreams } = await serviceFixture(t, [
      (_, reply) => reply.error(said),
      undefined,
    ]);
    for (const refusal of refusals) {
      said = refusal;
      assert.equal(
        JSON.stringify((await call("eth_sendRawTransaction", [RAW])).json.error),
        refusal,
      );
    }
    assert.equal(upstreams[1]?.asked.length, 0);
    const { json } = await service.get("/api/metrics/1");
    assert.deepEqual(json.profiles[0].providers[0].transports[0].outcomes.failed, 0);
  },
);
