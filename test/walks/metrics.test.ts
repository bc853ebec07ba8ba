// The Prometheus page: every line obeys the text format, every metric is declared once, and no
// caller can make it grow.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { METRICS } from "../../src/observe/metrics.ts";
import { configText, startService } from "../fakes/service.ts";
import { serviceFixture } from "../fakes/service-fixture.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const TOKEN = "an-operator-token-of-a-length";

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const SAMPLE =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)$/;

/** Labels of each metric by its table; a bucket of a histogram has its bound besides. */
const LABELS = new Map(METRICS.map(({ name, labels }) => [name, labels]));

/**
 * A strict reader of the text format 0.0.4; throws on anything it does not allow, and on labels
 * that the table of metrics does not have.
 */
function readExposition(text: string): readonly Sample[] {
  assert.ok(text.endsWith("\n"), "the last line has an end");
  const types = new Map<string, string>();
  const series = new Set<string>();
  const samples: Sample[] = [];
  let current = "";
  for (const line of text.slice(0, -1).split("\n")) {
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (comment !== null) {
      const [, kind, name = "", rest = ""] = comment;
      if (kind === "HELP") continue;
      assert.ok(!types.has(name), `${name} is declared twice`);
      assert.match(rest, /^(counter|gauge|histogram)$/);
      types.set(name, rest);
      current = name;
      continue;
    }
    const [, name = "", labelText = "", value = ""] =
      SAMPLE.exec(line) ?? assert.fail(`not a line of the format: ${line}`);
    const family =
      types.get(current) === "histogram" ? name.replace(/_(bucket|sum|count)$/, "") : name;
    assert.equal(family, current, `${name} stands under ${current}`);
    assert.match(value, /^(-?\d+(\.\d+)?(e[+-]?\d+)?|[+-]Inf|NaN)$/, line);
    if (types.get(current) === "counter")
      assert.ok(name.endsWith("_total") && Number(value) >= 0, line);
    assert.ok(!series.has(`${name}{${labelText}}`), `twice: ${line}`);
    series.add(`${name}{${labelText}}`);
    const labels = Object.fromEntries(
      [...labelText.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)].map(
        ([, key = "", it = ""]) => [key, it],
      ),
    );
    assert.deepEqual(
      Object.keys(labels).filter((label) => label !== "le" || !name.endsWith("_bucket")),
      LABELS.get(family),
      line,
    );
    samples.push({ name, labels, value: Number(value) });
  }
  return samples;
}

