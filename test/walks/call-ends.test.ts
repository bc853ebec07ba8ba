// How calls end, told alike everywhere: a known mix of calls over real sockets, of which /metrics,
// /api/v1/history, the live feed and the list of errors give the same numbers, to the last call.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { type ClientRequest, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { outcomeShare, shareOfEnds, total } from "../../console/health/series.ts";
import { realRuntime } from "../../src/runtime.ts";
import { manageAt } from "../fakes/hosted-fixture.ts";
import { type Answer, PATIENT, type Service, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import {
  isFinalityProbe,
  type Replier,
  type Script,
  type ScriptedUpstream,
  scriptedUpstream,
} from "../fakes/upstream.ts";
import { type EventReader, watchEvents } from "./feed-reader.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into documents of any shape
type Json = any;

const TOKEN = "operator-of-the-walk-of-ends-0123456789";
const AS_OPERATOR = { authorization: `Bearer ${TOKEN}` };
const TEAM = "/rpc/profile/team/priority/ethereum";
const HASHES = `"hash":"0x${"a".repeat(64)}","parentHash":"0x${"b".repeat(64)}"`;
const OLD = [`0x${"1".repeat(40)}`, "0x10"];
const MAX_BODY_BYTES = 20_000;
/** Beyond what is held whole: it is passed on while it arrives. */
const LONG = `"0x${"0".repeat(600_000)}`;

/** What the providers do, by the method that is asked for. */
const BY_METHOD: Readonly<Record<string, (reply: Replier) => void>> = {
  eth_chainId: (reply) => reply.result('"0x1"'),
  eth_blockNumber: (reply) => reply.result('"0x64"'),
  eth_call: (reply) => reply.error('{"code":3,"message":"execution reverted","data":"0x08c379a0"}'),
  eth_getStorageAt: (reply) => reply.error('{"code":-32602,"message":"invalid argument 0: hex"}'),
  eth_getCode: (reply) => reply.body("", 500),
};

/** Every call that was made, by how it ended. */
class Mix {
  readonly ends = new Map<string, number>();
  notifications = 0;
  hidden = 0;

  add(name: string, calls = 1): void {
    this.ends.set(name, (this.ends.get(name) ?? 0) + calls);
  }
}

const mix = new Mix();
const open: ScriptedUpstream[] = [];
/** Requests that a provider holds. */
const held: Replier[] = [];
let service: Service;
let feed: EventReader;
let dataDir: string;

/** The first provider fails where the second one helps. */
function script(isFirst: boolean): Script {
  return (asked, reply) => {
    if (isFinalityProbe(asked)) return reply.result(`{"number":"0x5a",${HASHES}}`);
    const { method } = asked;
    const act = BY_METHOD[method];
    if (act !== undefined) return act(reply);
    switch (method) {
      case "eth_getTransactionCount":
        return isFirst ? reply.body("", 503) : reply.result('"0x1"');
      case "eth_estimateGas":
        if (isFirst) return reply.body("<html>", 502);
        return reply.error('{"code":3,"message":"execution reverted"}');
      case "debug_traceCall":
        return void held.push(reply);
      case "debug_traceTransaction":
        return reply.result(`${LONG}"`);
      case "debug_traceBlockByHash": {
        const { id } = asked;
        const begun = reply.begin(`{"jsonrpc":"2.0","id":${id},"result":${LONG}`);
        held.push({ ...reply, close: () => begun.reset() });
        return;
      }
      default:
        return reply.result('"0x7"');
    }
  };
}

before(async () => {
  open.push(await scriptedUpstream(script(true)), await scriptedUpstream(script(false)));
  for (const upstream of open) upstream.probesSay(null);
  const [first, second] = open;
  dataDir = mkdtempSync(join(tmpdir(), "svc-ends-"));
  const providers = [
    { id: "a", url: first?.url, priority: 1 },
    { id: "b", url: second?.url, priority: 2 },
  ];
  const profile = (shown: typeof providers) => ({ chains: { ethereum: { providers: shown } } });
  const chain = { chain_id: 1, name: "Ethereum", aliases: ["mainnet"], block_time_ms: 12_000 };
  const file = {
    server: { port: 0 },
    data_dir: dataDir,
    log_level: "debug",
    chains: { ethereum: chain },
    profiles: {
      premium: profile(providers.slice(1)),
      public: profile(providers.slice(1)),
      team: profile(providers),
    },
    hosted: {
      enabled: true,
      keyless: true,
      operator_token: TOKEN,
      starting_grant_cu: 5,
      buckets: { public: { per_second: 1, burst: 1 } },
    },
    limits: { max_body_bytes: MAX_BODY_BYTES },
    deadlines: PATIENT,
    cache: {},
  };
  service = await startService(JSON.stringify(file));
  await service.probed();
  feed = await watchEvents(`${service.url}/api/v1/operator/events`, AS_OPERATOR);
  await feed.next("hello");
});
after(async () => {
  feed.leave();
  await service.close();
  for (const upstream of open) await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const call = (id: number | null, method: string, params: readonly unknown[] = []) => ({
  jsonrpc: "2.0",
  ...(id === null ? {} : { id }),
  method,
  params,
});

const post = (method: string, params: readonly unknown[] = [], path = TEAM): Promise<Answer> =>
  service.post(path, call(1, method, params));

const codeOf = ({ json }: Answer): unknown => json.error.data?.code ?? json.error.code;

/** Sends a request that its caller may leave. */
function begin(method: string): ClientRequest {
  const headers = { "content-type": "application/json" };
  const sent = request(service.url + TEAM, { method: "POST", headers, agent: false });
  sent.on("error", () => {});
  sent.end(JSON.stringify(call(1, method)));
  return sent;
}

async function takeHeld(): Promise<Replier> {
  return until("a request that a provider holds", () => held.shift());
}

const readMetrics = async () => {
  const response = await fetch(`${service.url}/metrics`, { headers: AS_OPERATOR });
  return response.text();
};

type Counts = Readonly<Record<string, number>>;

const sorted = (counts: Iterable<readonly [string, number]>): Counts =>
  Object.fromEntries([...counts].filter(([, n]) => n > 0).sort(([a], [b]) => (a < b ? -1 : 1)));

function summed(pairs: readonly (readonly [string, number])[]): Counts {
  const sums = new Map<string, number>();
  for (const [name, n] of pairs) sums.set(name, (sums.get(name) ?? 0) + n);
  return sorted(sums);
}

const nameOf = (outcome: string, reason: string | null): string =>
  reason === null || reason === "" ? outcome : `${outcome}.${reason}`;

function samplesIn(text: string, metric: string) {
  return text.split("\n").flatMap((line) => {
    const [, labels = "", value = ""] = new RegExp(`^${metric}\\{(.*)\\} (\\d+)$`).exec(line) ?? [];
    if (value === "") return [];
    const of = Object.fromEntries(
      Array.from(labels.matchAll(/(\w+)="([^"]*)"/g), ([, name = "", it = ""]) => [name, it]),
    );
    return [{ of, value: Number(value) }];
  });
}

function countsInMetrics(text: string, isCounted = (_: Record<string, string>) => true) {
  const total = (metric: string): number =>
    samplesIn(text, metric)
      .filter(({ of }) => isCounted(of))
      .reduce((sum, { value }) => sum + value, 0);
  return {
    ends: summed(
      samplesIn(text, "svc_calls_total")
        .filter(({ of }) => isCounted(of))
        .map(({ of, value }) => [nameOf(of["outcome"] ?? "", of["reason"] ?? ""), value] as const),
    ),
    notifications: total("svc_call_notifications_total"),
    hidden: total("svc_hidden_failures_total"),
  };
}

async function countsInHistory(query = "") {
  const response = await fetch(`${service.url}/api/v1/history${query}`, { headers: AS_OPERATOR });
  const { series }: Json = await response.json();
  const [{ calls, outcomes, reasons, unanswered, hidden_failures }] = series;
  const sum = (column: readonly (number | null)[]): number =>
    column.reduce<number>((total, value) => total + (value ?? 0), 0);
  const sums = (columns: Record<string, readonly (number | null)[]>) =>
    Object.entries(columns).map(([name, column]) => [name, sum(column)] as const);
  const byOutcome = sums(outcomes);
  assert.equal(
    byOutcome.reduce((total, [, n]) => total + n, 0),
    sum(calls),
    "each call has one outcome",
  );
  const byReason = sums(reasons);
  for (const [outcome, n] of byOutcome) {
    const told = byReason.filter(([name]) => name.startsWith(`${outcome}.`));
    const ofReasons = told.reduce((total, [, each]) => total + each, 0);
    if (told.length > 0) assert.equal(ofReasons, n, `the reasons of ${outcome}`);
  }
  const without = byOutcome.filter(([name]) => name === "answered" || name === "cancelled");
  return {
    ends: sorted([...without, ...byReason]),
    notifications: sum(unanswered),
    hidden: sum(hidden_failures),
  };
}

function countsInFeed() {
  const calls = feed.events.filter(({ type }) => type === "call").map(({ data }) => data);
  const counted = calls.filter(({ notification }) => !notification);
  return {
    ends: summed(counted.map(({ outcome, reason }) => [nameOf(outcome, reason), 1] as const)),
    notifications: calls.length - counted.length,
  };
}

/** The errors by shape: what each list adds up to. */
async function countsInErrors() {
  const response = await fetch(`${service.url}/api/v1/operator/errors`, { headers: AS_OPERATOR });
  const { totals, others, seen, hidden }: Json = await response.json();
  const sum = (shapes: Json[]): number => shapes.reduce((total, { count }) => total + count, 0);
  const seenAs = (word: string) => seen.filter(({ outcome }: Json) => outcome === word);
  assert.equal(sum(seenAs("failed")) + others.failed, totals.failed);
  assert.equal(sum(seenAs("caller_error")) + others.caller_error, totals.caller_error);
  assert.equal(sum(hidden) + others.hidden, totals.hidden);
  for (const { methods, others: rest, count } of [...seen, ...hidden])
    assert.ok(sum(methods) + rest.methods <= count, "no method has errors of another one");
  const ends = seen.map(({ outcome, reason, count }: Json) => [nameOf(outcome, reason), count]);
  return { ends: summed(ends), hidden: totals.hidden };
}

const known = () => ({
  ends: sorted(mix.ends),
  notifications: mix.notifications,
  hidden: mix.hidden,
});

/** The numbers are the known ones everywhere, as soon as what is under way has ended. */
async function compareAll(): Promise<void> {
  const wanted = JSON.stringify(known());
  const read = async () => countsInMetrics(await readMetrics());
  await until("the ends of all calls", async () => JSON.stringify(await read()) === wanted, 10_000)
    // The comparison below says what is missing.
    .catch(() => {});
  assert.deepEqual(await read(), known(), "/metrics");
  assert.deepEqual(await countsInHistory(), known(), "/api/v1/history");
  const isError = (name: string) => /^(failed|caller_error)\./.test(name);
  assert.deepEqual(
    await countsInErrors(),
    { ends: sorted([...mix.ends].filter(([name]) => isError(name))), hidden: mix.hidden },
    "the errors",
  );
  const { hidden: _, ...told } = known();
  const isTold = () => JSON.stringify(countsInFeed()) === JSON.stringify(told);
  await until("the events of all calls", isTold, 10_000).catch(() => {});
  assert.deepEqual(countsInFeed(), told, "the live feed");
}

test("answered, from providers, the cache and the service itself; errors that are the caller's own", async () => {
  assert.equal((await post("eth_gasPrice")).json.result, "0x7");
  assert.equal((await post("eth_chainId")).json.result, "0x1");
  mix.add("answered", 2);
  let cache: string | null = null;
  for (let n = 0; n < 200 && cache !== "hit"; n++) {
    cache = (await post("eth_getBalance", OLD)).headers.get("x-svc-cache");
    mix.add("answered");
  }
  assert.equal(cache, "hit");
  assert.equal(codeOf(await post("eth_call", [{}, "latest"])), 3);
  mix.add("caller_error.revert");
  assert.equal(codeOf(await post("eth_getStorageAt", ["x"])), -32_602);
  mix.add("caller_error.params");
  await compareAll();
});

test("failures that failover hides, and one that nothing hides", async () => {
  assert.equal((await post("eth_getTransactionCount", OLD)).json.result, "0x1");
  mix.add("answered");
  assert.equal(codeOf(await post("eth_estimateGas", [{}])), 3);
  mix.add("caller_error.revert");
  mix.hidden += 2;
  assert.equal(codeOf(await post("eth_getCode", OLD)), "unavailable");
  mix.add("failed.unavailable");
  await compareAll();
  const hiding = samplesIn(await readMetrics(), "svc_hidden_failures_total");
  assert.deepEqual(hiding, [
    { of: { profile: "team", chain: "ethereum", provider: "a" }, value: 2 },
  ]);
  const response = await fetch(`${service.url}/api/v1/operator/errors`, { headers: AS_OPERATOR });
  const { seen, hidden }: Json = await response.json();
  assert.deepEqual(
    hidden.map((shape: Json) => [shape.http_status, shape.methods, shape.users]),
    [
      [503, [{ method: "eth_getTransactionCount", count: 1 }], 1],
      [502, [{ method: "eth_estimateGas", count: 1 }], 1],
    ],
  );
  const { category, behind, providers, methods } = seen[0];
  assert.deepEqual([category, behind.http_status], ["unavailable", 500]);
  assert.deepEqual(providers.map(({ provider }: Json) => provider).sort(), ["a", "b"]);
  assert.deepEqual(methods, [{ method: "eth_getCode", count: 1 }]);
});

test("refusals: keys, rates, balances, sizes, chains, methods and what is no request", async (t) => {
  const wrong = await post("eth_gasPrice", [], "/rpc/k/svc_ak_wrong/ethereum");
  assert.deepEqual([wrong.status, codeOf(wrong)], [401, "unauthorized"]);
  mix.add("refused.access");
  const manage = manageAt(service.url);
  const { json: anonymous } = await manage("", "POST", "/api/v1/agent/keys");
  const paid = await post("eth_gasPrice", [], `/rpc/k/${anonymous.key}/ethereum`);
  assert.equal(paid.status, 200);
  mix.add("answered");
  const exhausted = await post("eth_gasPrice", [], `/rpc/k/${anonymous.key}/ethereum`);
  assert.deepEqual([exhausted.status, codeOf(exhausted)], [402, "balance_exhausted"]);
  mix.add("refused.balance");
  const { json: account } = await manage("", "POST", "/api/v1/keys", { name: "first" });
  const at = Math.ceil(realRuntime.now());
  const { mock } = t.mock.method(realRuntime, "now", () => at);
  const path = `/rpc/k/${account.key}/profile/public/ethereum`;
  const limited = await Promise.all([1, 2, 3].map(() => post("eth_gasPrice", [], path)));
  mock.restore();
  assert.deepEqual(limited.map(({ status }) => status).sort(), [200, 429, 429]);
  mix.add("answered");
  mix.add("refused.rate_limit", 2);
  const large = await service.post(TEAM, " ".repeat(MAX_BODY_BYTES + 1));
  assert.deepEqual([large.status, codeOf(large)], [413, "body_too_large"]);
  mix.add("refused.size");
  const nowhere = await post("eth_gasPrice", [], "/rpc/profile/team/nowhere");
  assert.equal(codeOf(nowhere), "unknown_chain");
  mix.add("refused.target");
  assert.equal(codeOf(await post("personal_sign")), "method_blocked");
  mix.add("refused.method");
  assert.equal(codeOf(await service.post(TEAM, "{")), "parse_error");
  assert.equal(codeOf(await service.post(TEAM, "[]")), "invalid_request");
  assert.equal(codeOf(await service.get(TEAM)), "method_not_allowed");
  mix.add("refused.request", 3);
  await compareAll();
});

test("items of a batch count one by one, notifications apart", async () => {
  const items = [
    call(1, "eth_gasPrice"),
    call(2, "eth_call", [{}, "latest"]),
    7,
    call(null, "eth_gasPrice"),
    call(3, "eth_chainId"),
    call(4, "personal_sign"),
    call(null, "personal_sign"),
  ];
  const { json } = await service.post(TEAM, items);
  assert.equal(json.length, 5);
  mix.add("answered", 2);
  mix.add("caller_error.revert");
  mix.add("refused.request");
  mix.add("refused.method");
  assert.equal((await service.post(TEAM, call(null, "eth_gasPrice"))).status, 204);
  mix.notifications += 3;
  await compareAll();
});

test("requests on a socket count one by one, and so do those whose caller left", async () => {
  const url = `${service.url.replace("http", "ws")}/ws${TEAM}`;
  const socket = new WebSocket(url);
  let answers = 0;
  socket.on("message", () => answers++);
  await new Promise((resolve) => socket.once("open", resolve));
  const requests = [
    call(1, "eth_gasPrice"),
    call(2, "eth_getStorageAt", ["x"]),
    call(null, "eth_gasPrice"),
    [call(3, "eth_gasPrice"), call(4, "eth_getCode", OLD)],
  ];
  for (const each of [...requests.map((one) => JSON.stringify(one)), "{"]) socket.send(each);
  await until("the answers on the socket", () => answers === 4);
  mix.add("answered", 2);
  mix.add("caller_error.params");
  mix.add("failed.unavailable");
  mix.add("refused.request");
  mix.notifications++;
  await until("the notification", async () => {
    const { notifications } = countsInMetrics(await readMetrics());
    return notifications === mix.notifications;
  });
  socket.send(JSON.stringify(call(5, "debug_traceCall")));
  await takeHeld();
  socket.terminate();
  mix.add("cancelled");
  const left = begin("debug_traceCall");
  await takeHeld();
  left.destroy();
  mix.add("cancelled");
  await compareAll();
});

test("an answer that is passed on counts as it ends: whole, broken off by its provider, left", async () => {
  const whole = await service.post(TEAM, call(1, "debug_traceTransaction"));
  assert.equal(`"${whole.json.result}`, LONG);
  mix.add("answered");
  const headersOf = (sent: ClientRequest): Promise<unknown> =>
    new Promise((resolve) =>
      sent.once("response", (response) => {
        response.on("error", () => {});
        response.resume();
        resolve(response);
      }),
    );
  const broken = begin("debug_traceBlockByHash");
  await headersOf(broken);
  (await takeHeld()).close();
  mix.add("failed.cut");
  const left = begin("debug_traceBlockByHash");
  await headersOf(left);
  await takeHeld();
  left.destroy();
  mix.add("cancelled");
  await compareAll();
});

test("what is known of one chain is told of it alone, by metrics and history alike", async () => {
  const isTeam = ({ profile, chain }: Record<string, string>) =>
    profile === "team" && chain === "ethereum";
  const text = await readMetrics();
  const ofTeam = countsInMetrics(text, isTeam);
  assert.deepEqual(await countsInHistory("?profile=team&chain=ethereum"), ofTeam);
  const isUnplaced = ({ profile, chain }: Record<string, string>) => profile === "" && chain === "";
  const unplaced = countsInMetrics(text, isUnplaced).ends;
  const { "refused.size": _, ...rest } = unplaced;
  assert.deepEqual(rest, { "refused.access": 1, "refused.request": 1, "refused.target": 1 });
  const methods = samplesIn(text, "svc_requests_total").filter(({ of }) => isTeam(of));
  const byOutcome = summed(methods.map(({ of, value }) => [of["outcome"] ?? "", value] as const));
  const ofEnds = Object.entries(ofTeam.ends).map(
    ([name, n]) => [name.split(".", 1)[0] ?? "", n] as const,
  );
  const { refused = 0, ...others } = summed(ofEnds);
  const { refused: refusedByMethod = 0, ...othersByMethod } = byOutcome;
  assert.deepEqual(othersByMethod, others);
  assert.ok(refused > refusedByMethod && refusedByMethod > 0, "some were refused unread");
});

test("the figures of the overview, and those of each of its chains, are the counters of metrics", async () => {
  const text = await readMetrics();
  const query = "?range=hour&points=360&chains=true";
  const response = await fetch(`${service.url}/api/v1/history${query}`, { headers: AS_OPERATOR });
  const { series, chains }: Json = await response.json();
  const [whole] = series;
  const samples = samplesIn(text, "svc_calls_total");
  const sumOf = (isCounted: (of: Record<string, string>) => boolean): number =>
    samples.filter(({ of }) => isCounted(of)).reduce((sum, { value }) => sum + value, 0);
  const all = sumOf(() => true);
  assert.equal(total(whole.calls), all);
  for (const outcome of ["failed", "refused"] as const)
    assert.equal(outcomeShare(whole, outcome), sumOf((of) => of["outcome"] === outcome) / all);
  assert.equal(total(whole.hidden_failures), countsInMetrics(text).hidden);
  assert.deepEqual(chains.map(({ profile }: Json) => profile).sort(), [
    "premium",
    "public",
    "team",
  ]);
  for (const { profile, chain, calls, outcomes, p95_ms: p95 } of chains) {
    const isOf = (of: Record<string, string>) => of["profile"] === profile && of["chain"] === chain;
    const ended = sumOf(isOf);
    assert.equal(total(calls), ended, profile);
    for (const [outcome, n] of Object.entries(outcomes))
      assert.equal(
        n,
        sumOf((of) => isOf(of) && of["outcome"] === outcome),
        `${profile} ${outcome}`,
      );
    const refused = sumOf((of) => isOf(of) && of["outcome"] === "refused");
    assert.equal(shareOfEnds(outcomes, "refused"), ended === 0 ? null : refused / ended);
    compareTime(durations(text, isOf), 0.95, p95, mix.notifications);
  }
});

test("the times that the overview and the table of providers show lie where metrics count them", async () => {
  const response = await fetch(`${service.url}/api/v1/history?range=hour&points=10`, {
    headers: AS_OPERATOR,
  });
  const { series }: Json = await response.json();
  const text = await readMetrics();
  const all = durations(text, () => true);
  const [whole] = series;
  // Steps of six minutes: one or two of them have all calls.
  const busiest = whole.calls.indexOf(Math.max(...whole.calls));
  const outside = (total(whole.calls) ?? 0) - whole.calls[busiest];
  for (const [q, name] of QUANTILES)
    compareTime(all, q, whole[`${name}_ms`][busiest], mix.notifications + outside);
  const { json } = await service.get("/api/metrics/ethereum");
  const { providers } = json.profiles.find(({ profile }: Json) => profile === "team");
  for (const { id, transports } of providers) {
    const isOf = ({ profile, provider }: Record<string, string>) =>
      profile === "team" && provider === id;
    const counted = durations(text, isOf, "svc_upstream_latency_seconds");
    assert.ok(counted.count > 0, id);
    for (const [q, name] of QUANTILES) compareTime(counted, q, transports[0].latency_ms[name], 0);
  }
});

const QUANTILES = [
  [0.5, "p50"],
  [0.95, "p95"],
  [0.99, "p99"],
] as const;

/** Bounds of both histograms lie no further apart than this. */
const BOUNDS_APART = 3;

/** A histogram of metrics, its labels apart from the bounds added up. */
interface Durations {
  readonly count: number;
  /** How many were at most so long. */
  readonly within: (ms: number) => number;
  readonly below: (ms: number) => number;
}

function durations(
  text: string,
  isOf: (of: Record<string, string>) => boolean,
  name = "svc_request_duration_seconds",
): Durations {
  const counts = summed(
    samplesIn(text, `${name}_bucket`)
      .filter(({ of }) => isOf(of))
      .map(({ of, value }) => [of["le"] ?? "", value] as const),
  );
  const buckets = Object.entries(counts)
    .map(([le, value]) => ({ ms: Number(le.replace("+Inf", "Infinity")) * 1_000, value }))
    .sort((left, right) => left.ms - right.ms);
  return {
    count: buckets.at(-1)?.value ?? 0,
    within: (ms) => buckets.find((bucket) => bucket.ms >= ms)?.value ?? 0,
    below: (ms) => buckets.findLast((bucket) => bucket.ms * BOUNDS_APART <= ms)?.value ?? 0,
  };
}

/**
 * Compares a quantile with the durations that metrics count, which may have so many more than those
 * it is of: notifications are not in the history.
 */
function compareTime(durations: Durations, q: number, ms: number | null, more: number): void {
  const { count, within, below } = durations;
  if (ms === null) return assert.equal(count, 0);
  assert.ok(within(ms) >= q * (count - more), `${within(ms)} of ${count} within ${ms} ms`);
  assert.ok(below(ms) <= q * count + more, `${below(ms)} of ${count} far below ${ms} ms`);
}

test("the feed can be filtered by outcome, and a refusal is a decision without a plan", async () => {
  const response = await fetch(`${service.url}/api/v1/operator/decisions?outcome=refused`, {
    headers: AS_OPERATOR,
  });
  const { decisions }: Json = await response.json();
  assert.ok(decisions.length > 0);
  for (const { outcome, attempts } of decisions)
    assert.deepEqual([outcome, attempts], ["refused", 0]);
  const unread = decisions.find(({ cause }: Json) => cause === "unauthorized");
  assert.deepEqual(
    [unread.profile, unread.chain, unread.method, unread.strategy, unread.total_ms],
    [null, null, null, null, null],
  );
  const path = `${service.url}/api/v1/operator/decisions/${unread.id}`;
  const opened: Json = await (await fetch(path, { headers: AS_OPERATOR })).json();
  assert.deepEqual([opened.order, opened.candidates, opened.timeline], [[], [], []]);
  assert.equal((await fetch(`${path}/what-if`, { headers: AS_OPERATOR })).status, 404);
});

test("what the pages of a chain and of a provider count is what metrics count", async () => {
  const sum = (column: (number | null)[]): number => total(column) ?? 0;
  const isTeam = ({ of }: { of: Record<string, string> }) => of["profile"] === "team";
  const attempts = samplesIn(await readMetrics(), "svc_upstream_attempts_total").filter(isTeam);
  const { json } = await service.get("/api/metrics/ethereum");
  const { providers } = json.profiles.find(({ profile }: Json) => profile === "team");
  const response = await fetch(`${service.url}/api/v1/history?profile=team&chain=ethereum`, {
    headers: AS_OPERATOR,
  });
  const { series }: Json = await response.json();
  const all = attempts.filter(({ of }) => of["outcome"] !== "cancelled");
  for (const { id, transports } of providers) {
    const counted = Object.fromEntries(
      attempts
        .filter(({ of }) => of["provider"] === id)
        .map(({ of, value }) => [of["outcome"], value]),
    );
    assert.deepEqual(transports[0].outcomes, counted, `the table, ${id}`);
    const { calls, share } = transports[0];
    assert.equal(calls, sum(Object.values(counted)) - counted["cancelled"], id);
    assert.equal(share, calls / sum(all.map(({ value }) => value)), id);
    const kept = series.find((each: Json) => each.provider === id && each.class === null);
    assert.equal(sum(kept.calls), sum(Object.values(counted)), `the graphs, ${id}`);
    const { cut = [], rejected = [], ...failed }: Json = kept.errors;
    const failures = sum(Object.values(failed).map((column) => sum(column as number[])));
    assert.deepEqual([sum(cut), failures], [counted["cancelled"], counted["failed"]], id);
    assert.ok(sum(rejected) <= counted["delivered"], "errors of callers are answers");
  }
});
