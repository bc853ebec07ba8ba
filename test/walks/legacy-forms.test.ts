// Older forms of requests over the real service: served as before, told that they are old, counted
// each, refused when they are switched off, and nothing of it on requests of the current forms.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { WebSocket } from "ws";
import { LEGACY_FORM_NAMES } from "../../src/core/faults/legacy-form.ts";
import { type HostedFixture, hostedFixture } from "../fakes/hosted-fixture.ts";
import type { Answer } from "../fakes/service.ts";

const CALL = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
const V2_HEADERS = [
  "x-svc-profile",
  "x-svc-downgraded",
  "x-svc-rate-limit-limit",
  "x-svc-rate-limit-remaining",
  "x-svc-rate-limit-reset",
];
const OLD_HEADERS = ["deprecation", "sunset", "link"];

interface Form {
  readonly name: string;
  readonly path: (key: string) => string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Keeps the key out of the path. */
  readonly bearer?: boolean;
}

/** Each old form alone. */
const FORMS: readonly Form[] = [
  { name: "round-robin", path: (key) => `/rpc/k/${key}/round-robin/ethereum?include_meta=body` },
  {
    name: "round-robin",
    path: (key) => `/rpc/k/${key}/profile/premium/round_robin/1?include_meta=body`,
  },
  { name: "chain-provider", path: (key) => `/rpc/k/${key}/ethereum/p1?include_meta=body` },
  {
    name: "chain-provider",
    path: (key) => `/rpc/k/${key}/profile/premium/ethereum/p1?include_meta=body`,
  },
  {
    name: "profile-prefix",
    path: () => "/profile/premium/load-balanced/ethereum?include_meta=body",
    bearer: true,
  },
  {
    name: "profile-prefix",
    path: () => "/profile/premium/ethereum?include_meta=body",
    bearer: true,
  },
  { name: "key-query", path: (key) => `/rpc/ethereum?key=${key}&include_meta=body` },
  {
    name: "version-header",
    path: (key) => `/rpc/k/${key}/ethereum?include_meta=body`,
    headers: { "x-svc-version": "2" },
  },
];

/** Requests of current forms. */
const CURRENT: readonly Omit<Form, "name">[] = [
  { path: (key) => `/rpc/k/${key}/load-balanced/ethereum` },
  { path: (key) => `/rpc/k/${key}/ethereum?strategy=round-robin` },
  { path: (key) => `/rpc/k/${key}/provider/p1/ethereum` },
  { path: (key) => `/rpc/k/${key}/profile/public/ethereum` },
  { path: () => "/rpc/ethereum", bearer: true },
  { path: (key) => `/rpc/k/${key}/ethereum`, headers: { "x-svc-version": "3" } },
];

function send(
  { service }: HostedFixture,
  key: string,
  { path, headers = {}, bearer = false }: Omit<Form, "name">,
  body: unknown = CALL,
): Promise<Answer> {
  return service.post(path(key), body, {
    ...headers,
    ...(bearer ? { authorization: `Bearer ${key}` } : {}),
  });
}

async function counts({ service }: HostedFixture): Promise<Readonly<Record<string, number>>> {
  const { text } = await service.get("/metrics");
  return Object.fromEntries(
    Array.from(
      text.matchAll(/^svc_old_form_requests_total\{form="([^"]+)"\} (\d+)$/gm),
      ([, form = "", n]) => [form, Number(n)],
    ),
  );
}

test(
  "every old form is served, says that it is old and until when it is served, carries the " +
    "headers of version 2, and is counted by itself",
  async (t) => {
    const fixture = await hostedFixture(t);
    const key = await fixture.anonymousKey();
    for (const form of FORMS) {
      const before = await counts(fixture);
      const askedAtMs = Date.now();
      const { status, headers, json } = await send(fixture, key, form);
      assert.deepEqual(
        [status, json.result, json.svc_meta.strategy],
        [200, "0x1", "load-balanced"],
        form.name,
      );
      assert.equal(json.svc_meta.selected_provider.id, "p1");
      assert.match(headers.get("deprecation") ?? "", /^@\d{10}$/);
      const sunsetMs = Date.parse(headers.get("sunset") ?? "");
      assert.ok(
        sunsetMs - askedAtMs > 30 * 86_400_000 && sunsetMs - Date.now() <= 31 * 86_400_000,
        headers.get("sunset") ?? "no sunset",
      );
      assert.equal(
        headers.get("link"),
        '</docs/api#older-forms>; rel="deprecation"; type="text/markdown"',
      );
      assert.deepEqual(
        [
          headers.get("x-svc-profile"),
          headers.get("x-svc-downgraded"),
          headers.get("x-svc-balance-warning"),
        ],
        ["premium", "false", null],
      );
      const limits = V2_HEADERS.slice(2).map((it) => Number(headers.get(it)));
      assert.ok(
        limits[0] === 200 && (limits[1] ?? 0) >= 190 && (limits[1] ?? 0) <= 200,
        limits.join(),
      );
      const exposed = headers.get("access-control-expose-headers") ?? "";
      for (const name of [...V2_HEADERS, "Deprecation", "Sunset"])
        assert.ok(exposed.toLowerCase().includes(name.toLowerCase()), name);
      assert.deepEqual(await counts(fixture), {
        ...before,
        [form.name]: (before[form.name] ?? 0) + 1,
      });
    }
    assert.deepEqual(Object.keys(await counts(fixture)), LEGACY_FORM_NAMES);
    const both = await send(fixture, key, { path: (it) => `/rpc/round-robin/ethereum?key=${it}` });
    assert.equal(both.status, 200);
    const after = await counts(fixture);
    assert.deepEqual(
      [after["round-robin"], after["key-query"]],
      [3, 2],
      "a request with two old forms counts for both",
    );
  },
);

