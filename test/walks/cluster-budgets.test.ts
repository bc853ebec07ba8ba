// Limits of providers over several nodes: three real processes over one real PostgreSQL, without
// keys, and providers that count what reaches them.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { newDatabase, postgresAvailability } from "../fakes/postgres.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const postgres = postgresAvailability();
const skip = postgres.kind === "no" && postgres.reason;

const OPERATOR = "operator-operator-operator";
const CALL = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
const RPS = 20;
const MONTHLY = 120;
/** The most that a process holds of it. */
const LEASE = 16;
const LIMITED = '"0xa1"';

interface Providers {
  readonly limited: ScriptedUpstream;
  readonly metered: ScriptedUpstream;
  readonly own: ScriptedUpstream;
}

async function openProviders(t: TestContext): Promise<Providers> {
  const [limited, metered, own] = await Promise.all(
    [LIMITED, '"0xb2"', '"0xc3"'].map((result) =>
      scriptedUpstream((_, reply) => reply.result(result)),
    ),
  );
  assert.ok(limited !== undefined && metered !== undefined && own !== undefined);
  t.after(() => Promise.all([limited, metered, own].map((provider) => provider.close())));
  return { limited, metered, own };
}

/** Starts nodes of one service: profile `limited` by requests, profile `metered` by credits. */
function nodeStarter(t: TestContext, url: string, { limited, metered, own }: Providers) {
  return (id: string, workers = 1): Promise<ServiceProcess> => {
    const dataDir = mkdtempSync(join(tmpdir(), "svc-nodes-"));
    t.after(() => rmSync(dataDir, { recursive: true, force: true }));
    const profile = (...providers: readonly Record<string, unknown>[]) => ({
      chains: { ethereum: { providers } },
    });
    const rps = { id: "vendor", url: limited.url, priority: 1, limits: { rps: RPS } };
    const monthly = { id: "vendor", url: metered.url, limits: { monthly: MONTHLY } };
    const text = configText([], {
      server: { port: 0, operator_token: OPERATOR, workers },
      data_dir: dataDir,
      storage: { url },
      cluster: { enabled: true, node_id: id },
      profiles: {
        limited: profile(rps, { id: "own", url: own.url, priority: 2 }),
        // Alone: beside another it would be asked after it, as the month is spent ahead of time.
        metered: profile(monthly),
      },
    });
    return startProcess(t, text);
  };
}

const arrivals = ({ asked, probes }: ScriptedUpstream): number => asked.length + probes();

async function call(node: ServiceProcess, profile: string): Promise<string> {
  const { status, text } = await node.post(`/rpc/profile/${profile}/priority/ethereum`, CALL);
  assert.equal(status, 200, text);
  return JSON.stringify(JSON.parse(text).result ?? null);
}

/** Calls a node again and again until it is told to stop; counts what the vendor answered. */
function load(node: ServiceProcess, { callers, pauseMs }: { callers: number; pauseMs: number }) {
  let isOver = false;
  const counted = { vendor: 0 };
  const loops = Array.from({ length: callers }, async () => {
    while (!isOver) {
      if ((await call(node, "limited")) === LIMITED) counted.vendor += 1;
      if (pauseMs > 0) await sleep(pauseMs);
    }
  });
  return {
    counted,
    async stop(): Promise<void> {
      isOver = true;
      await Promise.all(loops);
    },
  };
}

async function creditsLeft({ url }: ServiceProcess): Promise<number> {
  const response = await fetch(`${url}/api/metrics/1`, {
    headers: { authorization: `Bearer ${OPERATOR}` },
  });
  const { profiles } = JSON.parse(await response.text());
  const metered = profiles.find(({ profile }: { profile: string }) => profile === "metered");
  return metered.providers[0].limits.monthly.left;
}

/** What three nodes send together to a provider that bears so many requests a second. */
async function shareRequests(nodes: readonly ServiceProcess[], limited: ScriptedUpstream) {
  const [busy, quiet, calm] = nodes;
  assert.ok(busy !== undefined && quiet !== undefined && calm !== undefined);
  const startedAtMs = performance.now();
  const before = arrivals(limited);
  const loads = [
    load(busy, { callers: 6, pauseMs: 0 }),
    load(quiet, { callers: 1, pauseMs: 400 }),
    load(calm, { callers: 1, pauseMs: 800 }),
  ];
  const of = (at: number): number => loads[at]?.counted.vendor ?? 0;
  await until("the shares follow the demand", () => {
    const seconds = Math.ceil((performance.now() - startedAtMs) / 1_000);
    const sent = arrivals(limited) - before;
    // What was under way when the counting began is another second's.
    assert.ok(sent <= RPS * (seconds + 1), `${sent} in ${seconds} s`);
    return seconds > 3 && of(0) > 2 * (of(1) + of(2));
  });
  await Promise.all(loads.map(({ stop }) => stop()));
  return loads.map(({ counted }) => counted.vendor);
}

test("nodes send a provider what is declared, together, whichever is busy, killed or replaced", {
  skip,
}, async (t) => {
  const { url, drop } = await newDatabase();
  t.after(drop);
  const providers = await openProviders(t);
  const start = nodeStarter(t, url, providers);
  const nodes = await Promise.all([start("n1", 2), start("n2"), start("n3")]);
  const [first, second, third] = nodes;
  const shared = await shareRequests(nodes, providers.limited);
  t.diagnostic(`${shared} calls of each node answered by the vendor`);
  assert.ok(providers.own.asked.length > 0, "the rest went elsewhere");

  const sent = (): number => arrivals(providers.metered);
  for (let n = 0; n < 20; n++) for (const node of [first, second]) await call(node, "metered");
  first.signal("SIGKILL");
  await first.ended;
  for (let n = 0; n < 10; n++) await call(third, "metered");
  await until("every node tells what is left for all", async () => {
    const left = await creditsLeft(second);
    return left >= 0 && left <= MONTHLY - sent();
  });
  third.signal("SIGTERM");
  assert.equal(await third.ended, 0);
  await until("what is left is spent", async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => call(second, "metered")));
    assert.ok(sent() <= MONTHLY, `${sent()} of ${MONTHLY}`);
    return answers.every((result) => result === "null") && (await creditsLeft(second)) === 0;
  });
  // What the processes of the killed node had leased may count as spent.
  assert.ok(sent() >= MONTHLY - 3 * LEASE, `${sent()} of ${MONTHLY}`);
  second.signal("SIGTERM");
  assert.equal(await second.ended, 0);
  const fourth = await start("n4");
  // Workers whose supervisor was killed have given back what they held; no more than that is left.
  for (let n = 0; n < MONTHLY; n++) await call(fourth, "metered");
  assert.ok(sent() <= MONTHLY, `${sent()} of ${MONTHLY}`);
});