test("every line of /metrics obeys the text format and the counts are those of the traffic", async (t) => {
  const { call, service, upstreams } = await serviceFixture(t, [undefined, undefined]);
  for (let n = 0; n < 10; n++) await call("eth_gasPrice");
  upstreams[0]?.script((_, reply) => reply.error('{"code":3,"message":"execution reverted"}'));
  await call("eth_call", [{}, "latest"]);
  upstreams[0]?.script((_, reply) => reply.body("", 429));
  await call("eth_gasPrice");
  await call("personal_sign");
  await service.post("/rpc/nowhere", { jsonrpc: "2.0", id: 1, method: "eth_gasPrice" });
  const page = await service.get("/metrics");
  assert.match(page.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const samples = readExposition(page.text);
  const value = (name: string, labels: Record<string, string>): number | undefined =>
    samples.find(
      (it) =>
        it.name === name &&
        Object.entries(labels).every(([key, wanted]) => it.labels[key] === wanted),
    )?.value;
  assert.equal(
    value("svc_requests_total", {
      method: "eth_gasPrice",
      outcome: "answered",
      profile: "team",
      chain: "ethereum",
    }),
    11,
  );
  assert.equal(value("svc_requests_total", { method: "eth_call", outcome: "caller_error" }), 1);
  assert.equal(value("svc_requests_total", { method: "blocked", outcome: "refused" }), 1);
  assert.equal(value("svc_calls_total", { outcome: "refused", cause: "unknown_chain" }), 1);
  assert.equal(value("svc_upstream_attempts_total", { provider: "a", outcome: "delivered" }), 11);
  assert.equal(value("svc_upstream_attempts_total", { provider: "b", outcome: "delivered" }), 1);
  assert.equal(value("svc_request_duration_seconds_count", { profile: "team" }), 12);
  assert.equal(value("svc_request_duration_seconds_bucket", { le: "+Inf" }), 12);
  assert.ok((value("svc_rate_limited_seconds", { provider: "a" }) ?? 0) > 20);
  assert.equal(
    value("svc_upstream_latency_seconds_count", { provider: "a" }),
    11,
    "answers that delivered",
  );
  assert.equal(value("svc_upstream_latency_seconds_count", { provider: "b" }), 1);
  for (const labels of [{ provider: "a" }, { provider: "b" }])
    checkHistogram(samples, "svc_upstream_latency_seconds", labels);
  checkHistogram(samples, "svc_request_duration_seconds", { profile: "team" });
});

function checkHistogram(
  samples: readonly Sample[],
  name: string,
  labels: Readonly<Record<string, string>>,
): void {
  const of = samples.filter((it) =>
    Object.entries(labels).every(([key, wanted]) => it.labels[key] === wanted),
  );
  const buckets = of.filter((it) => it.name === `${name}_bucket`);
  assert.ok(buckets.length > 2);
  for (const [n, { value }] of buckets.entries())
    assert.ok(value >= (buckets[n - 1]?.value ?? 0), "buckets only grow");
  assert.equal(buckets.at(-1)?.value, of.find((it) => it.name === `${name}_count`)?.value);
}

test("where the status is not public, /metrics is for the operator token and for this machine", async (t) => {
  const upstream = await scriptedUpstream();
  t.after(() => upstream.close());
  const statuses = async (isPublic: boolean, server: object): Promise<readonly number[]> => {
    const extra = {
      server: { port: 0, operator_token: TOKEN, ...server },
      console: { public: isPublic },
    };
    const service = await startService(configText([{ id: "vendor", url: upstream.url }], extra));
    t.after(() => service.close());
    const proxied = { "x-forwarded-for": "203.0.113.1" };
    return Promise.all(
      [{}, proxied, { ...proxied, authorization: `Bearer ${TOKEN}` }].map(async (headers) => {
        const answer = await fetch(`${service.url}/metrics`, { headers });
        const text = await answer.text();
        assert.equal(text.includes("svc_"), answer.status === 200);
        return answer.status;
      }),
    );
  };
  assert.deepEqual(await statuses(false, {}), [200, 401, 200]);
  const apart = { metrics_listen: "127.0.0.1:0" };
  assert.deepEqual(await statuses(false, apart), [401, 401, 200], "a proxy here may be silent");
  assert.deepEqual(await statuses(true, apart), [200, 200, 200]);
});

const WITHOUT_PROMTOOL =
  spawnSync("promtool", ["--version"]).error === undefined
    ? false
    : "promtool is not installed (Debian: prometheus)";

test("promtool has nothing to say against /metrics", { skip: WITHOUT_PROMTOOL }, async (t) => {
  const { call, service } = await serviceFixture(t, [undefined, undefined]);
  for (let n = 0; n < 3; n++) await call("eth_gasPrice");
  const { text } = await service.get("/metrics");
  const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], {
    input: text,
    encoding: "utf8",
  });
  assert.deepEqual([status, stdout, stderr], [0, "", ""]);
});

test("names, profiles and chains that need escapes are escaped", async (t) => {
  const { call, service } = await serviceFixture(t, [undefined], { slug: "my-team_2.0" });
  await call("eth_gasPrice");
  const labels = readExposition((await service.get("/metrics")).text).map(
    (it) => it.labels["profile"],
  );
  assert.ok(labels.includes("my-team_2.0"));
});

test("ten thousand made-up methods, chains, profiles and pins add no series", async (t) => {
  const { service } = await serviceFixture(t, [undefined]);
  const warm = ["vendor_first", "eth_gasPrice"].map((method) => ({
    jsonrpc: "2.0",
    id: 1,
    method,
  }));
  await service.post("/rpc/1", warm);
  for (const path of ["/rpc/nowhere", "/rpc/profile/nobody/1", "/rpc/1/nobody"])
    await service.post(path, warm[0]);
  // What is judged every ten seconds comes with time, whatever is called.
  const isJudged = (name: string): boolean => /^svc_(provider_state|incidents_total)/.test(name);
  const seriesOf = async (): Promise<readonly string[]> =>
    readExposition((await service.get("/metrics")).text).flatMap(({ name, labels }) =>
      isJudged(name) ? [] : [`${name} ${JSON.stringify(labels)}`],
    );
  const before = await seriesOf();
  for (let round = 0; round < 200; round++) {
    const batch = Array.from({ length: 50 }, (_, n) => ({
      jsonrpc: "2.0",
      id: n,
      method: `vendor_${round}_${n}"\n\\{}`,
    }));
    await service.post("/rpc/1", batch);
    if (round % 10 === 0)
      for (const path of [`/rpc/x${round}`, `/rpc/profile/x${round}/1`, `/rpc/1/x${round}`])
        await service.post(path, batch[0]);
  }
  assert.deepEqual(await seriesOf(), before);
  const { json } = await service.get("/api/metrics/1");
  assert.deepEqual(
    json.profiles[0].providers[0].transports[0].methods
      .map((it: { method: string }) => it.method)
      .sort(),
    ["eth_gasPrice", "unknown"],
  );
});
