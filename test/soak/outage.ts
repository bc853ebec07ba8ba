// Bad days, for real: nodes that are stopped with SIGSTOP under a steady load, one of three or all
// of them, and what their callers wait for. Measures on this machine, so that it is run by hand.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { type Ender, type ServiceProcess, startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";

/** One run: which nodes stop for how long, and how the callers behave. */
export interface Outage {
  readonly name: string;
  readonly strategy: string;
  readonly stopped: number;
  readonly stopMs: number;
  /** When a caller gives up; null = it waits for its answer. */
  readonly givesUpMs: number | null;
}

/** What the callers of one run met. */
export interface OutageFigures {
  readonly outage: Outage;
  /**
   * Calls begun while the nodes were stopped, and those of them that took longer than `SLOW_MS`.
   */
  readonly calls: number;
  readonly slow: number;
  /** When the last slow one was begun, after the stop. */
  readonly lastSlowMs: number;
  /** Calls that got no result, begun while the nodes were stopped. */
  readonly failed: number;
  readonly p99BeforeMs: number;
  /** Of the calls begun later than `SETTLED_MS` after the stop. */
  readonly p99AfterMs: number;
  /**
   * The same of calls that were sent to a node that is well, past the service: what this machine
   * did meanwhile. Null = no node was well.
   */
  readonly p99DirectMs: number | null;
  /** From the return of the nodes until the first result, and until the last call without one. */
  readonly firstResultMs: number;
  readonly lastFailureMs: number;
}

const STRATEGIES = ["load-balanced", "latency-weighted", "fastest", "priority"] as const;

/** One stopped node of three, for every strategy and both kinds of callers, and all three. */
export const OUTAGES: readonly Outage[] = [
  ...STRATEGIES.map((strategy) => ({
    name: "one of three stopped",
    strategy,
    stopped: 1,
    stopMs: 60_000,
    givesUpMs: null,
  })),
  ...STRATEGIES.map((strategy) => {
    return {
      name: "one of three stopped, callers give up",
      strategy,
      stopped: 1,
      stopMs: 60_000,
      givesUpMs: 5_000,
    };
  }),
  { name: "all stopped", strategy: "load-balanced", stopped: 3, stopMs: 75_000, givesUpMs: null },
];

const NODES = 3;
const PER_SECOND = 100;
/** One call of so many is sent past the service too. */
const DIRECT_EVERY = 4;
const WARM_MS = 10_000;
const AFTER_MS = 10_000;
const SLOW_MS = 1_500;
const SETTLED_MS = 3_000;

interface Call {
  readonly atMs: number;
  tookMs: number;
  ok: boolean;
}

