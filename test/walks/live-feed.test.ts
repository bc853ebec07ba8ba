// The operator watches a running service: real calls over two real providers of which one fails,
// with the token and without, on a router without accounts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LEAST_ATTEMPT_MS } from "../../src/core/routing/hedge.ts";
import { realRuntime } from "../../src/runtime.ts";
import { configText, type Service, startService } from "../fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";
import { type EventReader, watchEvents } from "./feed-reader.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
type Json = any;

const TOKEN = "operator-token-of-the-test-0123456789";
const CALL = {
  jsonrpc: "2.0",
  id: 1,
  method: "eth_getBalance",
  params: [`0x${"ab".repeat(20)}`, "0x1"],
};
const EVENTS = "/api/v1/operator/events";
const HASH = "cd".repeat(32);
const AS_OPERATOR = { authorization: `Bearer ${TOKEN}` };

let service: Service;
let upstreams: readonly ScriptedUpstream[];

before(async () => {
  const good = await scriptedUpstream();
  const bad = await scriptedUpstream((asked, reply) => {
    if (asked.method === "eth_getBalance")
      reply.error(`{"code":-32055,"message":"the flux of ${bad.url} is odd for 0x${HASH}"}`);
    else reply.result('"0x1"');
  });
  upstreams = [good, bad];
  const providers = [
    { id: "bad", url: bad.url, priority: 1 },
    { id: "good", url: good.url, priority: 2 },
  ];
  service = await startService(
    configText(providers, { server: { port: 0, operator_token: TOKEN } }),
  );
  await service.probed();
});
after(async () => {
  await service.close();
  for (const upstream of upstreams) await upstream.close();
});

/** Reads the feed until it ends or is left. */
function watch(
  query: string,
  headers: Readonly<Record<string, string>> = AS_OPERATOR,
): Promise<EventReader> {
  return watchEvents(`${service.url}${EVENTS}${query}`, headers);
}

const operatorGet = async (path: string): Promise<Json> => {
  const response = await fetch(service.url + path, { headers: AS_OPERATOR });
  assert.equal(response.status, 200, path);
  return response.json();
};

test("calls are found by the id of their request; those of a batch by its id", async () => {
  const item = { jsonrpc: "2.0", method: "eth_chainId" };
  const answers = [
    await service.post("/rpc/priority/ethereum", CALL),
    await service.post("/rpc/priority/ethereum", [
      { ...item, id: 1 },
      { ...item, id: 2 },
    ]),
  ];
  const ids = answers.map(({ headers }) => String(headers.get("x-svc-request-id")));
  const found = async (id: string): Promise<Json> =>
    (await operatorGet(`/api/v1/operator/decisions?id=${id}`)).decisions.map(
      (call: Json) => call.request_id,
    );
  assert.deepEqual(await found(ids[0] ?? ""), [ids[0]]);
  assert.deepEqual((await found(ids[1] ?? "")).sort(), [`${ids[1]}-0`, `${ids[1]}-1`]);
  assert.deepEqual(await found("req-0"), []);
});

test("a call is told of as it ends, and opens to its decision and to what would have been", async () => {
  const feed = await watch("?method=eth_getBalance");
  assert.equal(feed.status, 200);
  const hello = await feed.next("hello");
  assert.deepEqual([hello.worker, hello.workers, hello.limit_per_s], ["1", 1, 200]);
  const answer = await service.post("/rpc/priority/ethereum", CALL);
  assert.equal(answer.status, 200);
  const call = await feed.next("call");
  assert.equal(call.request_id, answer.headers.get("x-svc-request-id"));
  assert.deepEqual(
    [call.profile, call.chain, call.method, call.strategy, call.outcome, call.provider],
    ["team", "ethereum", "eth_getBalance", "priority", "answered", "good"],
  );
  assert.deepEqual([call.attempts, call.failovers, call.error.provider], [2, 1, "bad"]);
  const decision = await operatorGet(`/api/v1/operator/decisions/${call.id}`);
  assert.deepEqual(decision.order, ["bad", "good"]);
  assert.deepEqual(
    decision.candidates.map((each: Json) => [each.provider, each.tier, each.decided_by]),
    [
      ["bad", 1, "priority 1"],
      ["good", 1, "priority 2"],
    ],
  );
  assert.deepEqual(
    decision.timeline.map((each: Json) => [each.provider, each.outcome, each.code]),
    [
      ["bad", "error", -32_055],
      ["good", "success", null],
    ],
  );
  const [failed, answered] = decision.timeline;
  // Three numbers, each rounded to a hundredth.
  const slackMs = 0.016;
  // An attempt that takes 2 s is overdue, and the next one begins beside it: on a machine that
  // stands still for so long, this one does.
  const turnMs = Math.min(failed.latency_ms, LEAST_ATTEMPT_MS);
  assert.ok(answered.started_ms >= failed.started_ms + turnMs - slackMs);
  assert.ok(decision.total_ms >= answered.started_ms + answered.latency_ms - slackMs);
  const path = `/api/v1/operator/decisions/${call.id}/what-if`;
  const same = await operatorGet(path);
  assert.deepEqual([same.same_first, same.random, same.strategy], [true, false, "priority"]);
  const without = await operatorGet(`${path}?without=bad`);
  assert.deepEqual(
    without.candidates.map((each: Json) => [each.provider, each.first_share]),
    [["good", 1]],
  );
  assert.equal(without.same_first, false);
  const balanced = await operatorGet(`${path}?strategy=load-balanced`);
  assert.equal(balanced.random, true);
  const shares = balanced.candidates.reduce((sum: number, each: Json) => sum + each.first_share, 0);
  assert.ok(Math.abs(shares - 1) < 1e-9);
  feed.leave();
});

