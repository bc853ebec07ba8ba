// `npm run bench -- --budgets`: a provider that bears 50 requests a second, asked first, beside one
// without a limit, under 500 calls a second: once with the limit declared, once without, side by
// side. Exit code as in `run.ts`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, isRecord, startChild } from "./child.ts";
import { load } from "./hedges.ts";
import type { LimitedSnapshot } from "./limited-provider.ts";
import { PATHS, type System, startServiceWith } from "./systems.ts";

/** What was measured of one service. */
interface Measured extends LimitedSnapshot {
  readonly asked: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const RPS = 50;
const OFFERED = 500;
const LEAST_SECONDS = 10;
const ANSWER_MS = 5_000;

/** Runs both; resolves with the exit code. */
export async function measureBudgets(options: { readonly seconds: number }): Promise<number> {
  const seconds = Math.max(LEAST_SECONDS, options.seconds);
  process.stdout.write(`${OFFERED} calls/s for ${seconds} s, a provider that bears ${RPS}\n`);
  const [undeclared, declared] = await Promise.all([
    measure("", seconds),
    measure(`, limits: { rps: ${RPS} }`, seconds),
  ]);
  process.stdout.write(
    `  not declared ${lineOf(undeclared)}\n  declared     ${lineOf(declared)}\n`,
  );
  const missed = missedOf(declared);
  const lines = missed.map((target) => `MISSED ${target}`).join("\n");
  process.stdout.write(missed.length === 0 ? "Within its targets.\n" : `${lines}\n`);
  return missed.length === 0 ? 0 : 1;
}

/** The targets that a service that knows the limit missed. */
export function missedOf({
  mostInASecond,
  refused,
  failed,
}: Pick<Measured, "mostInASecond" | "refused" | "failed">): readonly string[] {
  return [
    ...(mostInASecond > RPS + 1 ? [`${mostInASecond} requests within a second`] : []),
    ...(refused > 0 ? [`the provider refused ${refused} requests`] : []),
    ...(failed > 0 ? [`${failed} calls failed`] : []),
  ];
}

function lineOf({
  mostInASecond,
  arrived,
  refused,
  asked,
  failed,
  p50Ms,
  p99Ms,
}: Measured): string {
  return (
    `at most ${mostInASecond} a second, ${arrived} in all, ${refused} refused; ${failed} of ` +
    `${asked} calls failed, p50 ${p50Ms.toFixed(1)} p99 ${p99Ms.toFixed(1)} ms`
  );
}

async function measure(limits: string, seconds: number): Promise<Measured> {
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const providers = startChild("limited-provider.ts", [String(RPS)]);
  let system: System | null = null;
  try {
    const { ports } = await snapshotOf(providers);
    const site = { dir, upstreamPorts: ports, nodeFlags: [] };
    system = await startServiceWith(site, configOf(ports, limits));
    const url = `http://127.0.0.1:${system.port}${PATHS.live}?strategy=priority`;
    const { latencies, failed, asked } = await load(url, seconds, OFFERED);
    const [p50Ms, p99Ms] = [latencies.quantileMs(0.5), latencies.quantileMs(0.99)];
    return { ...(await snapshotOf(providers)), failed, asked, p50Ms, p99Ms };
  } finally {
    await system?.stop();
    await providers.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

function configOf([limited, free]: readonly number[], limits: string): string {
  return `chains: { bench: { chain_id: 1 } }
profiles:
  public:
    chains:
      bench:
        providers:
          - { id: limited, url: "http://127.0.0.1:${limited}", priority: 1${limits} }
          - { id: free, url: "http://127.0.0.1:${free}", priority: 2 }
`;
}

async function snapshotOf(child: Child): Promise<LimitedSnapshot> {
  const reply = await child.ask({}, ANSWER_MS);
  if (!isRecord(reply) || !Array.isArray(reply["ports"])) throw new Error("no snapshot came");
  return reply as unknown as LimitedSnapshot;
}
