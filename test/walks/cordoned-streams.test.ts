// Subscriptions of a provider that an operator takes out of use: they go on elsewhere, without a
// gap, and no call reaches it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../fakes/service-fixture.ts";
import { socketFixture, subscribe } from "../fakes/socket-fixture.ts";

const TOKEN = "operator-of-the-streams-0123456789";

test("streams leave a cordoned provider without a gap", async (t) => {
  const server = { port: 0, operator_token: TOKEN };
  const fixture = await socketFixture(t, ["ws", "ws"], { extra: { server } });
  const { open, mine, service, listening } = fixture;
  await listening();
  const client = await open();
  const id = await subscribe(client, "newHeads");
  const blocks = [mine()];
  const first = await client.next();
  assert.equal(first.params.subscription, id);
  const document = await service.get("/api/metrics/ethereum");
  const { profile } = document.json.profiles[0];
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const body = JSON.stringify({ profile, chain: "ethereum", provider: "a" });
  const path = `${service.url}/api/v1/operator/cordons`;
  assert.equal((await fetch(path, { method: "POST", headers, body })).status, 200);
  const sourceOf = async (): Promise<unknown> => {
    const { json } = await service.get("/api/metrics/ethereum");
    return json.profiles[0].subscriptions.streams[0]?.provider;
  };
  await until("the stream at the other provider", async () => (await sourceOf()) === "b");
  // The cordoned one does not push these.
  for (let i = 0; i < 2; i++) blocks.push(mine("b"));
  const heard = [first.params.result.hash];
  while (heard.length < blocks.length) heard.push((await client.next()).params.result.hash);
  assert.deepEqual(
    heard,
    blocks.map(({ hash }) => hash),
  );
});
