// Methods that only one of two providers serves: the other says "no such method", which every
// method survives, also one that is sent once.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { configText, type Service, startService } from "../fakes/service.ts";
import { metaOf, walked } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const METHODS = [
  "eth_sendUserOperation",
  "zks_estimateFee",
  "eth_getStorageValues",
  "eth_config",
  "vendor_doSomething",
];
const MADE_UP = 200;

describe("two providers of which only the second serves a method", () => {
  let lacking: ScriptedUpstream;
  let serving: ScriptedUpstream;
  let service: Service;

  before(async () => {
    const refusal = (method: string) =>
      `{"code":-32601,"message":"the method ${method} does not exist/is not available"}`;
    lacking = await scriptedUpstream(({ method }, reply) => reply.error(refusal(method), 200));
    serving = await scriptedUpstream(({ method }, reply) =>
      METHODS.includes(method) ? reply.result(`"${method}"`) : reply.error(refusal(method), 200),
    );
    const providers = [
      { id: "a", url: lacking.url, priority: 1 },
      { id: "b", url: serving.url, priority: 2 },
    ];
    const set = { monitoring: { probe_interval_ms: 3_600_000 }, providers };
    service = await startService(
      configText([], {
        profiles: { first: { chains: { ethereum: set } }, second: { chains: { ethereum: set } } },
      }),
    );
  });
  after(() => Promise.all([service.close(), lacking.close(), serving.close()]));

  const ask = (slug: string, strategy: string, method: string) =>
    service.post(`/rpc/profile/${slug}/${strategy}/1?include_meta=headers`, {
      jsonrpc: "2.0",
      id: 1,
      method,
      params: [],
    });
  const askedOf = (upstream: ScriptedUpstream, method: string): number =>
    upstream.asked.filter((it) => it.method === method).length;

  for (const [slug, strategy] of [
    ["first", "priority"],
    ["second", "load-balanced"],
  ] as const) {
    for (const method of METHODS) {
      it(
        `${strategy}: ${method} is answered by the second, each time, and the first is not asked ` +
          "twice",
        async () => {
          const before = askedOf(lacking, method);
          const answers = [];
          for (let n = 0; n < 12; n++) answers.push(await ask(slug, strategy, method));
          for (const answer of answers)
            assert.equal(answer.text, `{"jsonrpc":"2.0","id":1,"result":"${method}"}`);
          const asked = askedOf(lacking, method) - before;
          assert.ok(asked <= 1, `the first was asked ${asked} times`);
          if (strategy === "priority")
            assert.equal(
              walked(answers[0] ?? assert.fail("no answer")),
              "a:method_unsupported b:ok",
            );
          const meta = JSON.stringify(metaOf(answers.at(-1) ?? assert.fail("no answer")));
          assert.equal(
            meta.includes('{"provider":"a","reason":"method_unsupported"}'),
            asked === 1,
            meta,
          );
        },
      );
    }
  }

  it(
    "names that nobody serves drive none of them out, and are answered with what the providers " +
      "said",
    async () => {
      for (let n = 0; n < MADE_UP; n++) {
        const { json } = await ask("first", "priority", `made_up_${n}`);
        assert.equal(json.error.code, -32601);
      }
      const before = METHODS.map((method) => askedOf(lacking, method));
      for (const method of METHODS)
        assert.equal((await ask("first", "priority", method)).json.result, method);
      assert.deepEqual(
        METHODS.map((method) => askedOf(lacking, method)),
        before,
      );
    },
  );
});
