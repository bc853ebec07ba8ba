// Providers with `pipelining: true` over real sockets: reads of one turn share connections, each is
// sent once, and callers get right answers also where a provider gives up connections or mixes up
// answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "../fakes/service.ts";
import { serviceFixture } from "../fakes/service-fixture.ts";
import type { Script } from "../fakes/upstream.ts";

const METHOD = "eth_getBalance";

/** A good node: it tells each call its own first parameter. */
const honest: Script = ({ params }, reply) =>
  reply.result(JSON.stringify((params as readonly string[])[0]));

/** Sends calls in one request to the service: they are ready in one turn. */
async function ask(service: Service, count: number, method = METHOD): Promise<readonly unknown[]> {
  const body = Array.from({ length: count }, (_, n) => ({
    jsonrpc: "2.0",
    id: n,
    method,
    params: [`0x${n}`, "latest"],
  }));
  const { json } = await service.post("/rpc/ethereum", body);
  return (json as readonly { readonly id: number; readonly result: unknown }[]).map(
    ({ id, result }) => (id >= 0 ? result : null),
  );
}

const own = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `0x${n}`);

async function againIn(service: Service): Promise<number> {
  const { text } = await service.get("/metrics");
  return Number(/^svc_upstream_pipelined_again_total (\d+)$/m.exec(text)?.[1]);
}

test("short reads of one turn share connections, each is sent once; others go alone", async (t) => {
  const held: (() => void)[] = [];
  const { service, upstreams } = await serviceFixture(
    t,
    [
      (asked, reply) => {
        held.push(() => honest(asked, reply));
        if (held.length === 24) for (const answer of held.splice(0)) answer();
      },
    ],
    { providers: [{ pipelining: true }] },
  );
  const [provider = assert.fail()] = upstreams;
  await service.probed();
  // The first ones open connections; only open ones are shared.
  for (let round = 0; round < 3; round++) assert.deepEqual(await ask(service, 24), own(24));
  const shared = provider.connections();
  assert.ok(shared < 24, `${shared} connections`);
  assert.deepEqual(await ask(service, 24, "vendor_read"), own(24));
  assert.ok(provider.connections() >= 24, `${provider.connections()} connections`);
  assert.equal(provider.asked.length, 4 * 24);
  assert.equal(await againIn(service), 0);
});

test("a provider that gives up connections, or mixes up answers, harms no caller", async (t) => {
  let count = 0;
  const { service, upstreams } = await serviceFixture(
    t,
    [
      (asked, reply) => {
        count++;
        if (count % 11 === 0) reply.reset();
        else if (count % 17 === 0) reply.body(`{"jsonrpc":"2.0","id":1,"result":"0xbad"}`);
        else honest(asked, reply);
      },
      honest,
    ],
    { providers: [{ pipelining: true }, {}] },
  );
  const [faulty = assert.fail()] = upstreams;
  await service.probed();
  for (let round = 0; round < 8; round++)
    assert.deepEqual(await ask(service, 24), own(24), `round ${round}`);
  assert.ok(faulty.asked.length > 0);
  assert.ok((await againIn(service)) > 0, "those behind are asked again");
});
