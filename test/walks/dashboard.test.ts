// The dashboard as served: locked down, self-contained, and reading no field that the endpoints do not have. How it looks is for eyes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { configText, type Service, startService } from "../fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

/** Fields without an underscore that the page reads; those with one are found in its script. */
const WORDS =
  "chains name ready reasons version cluster enabled status profiles profile providers id transports transport calls share cordoned p50 p95 p99 probe methods method age_ms";

let upstream: ScriptedUpstream;
let service: Service;
let page = "";

before(async () => {
  upstream = await scriptedUpstream();
  service = await startService(configText([{ id: "a", url: upstream.url }]));
  await service.probed();
  page = (await service.get("/dashboard")).text;
});

after(async () => {
  await service.close();
  await upstream.close();
});

test("the page is HTML that may load nothing, and talk to its own instance only", async () => {
  const { status, headers } = await service.get("/dashboard");
  assert.equal(status, 200);
  assert.match(headers.get("content-type") ?? "", /^text\/html; charset=utf-8$/);
  const policy = new Set((headers.get("content-security-policy") ?? "").split(/;\s*/));
  for (const rule of ["default-src 'none'", "connect-src 'self'"]) assert.ok(policy.has(rule), rule);
});

test("the page is self-contained, and the instance's root leads to it", async () => {
  assert.doesNotMatch(page, /\b(src|href)\s*=\s*["']?(https?:)?\/\/|@import|url\(/i);
  const root = await fetch(service.url, { redirect: "manual" });
  assert.equal(root.headers.get("location"), "/dashboard");
});

test("a string of a provider can never become markup", () => {
  assert.doesNotMatch(page, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|setHTML|srcdoc|\beval\b|new Function/);
});

test("every field that the page reads exists in what the endpoints answer", async () => {
  const { status } = await service.post("/rpc/profile/team/ethereum", { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] });
  assert.equal(status, 200);
  const paths = ["/api/chains", "/api/ready", "/api/health", "/api/metrics/ethereum"];
  const known = new Set((await Promise.all(paths.map((path) => service.get(path)))).flatMap(({ json }) => [...fieldsOf(json)]));
  const read = fieldsRead(script());
  for (const field of ["circuit_breaker_state", "rate_limited_for_ms", "uptime_seconds"]) assert.ok(read.has(field), `the test finds ${field} in the script`);
  const missing = [...read, ...WORDS.split(" ")].filter((field) => !known.has(field));
  assert.deepEqual(missing, []);
});

test("every field listed above is still read", () => {
  const unread = WORDS.split(" ").filter((field) => !new RegExp(`[.{,]\\s*${field}\\b`).test(script()));
  assert.deepEqual(unread, []);
});

function script(): string {
  const text = /<script type="module">([\s\S]*)<\/script>/.exec(page)?.[1] ?? "";
  assert.notEqual(text, "");
  return text;
}

/** Names with an underscore that are read as a property or taken out of one. */
function fieldsRead(text: string): Set<string> {
  return new Set([...text.matchAll(/[.{,]\s*([a-z]+(?:_[a-z]+)+)\b(?!\s*:)/g)].flatMap(([, name]) => name ?? []));
}

function* fieldsOf(value: unknown): Generator<string> {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value)) yield key;
    yield* fieldsOf(inner);
  }
}
