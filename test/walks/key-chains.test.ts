// Every ready-made URL and command names a chain that its key's profile serves: it works as it
// stands, whatever stands first in the configuration.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type HostedFixture, hostedFixture, OPERATOR_TOKEN } from "../fakes/hosted-fixture.ts";
import { configOf } from "../fakes/service.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const CHAINS = { optimism: { chain_id: 10 }, base: { chain_id: 8453 }, ethereum: { chain_id: 1 } };
const ASK = { jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] };

function profilesOf(url: string, slugs: Readonly<Record<string, readonly string[]>>) {
  const set = { providers: [{ id: "a", url, ws_url: "ws://127.0.0.1:1" }] };
  return Object.fromEntries(
    Object.entries(slugs).map(([slug, names]) => [
      slug,
      { chains: Object.fromEntries(names.map((it) => [it, set])) },
    ]),
  );
}

/** `premium` lacks the first chain, and shares only `ethereum` with `public`. */
async function createFixture(
  t: TestContext,
  slugs: Readonly<Record<string, readonly string[]>> = {
    premium: ["base", "ethereum"],
    public: ["optimism", "ethereum"],
  },
) {
  const upstream = await scriptedUpstream();
  t.after(() => upstream.close());
  const fixture = await hostedFixture(
    t,
    { allow_private_providers: true },
    { chains: CHAINS, profiles: profilesOf(upstream.url, slugs) },
  );
  return { fixture, upstream };
}

/** The chain id that a URL leads to; anything else is a refusal. */
async function chainAt({ service }: HostedFixture, url: string): Promise<unknown> {
  const { pathname } = new URL(url);
  const { status, json } = await service.post(pathname.replace("/ws/", "/"), ASK);
  return status === 200 ? Number(json.result) : json.error.data.code;
}

test(
  "the endpoint of an anonymous key, the URLs of a key of an account and those of a rotated " +
    "one lead to a chain that they can call",
  async (t) => {
    const { fixture } = await createFixture(t);
    const { json: anonymous } = await fixture.manage("", "POST", "/api/v1/agent/keys");
    assert.equal(await chainAt(fixture, anonymous.endpoint), 1);
    const { json: owner } = await fixture.manage("", "POST", "/api/v1/keys", {});
    for (const url of [owner.rpc_url, owner.ws_url]) assert.equal(await chainAt(fixture, url), 1);
    const called = await fixture.service.post(new URL(owner.rpc_url).pathname, {
      ...ASK,
      method: "eth_gasPrice",
    });
    assert.equal(
      called.json.result,
      "0x1",
      "also where only the free allowance pays, on public providers",
    );
    const token = owner.management_token;
    const { json: open } = await fixture.manage(token, "POST", "/api/v1/keys", {
      default_profile: "public",
    });
    assert.equal(await chainAt(fixture, open.rpc_url), 10);
    const { json: rotated } = await fixture.manage(
      token,
      "POST",
      `/api/v1/keys/${open.id}/rotate`,
      {
        grace_seconds: 0,
      },
    );
    assert.equal(await chainAt(fixture, rotated.rpc_url), 10);
  },
);

test("a key whose profile is a Custom one is given a chain of that profile", async (t) => {
  const { fixture, upstream } = await createFixture(t);
  const { json: owner } = await fixture.manage("", "POST", "/api/v1/keys", {});
  const { account_id, management_token: token } = owner;
  assert.equal(
    (
      await fixture.manage(
        OPERATOR_TOKEN,
        "POST",
        `/api/v1/operator/accounts/${account_id}/custom-access`,
        { days: 1 },
      )
    ).status,
    200,
  );
  upstream.probesSay({ chainId: 8453, height: 100 });
  const document = { chains: { 8453: { providers: [{ name: "mine", url: upstream.url }] } } };
  const written = await fixture.manage(token, "PUT", "/api/v1/profiles/mine", document);
  assert.equal(written.status, 200, written.text);
  const { json: made } = await fixture.manage(token, "POST", "/api/v1/keys", {
    default_profile: "mine",
  });
  assert.equal(await chainAt(fixture, made.rpc_url), 8453);
  const { json: rotated } = await fixture.manage(token, "POST", `/api/v1/keys/${made.id}/rotate`, {
    grace_seconds: 60,
  });
  assert.equal(await chainAt(fixture, rotated.rpc_url), 8453);
});

test(
  "every chain of /api/v1/agent/chains can be called with a new key, and no other is listed; a " +
    "reload changes what is told",
  async (t) => {
    const { fixture, upstream } = await createFixture(t);
    const key = await fixture.anonymousKey();
    const listed = async (): Promise<string[]> =>
      (await fixture.service.get("/api/v1/agent/chains")).json.map(
        (it: { name: string }) => it.name,
      );
    assert.deepEqual(await listed(), ["base", "ethereum"]);
    for (const name of await listed())
      assert.equal(
        typeof (await chainAt(
          fixture,
          `${fixture.service.url}/rpc/k/${key}/load-balanced/${name}`,
        )),
        "number",
      );
    assert.equal(
      await chainAt(fixture, `${fixture.service.url}/rpc/k/${key}/load-balanced/optimism`),
      "unknown_chain",
    );
    const profiles = profilesOf(upstream.url, { premium: ["optimism"], public: ["optimism"] });
    const hosted = {
      enabled: true,
      operator_token: OPERATOR_TOKEN,
      keys_per_hour: 1_000,
      allow_private_providers: true,
    };
    assert.equal(
      fixture.service.app.reload(configOf(JSON.stringify({ chains: CHAINS, profiles, hosted }))),
      null,
    );
    assert.deepEqual(await listed(), ["optimism"]);
    const { json } = await fixture.manage("", "POST", "/api/v1/agent/keys");
    assert.equal(await chainAt(fixture, json.endpoint), 10);
  },
);

test("where premium is not configured, public serves it, and its first chain is named", async (t) => {
  // A chain of which no profile names a provider would be served by its public addresses.
  const profiles = { public: ["base", "ethereum"], team: ["optimism"] };
  const { fixture } = await createFixture(t, profiles);
  const { json } = await fixture.manage("", "POST", "/api/v1/agent/keys");
  assert.equal(await chainAt(fixture, json.endpoint), 8453);
});

test(
  "the commands of llms.txt and SKILL.md name chains that the key, or the caller without one, " +
    "is served",
  async (t) => {
    const { fixture } = await createFixture(t);
    const key = await fixture.anonymousKey();
    for (const path of ["/llms.txt", "/SKILL.md"]) {
      const { text } = await fixture.service.get(path);
      const urls = [...text.matchAll(/(?:http|ws):\/\/[^\s"`]+\/rpc\/k\/\$KEY\/[^\s"`]+/g)].map(
        ([url]) => url.replace("$KEY", key),
      );
      assert.ok(urls.length > 0, path);
      for (const url of urls) assert.equal(await chainAt(fixture, url), 1, url);
    }
    const { fixture: open } = await createFixture(t, {
      public: ["ethereum"],
      premium: ["optimism", "base"],
    });
    const { text } = await open.service.get("/llms.txt");
    assert.match(text, /\/rpc\/k\/\$KEY\/load-balanced\/optimism/);
  },
);