test("requests of current forms carry nothing of it, and count for none", async (t) => {
  const fixture = await hostedFixture(t);
  const key = await fixture.anonymousKey();
  const before = await counts(fixture);
  for (const form of CURRENT) {
    for (const body of [CALL, { ...CALL, method: "eth_sign" }, [CALL, 7]]) {
      const { headers, text } = await send(fixture, key, form, body);
      for (const name of [...V2_HEADERS, ...OLD_HEADERS, "x-svc-balance-warning"])
        assert.equal(headers.get(name), null, `${form.path("…")} ${name}`);
      assert.ok(!text.includes("error_type"));
    }
  }
  const refused = await fixture.service.post("/rpc/nochain", CALL, {
    authorization: `Bearer ${key}`,
  });
  assert.ok(!refused.text.includes("error_type") && refused.headers.get("deprecation") === null);
  assert.deepEqual(await counts(fixture), before);
});

test(
  "refusals of old forms carry error_type beside the code, single, in batches and before " +
    "anything is known; errors of providers do not",
  async (t) => {
    const fixture = await hostedFixture(t);
    const key = await fixture.anonymousKey();
    const typeOf = async (path: string, body: unknown = CALL): Promise<readonly unknown[]> => {
      const { status, headers, json } = await fixture.service.post(path, body);
      assert.ok(headers.has("deprecation"), path);
      return [status, json.error.data.code, json.error.data.error_type];
    };
    assert.deepEqual(await typeOf("/rpc/ethereum?key=svc_ak_wrong"), [
      401,
      "unauthorized",
      "authentication_error",
    ]);
    assert.deepEqual(await typeOf("/rpc/round-robin/ethereum"), [
      401,
      "unauthorized",
      "authentication_error",
    ]);
    assert.deepEqual(await typeOf(`/rpc/nochain?key=${key}`), [
      400,
      "unknown_chain",
      "invalid_params_error",
    ]);
    assert.deepEqual(await typeOf(`/rpc/k/${key}/round-robin/nochain`), [
      400,
      "unknown_chain",
      "invalid_params_error",
    ]);
    assert.deepEqual(await typeOf(`/rpc/ethereum?key=${key}`, "{"), [
      400,
      "parse_error",
      "parse_error",
    ]);
    assert.deepEqual(await typeOf(`/rpc/ethereum?key=${key}`, { ...CALL, method: "eth_sign" }), [
      200,
      "method_blocked",
      "method_error",
    ]);
    const scoped = await fixture.account();
    await fixture.manage(scoped.token, "PATCH", `/api/v1/keys/${scoped.id}`, {
      allowed_profiles: ["public"],
      default_profile: "public",
    });
    assert.deepEqual(await typeOf(`/rpc/profile/premium/ethereum?key=${scoped.key}`), [
      403,
      "forbidden",
      "permission_error",
    ]);
    const batch = await fixture.service.post(`/rpc/ethereum?key=${key}`, [
      CALL,
      7,
      { ...CALL, method: "eth_sign" },
    ]);
    assert.deepEqual(
      batch.json.map(
        (it: { error?: { data: { error_type: string } } }) => it.error?.data.error_type ?? null,
      ),
      [null, "invalid_request_error", "method_error"],
    );
    fixture.premium.script((_, reply) =>
      reply.error('{"code":3,"message":"execution reverted","data":"0x08c379a0"}'),
    );
    const reverted = await fixture.service.post(`/rpc/ethereum?key=${key}`, CALL);
    assert.deepEqual(reverted.json.error, {
      code: 3,
      message: "execution reverted",
      data: "0x08c379a0",
    });
  },
);

