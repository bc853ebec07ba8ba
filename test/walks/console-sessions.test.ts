// Sessions of the console at a plain router: what the cookie opens, and what it never opens.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newSignInLink } from "../../src/app/operators/operator-console.ts";
import { realRuntime } from "../../src/runtime.ts";
import { configText, type Service, startService } from "../fakes/service.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const TOKEN = "operator-of-a-plain-router-0123456789";
const PAGE = { "sec-fetch-site": "same-origin", "content-type": "application/json" };

const signIn = (service: Service, token: string): Promise<Response> =>
  fetch(`${service.url}/api/v1/console/session`, {
    method: "POST",
    headers: PAGE,
    body: JSON.stringify({ token }),
  });
const cookieOf = (response: Response): string =>
  (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";

test("the operator of a plain router signs in; the cookie opens the status, and no metrics or calls", async (t) => {
  const upstream = await scriptedUpstream();
  t.after(() => upstream.close());
  const extra = { server: { port: 0, operator_token: TOKEN }, console: { public: false } };
  const text = configText([{ id: "vendor", url: upstream.url }], extra, {}, "public");
  const { secret, link } = newSignInLink(realRuntime);
  const service = await startService(text, realRuntime, (config) => ({
    ...config,
    server: { ...config.server, signInLink: link },
  }));
  t.after(() => service.close());
  const read = async (path: string, headers: Record<string, string>) =>
    JSON.parse(await (await fetch(service.url + path, { headers })).text());

  const closed = await service.get("/api/metrics/ethereum");
  assert.equal(closed.status, 401);
  assert.equal((await signIn(service, "svc_mt_no-accounts-here")).status, 401);
  const signedIn = await signIn(service, TOKEN);
  assert.equal(signedIn.status, 201);
  assert.equal(signedIn.headers.get("access-control-allow-origin"), "*", "no cookie came with it");
  const headers = { cookie: cookieOf(signedIn) };
  const document = await read("/api/metrics/ethereum", headers);
  assert.equal(document.profiles[0].providers[0].id, "vendor", "the real id");
  const session = await fetch(`${service.url}/api/v1/console/session`, { headers });
  assert.equal(session.headers.get("access-control-allow-origin"), null);
  const { role, instance } = JSON.parse(await session.text());
  assert.deepEqual([role, instance.hosted, instance.public], ["operator", false, false]);

  const proxied = { ...headers, "x-forwarded-for": "203.0.113.1" };
  const metrics = await fetch(`${service.url}/metrics`, { headers: proxied });
  assert.equal(metrics.status, 401, "the cookie does not open the metrics");
  const anyone = await read("/api/metrics/ethereum", { cookie: "svc-session=svc_cs_forged" });
  assert.equal(anyone.error.data.code, "unauthorized");

  const linked = await signIn(service, secret);
  assert.equal(linked.status, 201);
  assert.equal((await signIn(service, secret)).status, 401, "a link works once");
  assert.doesNotMatch(service.log(), /svc_cs_|svc_si_/);
});

test("an account that is signed in reads the history that a status page shows, where nobody else may", async (t) => {
  const upstream = await scriptedUpstream();
  t.after(() => upstream.close());
  const profile = { chains: { ethereum: { providers: [{ id: "vendor", url: upstream.url }] } } };
  const text = configText([], {
    console: { public: false },
    hosted: { enabled: true },
    profiles: { premium: profile, public: profile },
  });
  const service = await startService(text);
  t.after(() => service.close());
  const made = await service.post("/api/v1/keys", { name: "page" });
  assert.equal(made.status, 201, made.text);
  const call = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
  assert.equal((await service.post(`/rpc/k/${made.json.key}/1`, call)).status, 200);
  const path = "/api/v1/history?profile=premium&chain=ethereum";
  const read = (headers: Record<string, string>): Promise<Response> =>
    fetch(service.url + path, { headers });
  assert.equal((await read({})).status, 401);
  const bearer = { authorization: `Bearer ${made.json.management_token}` };
  assert.equal((await read(bearer)).status, 401, "the API as such is for its operator");
  const headers = { cookie: cookieOf(await signIn(service, made.json.management_token)) };
  const history = await read(headers);
  assert.equal(history.status, 200);
  const shown = await history.text();
  assert.match(shown, /"provider":/);
  assert.doesNotMatch(shown, /vendor/, "by alias");
  assert.equal((await fetch(`${service.url}/api/v1/operator/streams`, { headers })).status, 401);
});
