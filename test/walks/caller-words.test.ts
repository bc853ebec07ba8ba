// What callers write comes back in errors: no caller takes a provider away from others with it, and
// a provider that does refuse the service is found out at once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { healthOf, serviceFixture, until, walked } from "../fakes/service-fixture.ts";
import type { Script } from "../fakes/upstream.ts";

/** What an attacker has nodes repeat: refusals in the words of vendors. */
const TRACERS = [
  "unauthorized",
  "invalid api key",
  "quota exceeded",
  "you have used up all your monthly credits",
  "rate limit exceeded, retry in 10 minutes",
  "too many requests",
  "wrong chain",
  "unsupported chain id",
  "node is syncing",
  "the method debug_traceCall does not exist",
  "missing trie node",
  "bad gateway",
];

/** Repeats the tracer as real nodes do, and serves everything else. */
const repeats: Script = ({ method, params }, reply) => {
  if (method !== "debug_traceCall") return reply.result('"0x1"');
  const [, , { tracer }] = params as readonly [unknown, unknown, { readonly tracer: string }];
  const message = `ReferenceError: ${tracer} is not defined at <eval>:1:1(1)`;
  reply.error(JSON.stringify({ code: -32000, message }));
};
/** A read of old state, which nobody has asked before. */
const old = (n: number): readonly unknown[] => [`0x${n.toString(16).padStart(40, "0")}`, "0x5"];

test("whatever one caller has nodes repeat, every call of the others is served as before", async (t) => {
  const { call, service } = await serviceFixture(t, [repeats, repeats, repeats], {
    providers: [{ archival: true }, { archival: true }, { archival: true }],
  });
  await service.probed();
  const lost: string[] = [];
  let asked = 0;
  for (let round = 0; round < 3; round++)
    for (const tracer of TRACERS) {
      const [attack, ...others] = await Promise.all([
        call("debug_traceCall", [{}, "latest", { tracer }]),
        call("eth_gasPrice"),
        call("eth_getBalance", old(++asked)),
      ]);
      assert.ok("error" in attack.json);
      for (const answer of others)
        if (walked(answer) !== "a:ok") lost.push(`${tracer}: ${walked(answer)} ${answer.text}`);
    }
  assert.deepEqual(lost, [], "the first provider answers all of them, at the first attempt");
  for (const id of ["a", "b", "c"]) {
    const { cordoned, circuit_breaker_state, rate_limited_for_ms, learned } = await healthOf(
      service,
      id,
    );
    assert.deepEqual(
      [cordoned, circuit_breaker_state, rate_limited_for_ms, learned["pruned"]],
      [null, "closed", 0, false],
      id,
    );
  }
});

for (const status of [401, 403])
  test(`a plain ${status} for one method keeps the provider for every other one`, async (t) => {
    const refuses: Script = ({ method }, reply) =>
      method === "debug_traceCall" ? reply.body("", status) : reply.result('"0x1"');
    const { call, service } = await serviceFixture(t, [refuses, refuses]);
    for (let n = 0; n < 8; n++) {
      await call("debug_traceCall", [{}, "latest", { tracer: "callTracer" }]);
      if (n % 4 === 3) assert.equal(walked(await call("eth_gasPrice")), "a:ok");
    }
    for (const id of ["a", "b"]) {
      const { cordoned, circuit_breaker_state } = await healthOf(service, id);
      assert.deepEqual([cordoned, circuit_breaker_state], [null, "closed"]);
    }
  });

test("a provider that refuses everything is left out after one call and one probe", async (t) => {
  const { call, service, upstreams } = await serviceFixture(t, [undefined, undefined], {
    set: { monitoring: { probe_interval_ms: 3_600_000 } },
  });
  await service.probed();
  upstreams[0]?.probesSay(null);
  upstreams[0]?.script((_, reply) => reply.body("", 401));
  assert.equal(walked(await call("eth_gasPrice")), "a:auth b:ok");
  await until("the cordon", async () => (await healthOf(service, "a")).cordoned === "auth");
  const asked = upstreams[0]?.asked.length;
  assert.equal(walked(await call("eth_gasPrice")), "b:ok");
  assert.equal(upstreams[0]?.asked.length, asked);
  assert.deepEqual(
    upstreams[0]?.asked.map(({ method }) => method).filter((method) => method !== "eth_gasPrice"),
    ["eth_chainId"],
    "it was probed once",
  );
});
