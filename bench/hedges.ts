// `npm run bench -- --hedges`: how long calls take while a provider hangs, with hedges and without,
// side by side: two services with equal providers under equal arrivals. Everything is drawn from a
// seed (`--seed N`). Exit code as in `run.ts`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { arrivalGaps, sharedNowMs } from "./arrivals.ts";
import { type Child, isRecord, startChild } from "./child.ts";
import type { Hanging, HangingSnapshot } from "./hanging-provider.ts";
import { Histogram } from "./histogram.ts";
import { PATHS, type System, startServiceWith } from "./systems.ts";

/** What happens to the providers, and what must hold with hedges. */
interface Scenario {
  readonly name: string;
  readonly providers: readonly Hanging[];
  readonly mostLateShare: number;
  /** Upstream calls for each call; null = not bounded here, since failed attempts are repeated. */
  readonly mostCalls: number | null;
}

/** What was measured of one service. */
interface Measured {
  readonly latencies: Histogram;
  readonly late: number;
  readonly failed: number;
  readonly asked: number;
  readonly upstreamCalls: number;
}

const WELL: Hanging = { share: 0, forMs: null };
const SCENARIOS: readonly Scenario[] = [
  {
    name: "one of three hangs 6 % of its answers for 2 s",
    providers: [{ share: 0.06, forMs: 2_000 }, WELL, WELL],
    mostLateShare: 0.001,
    mostCalls: 1.05,
  },
  {
    name: "one of two hangs, but for probes",
    providers: [{ share: 1, forMs: null }, WELL],
    mostLateShare: 0.05,
    mostCalls: null,
  },
];
const RATE = 200;
const WARM_UP_SECONDS = 5;
/** Shorter runs have too few late calls. */
const LEAST_SECONDS = 20;
const LATE_MS = 500;
const ANSWER_MS = 5_000;

/** Runs all scenarios; resolves with the exit code. */
export async function measureHedges(options: {
  readonly seconds: number;
  readonly seed: number;
}): Promise<number> {
  const seconds = Math.max(LEAST_SECONDS, options.seconds);
  const { seed } = options;
  process.stdout.write(`${RATE} calls/s for ${seconds} s, seed ${seed}\n`);
  const missed: string[] = [];
  for (const scenario of SCENARIOS) {
    const [off, on] = await Promise.all(
      ["hedge: off\n", ""].map((hedge) => measure(scenario, { hedge, seconds, seed })),
    );
    if (off === undefined || on === undefined) throw new Error("a system is missing");
    process.stdout.write(`${scenario.name}\n  off ${lineOf(off)}\n  on  ${lineOf(on)}\n`);
    missed.push(...missedOf(scenario, on));
  }
  process.stdout.write(
    missed.length === 0
      ? "Within its targets.\n"
      : `${missed.map((target) => `MISSED ${target}`).join("\n")}\n`,
  );
  return missed.length === 0 ? 0 : 1;
}

/** The targets that a service with hedges missed. */
export function missedOf(
  { name, mostLateShare, mostCalls }: Pick<Scenario, "name" | "mostLateShare" | "mostCalls">,
  { late, failed, asked, upstreamCalls }: Omit<Measured, "latencies">,
): readonly string[] {
  const missed: string[] = [];
  if (failed > 0) missed.push(`${name}: ${failed} calls failed`);
  if (late > mostLateShare * asked)
    missed.push(`${name}: ${late} of ${asked} calls took more than ${LATE_MS} ms`);
  if (mostCalls !== null && upstreamCalls > mostCalls * asked)
    missed.push(`${name}: ${upstreamCalls} calls to providers for ${asked}`);
  return missed;
}

function lineOf({ latencies, late, failed, asked, upstreamCalls }: Measured): string {
  const at = (share: number): string => latencies.quantileMs(share).toFixed(0);
  return (
    `p50 ${at(0.5)} p90 ${at(0.9)} p99 ${at(0.99)} p99.9 ${at(0.999)} max ` +
    `${latencies.maxMs.toFixed(0)} ms, ${late} of ${asked} over ${LATE_MS} ms, ${failed} failed, ` +
    `${(upstreamCalls / asked).toFixed(3)} calls each`
  );
}

async function measure(
  { providers }: Scenario,
  plan: { readonly hedge: string; readonly seconds: number; readonly seed: number },
): Promise<Measured> {
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const hanging = startChild("hanging-provider.ts", [String(plan.seed), String(providers.length)]);
  let system: System | null = null;
  try {
    const { ports } = await snapshotOf(hanging, {});
    const site = { dir, upstreamPorts: ports, nodeFlags: [] };
    system = await startServiceWith(site, configOf(ports, plan.hedge));
    const url = `http://127.0.0.1:${system.port}${PATHS.live}`;
    await load(url, WARM_UP_SECONDS);
    const before = await snapshotOf(hanging, { behaviour: providers });
    const measured = await load(url, plan.seconds);
    const { calls } = await snapshotOf(hanging, {});
    return { ...measured, upstreamCalls: calls - before.calls };
  } finally {
    await system?.stop();
    await hanging.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

function configOf(ports: readonly number[], hedge: string): string {
  const providers = ports.map((port, at) => ({ id: `p${at}`, url: `http://127.0.0.1:${port}` }));
  return `chains: { bench: { chain_id: 1 } }
profiles: { public: { chains: { bench: { providers: ${JSON.stringify(providers)} } } } }
${hedge}`;
}

/** Sends calls as independent callers would, each without waiting for the others. */
export async function load(
  url: string,
  seconds: number,
  rate = RATE,
): Promise<Omit<Measured, "upstreamCalls">> {
  const gaps = arrivalGaps(rate);
  const latencies = new Histogram();
  let [late, failed, asked] = [0, 0, 0];
  const call = async (arrivedAtMs: number, id: number): Promise<void> => {
    const params = [`0x${id.toString(16).padStart(40, "0")}`, "latest"];
    const body = JSON.stringify({ jsonrpc: "2.0", id, method: "eth_getBalance", params });
    const headers = { "content-type": "application/json" };
    const json: unknown = await fetch(url, { method: "POST", headers, body })
      .then((response) => response.json())
      .catch(() => null);
    const tookMs = sharedNowMs() - arrivedAtMs;
    latencies.add(tookMs);
    if (tookMs > LATE_MS) late++;
    if (!isRecord(json) || json["result"] !== "0x1") failed++;
  };
  const startMs = sharedNowMs();
  const out: Promise<void>[] = [];
  for (let dueMs = startMs; dueMs < startMs + seconds * 1_000; dueMs += gaps()) {
    const waitMs = dueMs - sharedNowMs();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    out.push(call(sharedNowMs(), ++asked));
  }
  await Promise.all(out);
  return { latencies, late, failed, asked };
}

async function snapshotOf(child: Child, message: object): Promise<HangingSnapshot> {
  const told = await child.ask(message, ANSWER_MS);
  if (!isRecord(told) || !Array.isArray(told["ports"])) throw new Error("no snapshot came");
  return told as unknown as HangingSnapshot;
}
