// The calls of an account as its management token lists them, over real sockets: those of its own
// keys alone, and nothing that only the operator may know of providers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hostedFixture, OPERATOR_TOKEN as OPERATOR } from "../fakes/hosted-fixture.ts";

const PATH = "/api/v1/calls";

test("an account reads its own calls, without what is the operator's alone", async (t) => {
  const fixture = await hostedFixture(t);
  // Without a balance, calls go to the public provider.
  const { public: provider, manage, call } = fixture;
  provider.script(({ method }, reply) =>
    method === "eth_getBalance"
      ? reply.body("open.example says no: secret-of-the-provider", 502)
      : reply.result('"0x1"'),
  );
  const [one, other] = [await fixture.account(), await fixture.account()];
  await call(one.key, "eth_gasPrice");
  await call(one.key, "eth_getBalance");
  await call(other.key, "eth_blobBaseFee");
  const second = (await manage(one.token, "POST", "/api/v1/keys", { name: "second" })).json;
  await call(second.key, "eth_gasPrice");

  const methodsOf = async (token: string, query = ""): Promise<readonly string[]> => {
    const { status, json } = await manage(token, "GET", PATH + query);
    assert.equal(status, 200);
    return json.calls.map(({ method }: { readonly method: string }) => method);
  };
  assert.deepEqual(await methodsOf(one.token), ["eth_gasPrice", "eth_getBalance", "eth_gasPrice"]);
  assert.deepEqual(await methodsOf(one.token, `?key=${second.id}`), ["eth_gasPrice"]);
  assert.deepEqual(await methodsOf(one.token, "?method=eth_getBalance"), ["eth_getBalance"]);
  assert.deepEqual(await methodsOf(one.token, `?key=${other.id}`), [], "a key of another account");
  assert.deepEqual(await methodsOf(other.token), ["eth_blobBaseFee"]);
  assert.equal((await manage(one.key, "GET", PATH)).status, 401, "a key opens no log");

  const { text, json } = await manage(one.token, "GET", PATH);
  const { id: decision } = (
    await manage(OPERATOR, "GET", "/api/v1/operator/decisions?method=eth_getBalance")
  ).json.decisions[0];
  for (const hidden of ['"open"', "open.example", "secret-of", provider.url, decision, other.id])
    assert.ok(!text.includes(hidden), `${hidden} is shown to the account`);
  const [, failed] = json.calls;
  assert.deepEqual(
    [failed.key_id, failed.chain, failed.cause],
    [one.id, "ethereum", "unavailable"],
  );
  assert.deepEqual(Object.keys(failed.error), ["category", "code"]);
});