test("who is served elsewhere or has little left is told so in the words of version 2", async (t) => {
  const fixture = await hostedFixture(t, { starting_grant_cu: 1_999 });
  const { key } = await fixture.account();
  const free = await fixture.service.post(`/rpc/ethereum?key=${key}`, CALL);
  assert.deepEqual([free.status, free.headers.get("x-svc-fallback")], [200, "free"]);
  assert.deepEqual(
    [free.headers.get("x-svc-profile"), free.headers.get("x-svc-downgraded")],
    ["public", "true"],
  );
  assert.equal(free.headers.get("x-svc-rate-limit-limit"), "60");
  const poor = await fixture.service.post(
    `/rpc/ethereum?key=${await fixture.anonymousKey()}`,
    CALL,
  );
  assert.deepEqual(
    [poor.headers.get("x-svc-downgraded"), poor.headers.get("x-svc-balance-warning")],
    ["false", "low"],
  );
});

test("a caller that is too fast is told so in both manners", async (t) => {
  const fixture = await hostedFixture(t, { buckets: { managed: { per_second: 1, burst: 2 } } });
  const key = await fixture.anonymousKey();
  // Many at once: the bucket fills by real time, but never with more than two.
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => fixture.service.post(`/rpc/ethereum?key=${key}`, CALL)),
  );
  const limited = answers.find((it) => it.status === 429);
  assert.deepEqual(
    [limited?.status, limited?.json.error.data.error_type],
    [429, "rate_limit_error"],
  );
  assert.deepEqual(
    [
      limited?.headers.get("x-svc-rate-limit-limit"),
      limited?.headers.get("x-svc-rate-limit-remaining"),
    ],
    ["2", "0"],
  );
  assert.deepEqual(
    [limited?.headers.get("x-svc-profile"), limited?.headers.get("x-svc-downgraded")],
    ["premium", "false"],
  );
});

test("answers that are streamed, and those to callers without a key, say the same of old forms", async (t) => {
  const fixture = await hostedFixture(t, { keyless: true });
  fixture.public.script((_, reply) => reply.result(`"0x${"ab".repeat(200_000)}"`));
  const { status, headers, text } = await fixture.service.post("/profile/public/ethereum", CALL);
  assert.deepEqual(
    [
      status,
      headers.has("deprecation"),
      headers.get("x-svc-profile"),
      headers.get("x-svc-rate-limit-limit"),
    ],
    [200, true, "public", null],
  );
  assert.ok(text.length > 400_000);
});

test(
  "a socket that is opened by an old form hears of it at the handshake, counts once, and its " +
    "refusals carry error_type",
  async (t) => {
    const fixture = await hostedFixture(t);
    const key = await fixture.anonymousKey();
    const ws = new WebSocket(
      `ws://127.0.0.1:${fixture.service.port}/ws/rpc/round-robin/ethereum?key=${key}`,
    );
    t.after(() => ws.terminate());
    const opened = once(ws, "open");
    const [upgrade] = await once(ws, "upgrade");
    assert.ok(upgrade.headers.deprecation && upgrade.headers.sunset && upgrade.headers.link);
    await opened;
    const answers: string[] = [];
    for (const body of [
      JSON.stringify(CALL),
      JSON.stringify({ ...CALL, method: "eth_sign" }),
      "{",
      "[]",
    ]) {
      ws.send(body);
      const [data] = await once(ws, "message");
      answers.push(JSON.parse(String(data)).error?.data.error_type ?? "-");
    }
    assert.deepEqual(answers, ["-", "method_error", "parse_error", "invalid_request_error"]);
    const { "round-robin": first, "key-query": second } = await counts(fixture);
    assert.deepEqual([first, second], [1, 1]);
  },
);

test("switched off, every old form answers 410 and names the form to use; current forms are served", async (t) => {
  const fixture = await hostedFixture(t, { old_forms: "off" });
  const key = await fixture.anonymousKey();
  const named: Readonly<Record<string, RegExp>> = {
    "round-robin": /use \/rpc\/load-balanced\/\{chain\}$/,
    "chain-provider": /use \/rpc\/provider\/\{provider\}\/\{chain\}/,
    "profile-prefix": /use \/rpc\/profile\/\{profile\}/,
    "key-query": /use the key in the path, \/rpc\/k\/\{key\}/,
    "version-header": /without X-Svc-Version$/,
  };
  for (const form of FORMS) {
    const { status, text, json } = await send(fixture, key, form);
    const { code, form: name, next_action, retryable } = json.error.data;
    assert.deepEqual([status, code, name, retryable], [410, "gone", form.name, false]);
    assert.match(next_action, named[form.name] ?? /^$/);
    assert.ok(!text.includes(key));
  }
  for (const form of CURRENT) assert.equal((await send(fixture, key, form)).status, 200);
  assert.equal(
    fixture.premium.asked.length + fixture.public.asked.length,
    CURRENT.length,
    "what is gone reaches no provider",
  );
  assert.deepEqual(new Set(Object.values(await counts(fixture))), new Set([0]));
  const ws = new WebSocket(`ws://127.0.0.1:${fixture.service.port}/ws/rpc/ethereum?key=${key}`);
  ws.on("error", () => undefined);
  const [, response] = await once(ws, "unexpected-response");
  assert.equal(response.statusCode, 410);
  ws.terminate();
});