test("nothing that a caller sent or was told is shown, and no address of a provider", async () => {
  await service.post("/rpc/priority/ethereum", CALL);
  const listed = await operatorGet("/api/v1/operator/decisions?failovers=true");
  assert.ok(listed.decisions.length > 0);
  const errors = await operatorGet("/api/v1/operator/errors");
  const [shape] = errors.hidden;
  const { providers, category, code, unknown } = shape;
  assert.deepEqual(
    [providers[0].provider, category, code, unknown],
    ["bad", "unknown", -32_055, true],
  );
  assert.match(shape.rule.yaml, /^error_rules:\n {2}- code: -32055\n {4}message_contains: \["/);
  const history = await operatorGet("/api/v1/history?profile=team&chain=ethereum");
  for (const shown of [listed, errors, history]) {
    const text = JSON.stringify(shown);
    assert.doesNotMatch(text, /abab|cdcd|127\.0\.0\.1|params|Bearer/);
  }
});

test("a reader who comes back goes on where it was; an unknown id is said to be one", async () => {
  const first = await watch("");
  await first.next("hello");
  await service.post("/rpc/priority/ethereum", CALL);
  await first.next("call");
  const seen = first.events.findLast(({ id }) => id !== null);
  assert.ok(seen?.id != null);
  first.leave();
  const answer = await service.post("/rpc/priority/ethereum", CALL);
  const again = await watch("", { ...AS_OPERATOR, "last-event-id": seen.id });
  const requestId = answer.headers.get("x-svc-request-id");
  await again.next("call", (call) => call.request_id === requestId);
  assert.ok(!again.events.some(({ type }) => type === "resync"));
  again.leave();
  const stranger = await watch("?last_event_id=7.other.12");
  assert.equal((await stranger.next("resync")).reason, "unknown_id");
  stranger.leave();
});

test("a stream ends with its session: when it is signed out, and after twelve hours", async (t) => {
  let aheadMs = 0;
  const own = await startService(
    configText([{ id: "a", url: upstreams[0]?.url }], {
      server: { port: 0, operator_token: TOKEN },
    }),
    { ...realRuntime, wallMs: () => realRuntime.wallMs() + aheadMs },
  );
  t.after(() => own.close());
  const session = `${own.url}/api/v1/console/session`;
  const page = { "sec-fetch-site": "same-origin", "content-type": "application/json" };
  const signedIn = async (): Promise<typeof page & { readonly cookie: string }> => {
    const body = JSON.stringify({ token: TOKEN });
    const answer = await fetch(session, { method: "POST", headers: page, body });
    assert.equal(answer.status, 201);
    return { ...page, cookie: answer.headers.get("set-cookie")?.split(";")[0] ?? "" };
  };
  const watchOwn = (headers: Readonly<Record<string, string>>): Promise<EventReader> =>
    watchEvents(own.url + EVENTS, headers);
  const [leaving, expiring] = [await signedIn(), await signedIn()];
  const elsewhere = { cookie: leaving.cookie };
  assert.equal((await watchOwn(elsewhere)).status, 403, "not a page of this service");
  const [first, second] = [await watchOwn(leaving), await watchOwn(expiring)];
  const byToken = await watchOwn(AS_OPERATOR);
  for (const reader of [first, second, byToken]) await reader.next("hello");
  await fetch(session, { method: "DELETE", headers: leaving });
  assert.equal((await first.next("end")).reason, "session_ended");
  assert.ok(!second.events.some(({ type }) => type === "end"));
  aheadMs = 12 * 3_600_000;
  assert.equal((await second.next("end")).reason, "session_ended");
  assert.equal((await watchOwn(expiring)).status, 401);
  assert.ok(!byToken.events.some(({ type }) => type === "end"), "the token itself goes on");
  byToken.leave();
});

test("only the operator watches; others read history, and a reload and the end are told", async () => {
  assert.equal((await watch("", {})).status, 401);
  assert.equal((await watch("", { authorization: "Bearer wrong" })).status, 401);
  const open = await service.get("/api/v1/history?profile=team&chain=ethereum&provider=bad");
  assert.equal(open.status, 200);
  assert.deepEqual(
    open.json.series.map((each: Json) => each.kind),
    ["chain", "provider"],
    "classes of methods are for the operator",
  );
  const [chain, provider] = open.json.series;
  const sum = (column: readonly (number | null)[]) =>
    column.reduce<number>((total, each) => total + (each ?? 0), 0);
  assert.ok(sum(chain.calls) >= 4);
  assert.ok(sum(provider.errors.unknown) > 0, "the failed attempts are counted by their group");
  assert.ok(open.json.kept.bytes > 0 && open.json.kept.bytes <= open.json.kept.max_bytes);
  const feed = await watch("");
  await feed.next("hello");
  assert.equal(service.app.reload(service.config), null);
  assert.equal((await feed.next("config")).what, "reloaded");
  const { changes } = await operatorGet("/api/v1/operator/changes?limit=1");
  assert.deepEqual([changes[0].type, changes[0].data.what], ["config", "reloaded"]);
  await service.close();
  assert.equal((await feed.next("end")).reason, "draining");
});
