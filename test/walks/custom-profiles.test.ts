// Custom profiles end to end: written over HTTP, checked against real providers, served to keys
// over real sockets, changed, suspended and deleted under way.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { PUBLIC_ONLY } from "../../src/core/public-address.ts";
import { startDevnet } from "../../src/devnet/devnet.ts";
import { profileDocument, readDocument } from "../../src/hosted/profiles/document.ts";
import { type HostedFixture, hostedFixture, OPERATOR_TOKEN } from "../fakes/hosted-fixture.ts";
import type { Answer } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const ETHEREUM = {
  chainId: 1,
  chainName: "ethereum",
  name: "Ethereum",
  aliases: [],
  blockTimeMs: 12_000,
};
const SECRET_PATH = "v1/very-secret-provider-key-0123456789";

interface ProfilesFixture extends HostedFixture {
  readonly mine: ScriptedUpstream;
  readonly owner: {
    readonly key: string;
    readonly id: string;
    readonly token: string;
    readonly accountId: string;
  };
  put(slug: string, document: unknown, query?: string): Promise<Answer>;
  /** A document with the owner's provider, and maybe others. */
  document(more?: Record<string, unknown>): object;
}

async function createFixture(t: TestContext, days = 1): Promise<ProfilesFixture> {
  const fixture = await hostedFixture(t, { allow_private_providers: true, free_cu_per_month: 0 });
  const mine = await scriptedUpstream((_, reply) => reply.result('"0xmine"'));
  t.after(() => mine.close());
  const owner = await fixture.account();
  if (days > 0) {
    const given = await fixture.manage(
      OPERATOR_TOKEN,
      "POST",
      `/api/v1/operator/accounts/${owner.accountId}/custom-access`,
      { days },
    );
    assert.equal(given.status, 200, given.text);
  }
  return {
    ...fixture,
    mine,
    owner,
    put: (slug, document, query = "") =>
      fixture.manage(owner.token, "PUT", `/api/v1/profiles/${slug}${query}`, document),
    document: (more = {}) => ({
      chains: {
        ethereum: { providers: [{ name: "mine", url: `${mine.url}/${SECRET_PATH}`, ...more }] },
      },
    }),
  };
}

const code = ({ status, json }: Answer) => [status, json.error.code];
const served = ({ status, headers, json }: Answer) => [
  status,
  json.result ?? json.error?.data?.code,
  headers.get("x-svc-access"),
  headers.get("x-svc-fallback"),
];