/** Carries out one run. */
export async function outageRun(outage: Outage): Promise<OutageFigures> {
  const ends: (() => Promise<void>)[] = [];
  const ender: Ender = { after: (run) => void ends.push(run) };
  try {
    const nodes = await Promise.all(Array.from({ length: NODES }, () => startNode(ender)));
    const providers = nodes.map(({ port }, n) => ({
      id: `n${n}`,
      url: `http://127.0.0.1:${port}`,
      priority: n + 1,
    }));
    const service = await startProcess(
      ender,
      configText(providers, { log_level: "info", deadlines: {} }),
    );
    return await measure(outage, nodes, service);
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

/** What breaks the promises of one run. */
export function outageBreaches(figures: OutageFigures): readonly string[] {
  const {
    outage,
    slow,
    lastSlowMs,
    failed,
    p99BeforeMs,
    p99AfterMs,
    p99DirectMs,
    firstResultMs,
    lastFailureMs,
  } = figures;
  if (outage.stopped === NODES) {
    return firstResultMs <= 2_000 && lastFailureMs <= 2_000
      ? []
      : [`${outage.name}: back after ${firstResultMs} to ${lastFailureMs} ms`];
  }
  const name = `${outage.name}, ${outage.strategy}`;
  return [
    ...(slow > 60 ? [`${name}: ${slow} slow calls`] : []),
    ...(lastSlowMs > SETTLED_MS ? [`${name}: a slow call ${lastSlowMs} ms after the stop`] : []),
    ...(failed > 0 ? [`${name}: ${failed} calls without a result`] : []),
    // What calls past the service took as well is the machine's.
    ...(p99AfterMs > 3 * Math.max(p99BeforeMs, p99DirectMs ?? 0)
      ? [`${name}: p99 ${p99AfterMs} ms after ${p99BeforeMs} ms, past it ${p99DirectMs} ms`]
      : []),
  ];
}

async function startNode(
  ender: Ender,
): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const child = spawn(process.execPath, [new URL("./node.ts", import.meta.url).pathname], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  ender.after(async () => {
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  });
  const [line] = await once(child.stdout, "data");
  return { child, port: Number(String(line).trim()) };
}

async function measure(
  outage: Outage,
  nodes: readonly { readonly child: ChildProcess; readonly port: number }[],
  service: ServiceProcess,
): Promise<OutageFigures> {
  const calls: Call[] = [];
  const direct: Call[] = [];
  const well = nodes[outage.stopped];
  const path = `${service.url}/rpc/${outage.strategy}/ethereum`;
  const agent = new Agent({ keepAlive: true });
  const beganMs = performance.now();
  const stopAtMs = beganMs + WARM_MS;
  const returnAtMs = stopAtMs + outage.stopMs;
  const stopped = nodes.slice(0, outage.stopped);
  const under: Promise<void>[] = [];
  let sent = 0;
  let state: "before" | "stopped" | "back" = "before";
  for (let now = performance.now(); now < returnAtMs + AFTER_MS; now = performance.now()) {
    if (state === "before" && now >= stopAtMs) {
      for (const { child } of stopped) child.kill("SIGSTOP");
      state = "stopped";
    } else if (state === "stopped" && now >= returnAtMs) {
      for (const { child } of stopped) child.kill("SIGCONT");
      state = "back";
    }
    for (; sent < ((now - beganMs) / 1_000) * PER_SECOND; sent++) {
      const call: Call = { atMs: performance.now(), tookMs: 0, ok: false };
      calls.push(call);
      under.push(ask(path, agent, call, outage.givesUpMs));
      if (well === undefined || sent % DIRECT_EVERY !== 0) continue;
      const past: Call = { atMs: performance.now(), tookMs: 0, ok: false };
      direct.push(past);
      under.push(ask(`http://127.0.0.1:${well.port}/`, agent, past, outage.givesUpMs));
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await Promise.all(under);
  agent.destroy();
  return figuresOf(outage, { calls, direct }, { stopAtMs, returnAtMs });
}

function ask(path: string, agent: Agent, call: Call, givesUpMs: number | null): Promise<void> {
  return new Promise((resolve) => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice"}`;
    const end = (ok: boolean): void => {
      call.tookMs = performance.now() - call.atMs;
      call.ok = ok;
      resolve();
    };
    const sending = request(
      path,
      {
        method: "POST",
        agent,
        headers: { "content-type": "application/json", "content-length": body.length },
      },
      (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => {
          text += chunk.toString();
        });
        response.on("end", () => end(text.includes('"result"')));
      },
    );
    sending.on("error", () => end(false));
    if (givesUpMs !== null) sending.setTimeout(givesUpMs, () => sending.destroy());
    sending.end(body);
  });
}

function figuresOf(
  outage: Outage,
  { calls, direct }: { readonly calls: readonly Call[]; readonly direct: readonly Call[] },
  { stopAtMs, returnAtMs }: { readonly stopAtMs: number; readonly returnAtMs: number },
): OutageFigures {
  const during = calls.filter(({ atMs }) => atMs >= stopAtMs && atMs < returnAtMs);
  const settled = ({ atMs }: Call): boolean => atMs >= stopAtMs + SETTLED_MS && atMs < returnAtMs;
  const slow = during.filter(({ tookMs }) => tookMs > SLOW_MS);
  const back = calls.filter(({ atMs }) => atMs >= returnAtMs);
  const first = back.find(({ ok }) => ok);
  return {
    outage,
    calls: during.length,
    slow: slow.length,
    lastSlowMs: Math.round((slow.at(-1)?.atMs ?? stopAtMs) - stopAtMs),
    failed: during.filter(({ ok }) => !ok).length,
    p99BeforeMs: p99Of(
      calls.filter(({ atMs }) => atMs > stopAtMs - WARM_MS / 2 && atMs < stopAtMs - 100),
    ),
    p99AfterMs: p99Of(calls.filter(settled)),
    p99DirectMs: direct.length === 0 ? null : p99Of(direct.filter(settled)),
    firstResultMs:
      first === undefined
        ? Number.POSITIVE_INFINITY
        : Math.round(first.atMs + first.tookMs - returnAtMs),
    lastFailureMs: Math.round((back.findLast(({ ok }) => !ok)?.atMs ?? returnAtMs) - returnAtMs),
  };
}

function p99Of(calls: readonly Call[]): number {
  const sorted = calls.map(({ tookMs }) => tookMs).sort((left, right) => left - right);
  return Math.round((sorted[Math.floor(sorted.length * 0.99)] ?? 0) * 10) / 10;
}