test(
  "a profile is checked, served uncharged to the keys of its account from its own bucket, " +
    "counted, and shown without its secrets",
  async (t) => {
    const it = await createFixture(t);
    const written = await it.put(
      "my-nodes",
      it.document({ headers: { Authorization: "Bearer hidden-header-value" } }),
    );
    assert.equal(written.status, 200, written.text);
    assert.equal(written.json.revision, 1);
    assert.equal(it.mine.asked.at(-1)?.headers["authorization"], "Bearer hidden-header-value");
    const answer = await it.call(it.owner.key, "eth_gasPrice", "ethereum");
    assert.equal(answer.json.error.data.code, "balance_exhausted", "premium is not paid for");
    const own = await it.service.post(
      `/rpc/profile/my-nodes/fastest/1?key=${it.owner.key}&include_meta=body`,
      { jsonrpc: "2.0", id: 1, method: "eth_gasPrice" },
    );
    assert.deepEqual(served(own), [200, "0xmine", "custom", null]);
    assert.match(own.headers.get("ratelimit-policy") ?? "", /^"my-nodes";q=2000;w=2$/);
    assert.deepEqual(
      [
        own.json.svc_meta.profile,
        own.json.svc_meta.strategy,
        own.json.svc_meta.selected_provider.id,
      ],
      ["my-nodes", "fastest", "mine"],
    );
    assert.deepEqual(own.json.svc_meta.excluded, []);
    const cheapest = await it.service.post(`/rpc/profile/my-nodes/cheapest/1?key=${it.owner.key}`, {
      jsonrpc: "2.0",
      id: 1,
      method: "eth_gasPrice",
    });
    assert.match(cheapest.json.error.message, /Custom profiles have no such strategy/);
    const pinned = await it.service.post(
      `/rpc/profile/my-nodes/provider/mine/1?key=${it.owner.key}`,
      { jsonrpc: "2.0", id: 1, method: "eth_gasPrice" },
    );
    assert.equal(pinned.json.result, "0xmine");
    await until("the usage", async () => {
      const { json } = await it.manage(
        OPERATOR_TOKEN,
        "GET",
        `/api/v1/operator/usage?account=${it.owner.accountId}`,
      );
      return json.totals.calls === 2 && json.totals.usd === "0" && json.totals.cu > 0;
    });
    const shown = await it.manage(it.owner.token, "GET", "/api/v1/profiles/my-nodes");
    const list = await it.manage(it.owner.token, "GET", "/api/v1/profiles");
    const [provider] = shown.json.chains.ethereum.providers;
    assert.equal(provider.url, `http://127.0.0.1:${it.mine.port}/…`);
    assert.deepEqual(
      [provider.headers, provider.status, shown.json.state],
      [["Authorization"], "verified", "active"],
    );
    const metrics = await it.service.get("/metrics");
    assert.match(metrics.text, /svc_requests_total\{profile="custom"/);
    const open = await it.service.get("/api/metrics/ethereum");
    for (const { text } of [shown, list, written, metrics, open, own])
      assert.ok(!text.includes("very-secret") && !text.includes("hidden-header"));
    assert.ok(
      !metrics.text.includes("my-nodes") &&
        !open.text.includes("my-nodes") &&
        !open.text.includes("mine"),
      "what others may read names no Custom profile",
    );
    assert.ok(
      !it.service.log().includes("very-secret") && !it.service.log().includes("hidden-header"),
    );
  },
);

/** Lets the provider of a profile pass everything on to the profile of another, headers and all. */
function leadTo(from: ProfilesFixture, to: ProfilesFixture): void {
  from.mine.script((request, reply) => {
    const { "content-length": _, ...headers } = request.headers;
    fetch(`${to.service.url}/rpc/profile/loop/ethereum?key=${to.owner.key}`, {
      method: "POST",
      headers: { ...headers } as Record<string, string>,
      body: request.body,
    }).then(
      async (answer) => reply.body(await answer.text(), answer.status),
      () => reply.close(),
    );
  });
}

test("a provider that leads back, also through other services, is recognised: a call is one call at each", async (t) => {
  const fixtures = await Promise.all([1, 2, 3].map(() => createFixture(t)));
  for (const it of fixtures) assert.equal((await it.put("loop", it.document())).status, 200);
  for (const services of [1, 2, 3]) {
    const round = fixtures.slice(0, services);
    for (const [n, it] of round.entries()) leadTo(it, round[(n + 1) % services] ?? assert.fail());
    const before = round.map((it) => it.mine.asked.length);
    const [first = assert.fail()] = round;
    const { json } = await first.service.post(`/rpc/profile/loop/ethereum?key=${first.owner.key}`, {
      jsonrpc: "2.0",
      id: services,
      method: "eth_gasPrice",
    });
    assert.deepEqual([json.error.code, json.error.data.code], [-32_000, "request_loop"]);
    assert.match(json.error.data.next_action, /remove the provider that leads back/);
    assert.deepEqual(
      round.map((it, n) => it.mine.asked.length - (before[n] ?? 0)),
      round.map(() => 1),
    );
  }
});

test("a request that has passed four services like this one goes no further", async (t) => {
  const it = await createFixture(t);
  assert.equal((await it.put("loop", it.document())).status, 200);
  const ask = (passed: number) =>
    it.service.post(
      `/rpc/profile/loop/ethereum?key=${it.owner.key}`,
      { jsonrpc: "2.0", id: 1, method: "eth_gasPrice" },
      { "x-svc-from": Array.from({ length: passed }, (_, n) => `${n}`.repeat(16)).join() },
    );
  assert.equal((await ask(4)).json.result, "0xmine");
  const sent = String(it.mine.asked.at(-1)?.headers["x-svc-from"]).split(", ");
  assert.deepEqual([sent.length, sent[3]], [5, "3".repeat(16)]);
  const { json } = await ask(5);
  assert.equal(json.error.data.code, "request_loop");
  assert.match(json.error.data.next_action, /name the nodes themselves/);
});

test(
  "what is shown of a profile can be sent back: its secrets stay, and go to no other host; earlier " +
    "revisions are shown without them",
  async (t) => {
    const it = await createFixture(t);
    const headers = { Authorization: "Bearer hidden-header-value" };
    await it.put("my-nodes", it.document({ headers }));
    const host = `http://127.0.0.1:${it.mine.port}`;
    const shown = (more = {}) =>
      it.document({ url: `${host}/…`, headers: { Authorization: "…" }, ...more });
    assert.deepEqual(code(await it.put("my-nodes", shown())), [422, "invalid_config"]);
    const limits = { logs_span: 500 };
    const document = { ...shown({ limits }), consistency: "caller" };
    const saved = await it.put("my-nodes", document, "?keep_hidden=true");
    assert.deepEqual([saved.status, saved.json.revision], [200, 2], saved.text);
    assert.equal(saved.json.consistency, "caller");
    const wrong = await it.put("my-nodes", { ...it.document(), consistency: "on" });
    assert.deepEqual(code(wrong), [422, "invalid_config"]);
    const { headers: sent, path } = it.mine.asked.at(-1) ?? {};
    assert.deepEqual([sent?.["authorization"], path], [headers.Authorization, `/${SECRET_PATH}`]);
    const other = await scriptedUpstream();
    t.after(() => other.close());
    const elsewhere = shown({ url: `${other.url}/` });
    const refused = await it.put("my-nodes", elsewhere, "?keep_hidden=true");
    assert.deepEqual(code(refused), [422, "invalid_config"]);
    assert.deepEqual(refused.json.error.details, [
      "chains.ethereum.providers[0].headers.Authorization",
    ]);
    assert.equal(other.asked.length, 0, "nothing was sent to the other host");
    const get = (path: string) => it.manage(it.owner.token, "GET", `/api/v1/profiles/${path}`);
    const list = await get("my-nodes/revisions");
    assert.deepEqual(
      list.json.revisions.map(({ revision }: { readonly revision: number }) => revision),
      [2, 1],
    );
    const first = await get("my-nodes/revisions/1");
    const [provider] = first.json.chains.ethereum.providers;
    assert.deepEqual(
      [provider.url, provider.headers, provider.limits.logs_span],
      [`${host}/…`, ["Authorization"], null],
    );
    assert.equal(first.json.consistency, null);
    assert.equal((await get("my-nodes")).json.consistency, "caller");
    for (const { text } of [list, first, saved, refused])
      assert.ok(!text.includes("very-secret") && !text.includes("hidden-header"));
    const stranger = await it.account();
    for (const path of ["revisions", "revisions/1"])
      assert.equal(
        (await it.manage(stranger.token, "GET", `/api/v1/profiles/my-nodes/${path}`)).status,
        404,
      );
  },
);

test(
  "only the account's own keys reach it: others are told 404 with what they have, scoped ones " +
    "403, and two accounts may use one name",
  async (t) => {
    const it = await createFixture(t);
    await it.put("nodes", it.document());
    const other = await it.account();
    const stranger = await it.call(other.key, "eth_gasPrice", "profile/nodes/1");
    assert.deepEqual(served(stranger).slice(0, 2), [404, "unknown_profile"]);
    assert.deepEqual(stranger.json.error.data.known_profiles, ["premium", "public"]);
    const mistyped = await it.service.post(`/rpc/k/${it.owner.key}/profile/node/1`, {
      jsonrpc: "2.0",
      id: 1,
      method: "eth_gasPrice",
    });
    assert.deepEqual(
      [mistyped.status, mistyped.json.error.data.known_profiles],
      [404, ["premium", "public", "nodes"]],
    );
    const scoped = await it.manage(it.owner.token, "POST", "/api/v1/keys", {
      allowed_profiles: ["premium"],
    });
    const refused = await it.call(scoped.json.key, "eth_gasPrice", "profile/nodes/1");
    assert.deepEqual(served(refused).slice(0, 2), [403, "forbidden"]);
    const pinned = await it.manage(it.owner.token, "POST", "/api/v1/keys", {
      default_profile: "nodes",
      allowed_profiles: ["nodes"],
    });
    assert.equal(pinned.status, 201, pinned.text);
    assert.deepEqual(
      served(await it.call(pinned.json.key)),
      [200, "0xmine", "custom", null],
      "the default profile of a key",
    );
    assert.deepEqual(
      served(await it.call(pinned.json.key, "eth_gasPrice", "profile/premium/1")).slice(0, 2),
      [403, "forbidden"],
    );
    await it.manage(
      OPERATOR_TOKEN,
      "POST",
      `/api/v1/operator/accounts/${other.accountId}/custom-access`,
      { days: 1 },
    );
    const theirs = await scriptedUpstream((_, reply) => reply.result('"0xtheirs"'));
    t.after(() => theirs.close());
    const document = { chains: { 1: { providers: [{ name: "theirs", url: theirs.url }] } } };
    assert.equal(
      (await it.manage(other.token, "PUT", "/api/v1/profiles/nodes", document)).status,
      200,
    );
    assert.deepEqual(
      served(await it.call(other.key, "eth_gasPrice", "profile/nodes/1")).slice(0, 2),
      [200, "0xtheirs"],
    );
    assert.deepEqual(
      served(await it.call(it.owner.key, "eth_gasPrice", "profile/nodes/1")).slice(0, 2),
      [200, "0xmine"],
    );
  },
);

test(
  "deleted: served as premium and charged as that, with x-svc-fallback: profile; written " +
    "again: served by it again",
  async (t) => {
    const it = await createFixture(t);
    await it.manage(
      OPERATOR_TOKEN,
      "POST",
      `/api/v1/operator/accounts/${it.owner.accountId}/credit`,
      { usd: "1", reference: "invoice-1" },
    );
    await it.put("nodes", it.document());
    const ask = () => it.call(it.owner.key, "eth_gasPrice", "profile/nodes/1");
    assert.deepEqual(served(await ask()), [200, "0xmine", "custom", null]);
    assert.equal((await it.manage(it.owner.token, "DELETE", "/api/v1/profiles/nodes")).status, 204);
    assert.deepEqual(served(await ask()), [200, "0x1", "premium", "profile"]);
    assert.deepEqual(
      served(await it.call(it.owner.key, "eth_gasPrice", "profile/nodes/provider/mine/1")),
      [200, "0x1", "premium", "profile"],
      "nor is its pin in the way",
    );
    assert.equal(
      (await it.manage(it.owner.token, "DELETE", "/api/v1/profiles/nodes")).status,
      204,
      "deleting is idempotent",
    );
    assert.equal((await it.manage(it.owner.token, "GET", "/api/v1/profiles/nodes")).status, 404);
    const again = await it.put("nodes", it.document());
    assert.deepEqual([again.status, again.json.revision], [200, 3], "revisions go on counting");
    assert.deepEqual(served(await ask()), [200, "0xmine", "custom", null]);
    const { json } = await it.manage(OPERATOR_TOKEN, "GET", "/api/v1/operator/audit");
    assert.equal(json.ok, true);
  },
);

test(
  "two writers: If-Match lets one through; without it both are written, one after the other; " +
    "the same document is no new revision",
  async (t) => {
    const it = await createFixture(t);
    const first = await it.put("nodes", it.document());
    assert.deepEqual(
      [(await it.put("nodes", it.document())).json.revision, first.json.revision],
      [1, 1],
    );
    const write = (name: string, ifMatch: string) =>
      fetch(`${it.service.url}/api/v1/profiles/nodes`, {
        method: "PUT",
        headers: { authorization: `Bearer ${it.owner.token}`, "if-match": ifMatch },
        body: JSON.stringify({ name, ...Object(it.document()) }),
      });
    const both = await Promise.all([write("a", '"1"'), write("b", '"1"')]);
    assert.deepEqual(both.map((one) => one.status).sort(), [200, 409]);
    assert.equal((await write("c", "7")).status, 409);
    assert.equal((await write("c", "*")).status, 200);
  },
);

test(
  "a provider that lies about its chain, answers junk, hangs or dies is named, nothing is " +
    "stored, and the revision before goes on serving",
  async (t) => {
    const it = await createFixture(t);
    await it.put("nodes", it.document());
    const liar = await scriptedUpstream();
    liar.probesSay({ chainId: 5, height: 100 });
    t.after(() => liar.close());
    const document = {
      chains: {
        ethereum: {
          providers: [
            { name: "mine", url: it.mine.url },
            { name: "liar", url: `${liar.url}/${SECRET_PATH}` },
          ],
        },
      },
    };
    const refused = await it.put("nodes", document);
    assert.deepEqual(code(refused), [422, "provider_check_failed"]);
    assert.match(refused.json.error.message, /liar on ethereum over http \(wrong_chain\)/);
    assert.deepEqual(refused.json.error.details, ["chains.ethereum.providers[1]"]);
    assert.ok(!refused.text.includes("very-secret"));
    const failures: readonly (readonly [string, Parameters<ScriptedUpstream["script"]>[0]])[] = [
      ["junk", (_, reply) => reply.body("<html>nope</html>")],
      ["death", (_, reply) => reply.reset()],
      ["an answer without end", () => {}],
    ];
    await Promise.all(
      failures.map(async ([what, script]) => {
        const bad = await scriptedUpstream(script);
        bad.probesSay(null);
        t.after(() => bad.close());
        const answer = await it.put("nodes", {
          chains: { 1: { providers: [{ name: "bad", url: bad.url }] } },
        });
        assert.deepEqual(code(answer), [422, "provider_check_failed"], what);
      }),
    );
    assert.equal(
      (await it.manage(it.owner.token, "GET", "/api/v1/profiles/nodes")).json.revision,
      1,
    );
    assert.deepEqual(
      served(await it.call(it.owner.key, "eth_gasPrice", "profile/nodes/1")).slice(0, 2),
      [200, "0xmine"],
    );
  },
);

test(
  "bad documents and names are refused with the path of each fault, within bounds and at once; " +
    "a dry run stores nothing",
  async (t) => {
    const it = await createFixture(t);
    const url = it.mine.url;
    const providers = (list: unknown) => ({ chains: { ethereum: { providers: list } } });
    const cases: readonly (readonly [string, unknown, readonly unknown[]])[] = [
      [
        "nodes",
        providers([{ name: "a", url, nope: 1 }]),
        [422, "unknown_field", "chains.ethereum.providers[0].nope"],
      ],
      [
        "nodes",
        { chains: { nochain: { providers: [{ name: "a", url }] } } },
        [422, "unknown_chain", "chains.nochain"],
      ],
      [
        "nodes",
        {
          chains: {
            ethereum: { providers: [{ name: "a", url }] },
            1: { providers: [{ name: "a", url }] },
          },
        },
        [422, "invalid_config", "chains.ethereum"],
      ],
      ["nodes", { chains: {} }, [422, "invalid_config", "chains"]],
      ["nodes", providers([]), [422, "invalid_config", "chains.ethereum.providers"]],
      [
        "nodes",
        providers([{ name: "a" }]),
        [422, "invalid_config", "chains.ethereum.providers[0].url"],
      ],
      [
        "nodes",
        providers([
          { name: "a", url },
          { name: "a", url },
        ]),
        [422, "invalid_config", "chains.ethereum.providers[1].name"],
      ],
      [
        "nodes",
        providers([{ name: "a", url: "http://127.0.0.1:4000/…" }]),
        [422, "invalid_config", "chains.ethereum.providers[0].url"],
      ],
      [
        "nodes",
        providers([{ name: "a", url: "ws://127.0.0.1:4000/" }]),
        [422, "invalid_config", "chains.ethereum.providers[0].url"],
      ],
      [
        "nodes",
        providers([{ name: "a", url: "http://user:pw@127.0.0.1:4000/" }]),
        [422, "invalid_config", "chains.ethereum.providers[0].url"],
      ],
      [
        "nodes",
        providers([{ name: "a", url: "file:///etc/passwd" }]),
        [422, "invalid_config", "chains.ethereum.providers[0].url"],
      ],
      [
        "nodes",
        providers([{ name: "a", url, headers: { Host: "x" } }]),
        [422, "invalid_config", "chains.ethereum.providers[0].headers.Host"],
      ],
      [
        "nodes",
        providers(Array.from({ length: 3_000 }, (_, i) => ({ name: `p${i}`, url }))),
        [422, "invalid_config", "chains.ethereum.providers"],
      ],
      [
        "nodes",
        providers(Array.from({ length: 10_000 }, (_, i) => ({ name: `p${i}`, url }))),
        [413, "body_too_large", undefined],
      ],
      [
        "nodes",
        { name: "x".repeat(10_000_000), ...providers([{ name: "a", url }]) },
        [413, "body_too_large", undefined],
      ],
      ["premium", it.document(), [422, "invalid_field", "slug"]],
      ["fastest", it.document(), [422, "invalid_field", "slug"]],
      ["No", it.document(), [422, "invalid_field", "slug"]],
      ["x", it.document(), [422, "invalid_field", "slug"]],
      ["%2e%2e%2fnodes", it.document(), [422, "invalid_field", "slug"]],
      [encodeURIComponent("nоdes"), it.document(), [422, "invalid_field", "slug"]],
      [`a${"-".repeat(64)}`, it.document(), [422, "invalid_field", "slug"]],
    ];
    for (const [slug, document, expected] of cases) {
      const answer = await it.put(slug, document);
      assert.deepEqual(
        [...code(answer), answer.json.error.details?.[0]],
        expected,
        `${slug} ${JSON.stringify(document).slice(0, 120)} ${answer.text.slice(0, 300)}`,
      );
    }
    const deep = await fetch(`${it.service.url}/api/v1/profiles/nodes`, {
      method: "PUT",
      headers: { authorization: `Bearer ${it.owner.token}` },
      body: `{"chains":${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}}`,
    });
    assert.ok([400, 422].includes(deep.status));
    const dry = await it.put("nodes", it.document(), "?dry_run=true");
    assert.deepEqual(
      [dry.status, dry.json.revision, dry.json.chains.ethereum.providers[0].status],
      [200, null, "verified"],
    );
    assert.deepEqual(
      (await it.manage(it.owner.token, "GET", "/api/v1/profiles")).json.profiles,
      [],
    );
  },
);

test(
  "on a socket: calls and subscriptions of a profile, no balance needed; deleted, the socket " +
    "is closed with custom_access_expired",
  async (t) => {
    const it = await createFixture(t);
    await it.put("nodes", it.document());
    const ws = new WebSocket(
      `${it.service.url.replace("http", "ws")}/ws/rpc/k/${it.owner.key}/profile/nodes/1`,
    );
    await new Promise((resolve, reject) => ws.once("open", resolve).once("error", reject));
    const closed = new Promise<readonly unknown[]>((resolve) =>
      ws.once("close", (closeCode, reason) => resolve([closeCode, reason.toString()])),
    );
    const reply = new Promise<string>((resolve) =>
      ws.once("message", (data: Buffer) => resolve(data.toString())),
    );
    ws.send('{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice"}');
    assert.match(await reply, /0xmine/);
    await it.manage(it.owner.token, "DELETE", "/api/v1/profiles/nodes");
    assert.deepEqual(await closed, [1008, "custom_access_expired"]);
  },
);

test(
  "without Custom access nothing is written; when a profile is replaced under load, no request " +
    "fails",
  async (t) => {
    const it = await createFixture(t, 0);
    assert.deepEqual(code(await it.put("nodes", it.document())), [403, "custom_access_required"]);
    const grant = { days: 1, reference: "invoice-7" };
    const given = await it.manage(
      OPERATOR_TOKEN,
      "POST",
      `/api/v1/operator/accounts/${it.owner.accountId}/custom-access`,
      grant,
    );
    const repeated = await it.manage(
      OPERATOR_TOKEN,
      "POST",
      `/api/v1/operator/accounts/${it.owner.accountId}/custom-access`,
      grant,
    );
    assert.deepEqual(repeated.json, given.json, "once for each reference");
    await it.put("nodes", it.document());
    let over = false;
    let calls = 0;
    const load = Array.from({ length: 8 }, async () => {
      while (!over) {
        assert.deepEqual(served(await it.call(it.owner.key, "eth_gasPrice", "profile/nodes/1")), [
          200,
          "0xmine",
          "custom",
          null,
        ]);
        calls++;
      }
    });
    for (let i = 0; i < 25; i++) {
      const written = await it.put("nodes", {
        name: `n${i}`,
        ...Object(it.document({ name: i % 2 === 0 ? "mine" : "renamed" })),
      });
      assert.equal(written.status, 200, written.text);
    }
    over = true;
    await Promise.all(load);
    assert.ok(calls > 50);
    t.diagnostic(`${calls} calls while the profile changed 25 times`);
  },
);

test(
  "a socket that fell back when its profile was deleted is served by the profile again once " +
    "that is written anew",
  async (t) => {
    const it = await createFixture(t);
    await it.manage(
      OPERATOR_TOKEN,
      "POST",
      `/api/v1/operator/accounts/${it.owner.accountId}/credit`,
      { usd: "1", reference: "invoice-2" },
    );
    await it.put("nodes", it.document());
    await it.manage(it.owner.token, "DELETE", "/api/v1/profiles/nodes");
    const ws = new WebSocket(
      `${it.service.url.replace("http", "ws")}/ws/rpc/k/${it.owner.key}/profile/nodes/1`,
    );
    t.after(() => ws.terminate());
    await new Promise((resolve, reject) => ws.once("open", resolve).once("error", reject));
    const ask = (id: number) =>
      new Promise<string>((resolve) => {
        ws.once("message", (data: Buffer) => resolve(data.toString()));
        ws.send(`{"jsonrpc":"2.0","id":${id},"method":"eth_gasPrice"}`);
      });
    assert.match(await ask(1), /"0x1"/);
    await it.put("nodes", it.document());
    assert.match(await ask(2), /"0xmine"/);
    assert.match(await ask(3), /"0xmine"/);
  },
);

test(
  "the published schema is the one that documents are checked by: every recipe is accepted by " +
    "it, and the limits are the ones that hold",
  async (t) => {
    const it = await createFixture(t);
    const { status, json } = await it.service.get("/api/v1/configuration-schema");
    assert.equal(status, 200);
    assert.ok(json.workload_recipes.length >= 4);
    for (const { document } of json.workload_recipes) {
      const parsed = profileDocument.safeParse(document);
      assert.ok(parsed.success, JSON.stringify(parsed.error?.issues));
      const profile = readDocument(
        { chains: [ETHEREUM], rules: PUBLIC_ONLY },
        { accountId: "acc_1", slug: "mine" },
        parsed.data,
      );
      assert.ok(!("kind" in profile), JSON.stringify(profile));
    }
    assert.deepEqual(json.schema.$defs.ProfileDocument.required, ["chains"]);
    assert.deepEqual(
      [json.limits.max_profiles, json.limits.max_document_bytes, json.limits.requests_per_second],
      [5, 262_144, 1_000],
    );
  },
);

test(
  "two accounts call the same URL in profiles of the same name, interleaved: each is answered " +
    "by its own provider",
  async (t) => {
    const it = await createFixture(t);
    const other = await it.account();
    await it.manage(
      OPERATOR_TOKEN,
      "POST",
      `/api/v1/operator/accounts/${other.accountId}/custom-access`,
      { days: 1 },
    );
    const theirs = await scriptedUpstream((_, reply) => reply.result('"0xtheirs"'));
    t.after(() => theirs.close());
    await it.put("nodes", it.document());
    await it.manage(other.token, "PUT", "/api/v1/profiles/nodes", {
      chains: { 1: { providers: [{ name: "mine", url: theirs.url }] } },
    });
    const answers = await Promise.all(
      Array.from(
        { length: 20 },
        async (_, i) =>
          (await it.call(i % 2 === 0 ? it.owner.key : other.key, "eth_gasPrice", "profile/nodes/1"))
            .json.result,
      ),
    );
    assert.deepEqual(
      answers,
      answers.map((_, i) => (i % 2 === 0 ? "0xmine" : "0xtheirs")),
    );
  },
);

test(
  "over real nodes: calls and heads of a profile go on when one of the owner's nodes dies, " +
    "without a gap; metrics name neither",
  async (t) => {
    const devnet = await startDevnet({ nodes: 2, onProgress: () => {} });
    t.after(() => devnet.close());
    const chains = {
      ethereum: { chain_id: 1 },
      local: { chain_id: devnet.chain.chainId, block_time_ms: devnet.chain.blockTimeMs },
    };
    const fixture = await hostedFixture(t, { allow_private_providers: true }, { chains });
    const owner = await fixture.account();
    await fixture.manage(
      OPERATOR_TOKEN,
      "POST",
      `/api/v1/operator/accounts/${owner.accountId}/custom-access`,
      { days: 1 },
    );
    const providers = devnet.providers.map(({ url, wsUrl }, i) => ({
      name: `node-${i}`,
      url,
      ws_url: wsUrl,
      limits: { archival: true },
    }));
    const written = await fixture.manage(owner.token, "PUT", "/api/v1/profiles/nodes", {
      chains: { local: { providers } },
    });
    assert.equal(written.status, 200, written.text);
    const ws = new WebSocket(
      `${fixture.service.url.replace("http", "ws")}/ws/rpc/k/${owner.key}/profile/nodes/priority/local`,
    );
    t.after(() => ws.terminate());
    const heads: { readonly number: string; readonly hash: string; readonly parentHash: string }[] =
      [];
    let subscribed = false;
    ws.on("message", (data: Buffer) => {
      const { params, id } = JSON.parse(data.toString());
      subscribed ||= id === 1;
      if (params !== undefined) heads.push(params.result);
    });
    await new Promise((resolve, reject) => ws.once("open", resolve).once("error", reject));
    ws.send('{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}');
    // A transaction makes the local chain mine a block at once. It goes to the node that makes the
    // blocks: another one may be a block behind, and would give it a nonce that is used up. No two
    // are the same: two nodes that made the same block would tell it once.
    let mined = 0;
    const mine = async (node: number): Promise<boolean> => {
      const before = heads.length;
      const value = `0x${(++mined).toString(16)}`;
      const params = [
        {
          from: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
          to: "0x00000000000000000000000000000000000b0b01",
          value,
        },
      ];
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendTransaction", params });
      await fetch(devnet.providers[node]?.url ?? "", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      return until("a head", async () => heads.length > before);
    };
    await until("the subscription", async () => subscribed);
    await mine(0);
    await mine(0);
    process.kill(devnet.providers[0]?.pid ?? 0, "SIGKILL");
    const seen = heads.length;
    for (let i = 0; i < 3; i++) await mine(1);
    assert.ok(heads.length >= seen + 3);
    // The nodes may have disagreed about a block: then it is told anew, by its own hash.
    assert.equal(new Set(heads.map((it) => it.hash)).size, heads.length, "no head twice");
    // Nobody has asked for what was before the first one, in whichever form.
    const first = Number(heads[0]?.number);
    for (const [at, { number, parentHash }] of heads.entries())
      assert.ok(
        Number(number) <= first || heads.slice(0, at).some((it) => it.hash === parentHash),
        "no head before its parent: " +
          `${heads.map((it) => `${Number(it.number)} ${it.hash.slice(2, 8)} on ${it.parentHash.slice(2, 8)}`).join(", ")}`,
      );
    const answer = await fixture.service.post(
      `/rpc/k/${owner.key}/profile/nodes/priority/local?include_meta=body`,
      {
        jsonrpc: "2.0",
        id: 2,
        method: "eth_gasPrice",
      },
    );
    assert.equal(answer.json.svc_meta.selected_provider.id, "node-1");
    assert.ok(!(await fixture.service.get("/metrics")).text.includes("node-1"));
  },
);
