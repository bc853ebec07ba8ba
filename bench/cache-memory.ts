// `npm run bench -- --cache-memory`: the resident memory that the cache takes beyond that of a
// service without one, compared with its setting: while it fills, full, and after all of it was
// replaced twice. Both services answer the same calls. Then the CPU of a call that is answered from
// the cache, compared with one that is routed. Exit code as in `run.ts`.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requestOf } from "./block-provider.ts";
import { isRecord, startChild } from "./child.ts";
import { type Figure, isMet, median, saveResults } from "./figures.ts";
import { MessageReader } from "./http1.ts";
import { cpuUs, memoryMb } from "./procfs.ts";
import { PATHS, type System, startServiceWith } from "./systems.ts";

const MAX_BYTES = 128 * 1_048_576;
/** Resident memory beyond that without a cache, compared with the setting. */
const MOST = 1.3;
const CONNECTIONS = 32;
const CALLS_A_STEP = 5_000;
/** The bytes that are kept in all: the cache is full once and replaced twice. */
const TURNS = 3;
const MAX_CALLS = 1_000_000;
/** CPU of a call that is answered from the cache, compared with one that is routed. */
const MOST_HIT = 0.6;
const COST_ROUNDS = 5;
/** Of the calls whose answers were kept; empty answers are kept for a minute. */
const LEAST_HITS = 0.98;
const ANSWER_TIMEOUT_MS = 5_000;

/** Runs the measurement; resolves with the exit code. */
export async function measureCacheMemory(): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const stops: (() => Promise<void>)[] = [];
  try {
    const provider = startChild("block-provider.ts", []);
    stops.push(provider.stop);
    const told = await provider.ask({}, ANSWER_TIMEOUT_MS);
    const port = isRecord(told) ? Number(told["port"]) : 0;
    const start = async (cache: string): Promise<System> => {
      const own = join(dir, cache.startsWith("off") ? "off" : "on");
      mkdirSync(own);
      const site = { dir: own, upstreamPorts: [], nodeFlags: [] };
      const system = await startServiceWith(site, configOf(own, port, cache));
      stops.push(system.stop);
      return system;
    };
    const [without, kept] = [await start("off"), await start(`{ max_bytes: ${MAX_BYTES} }`)];
    const figures = [await fill(without, kept), await compareHits(without, kept)];
    saveResults({
      name: "cache",
      title: "The cache",
      method:
        "`npm run bench -- --cache-memory`: resident memory that a full cache adds, over its " +
        "setting, after all of it was replaced twice; then calls that it answers, each system " +
        "measured twice in a round.",
      figures,
      discarded: [],
    });
    return figures.every((figure) => isMet(figure) === true) ? 0 : 1;
  } finally {
    for (const stop of stops.toReversed()) await stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Sends both services the same calls until all that is kept was replaced twice. */
async function fill(without: System, kept: System): Promise<Figure> {
  const [empty, before] = [rssMb(without), rssMb(kept)];
  let calls = 0;
  let turned = 0;
  let beyond = 0;
  process.stdout.write(
    "  calls, kept MB, answers kept, MB without a cache, MB with it, x setting\n",
  );
  for (let next = 0.5; next <= TURNS && calls < MAX_CALLS; ) {
    await Promise.all([ask(without, calls), ask(kept, calls)]);
    calls += CALLS_A_STEP;
    const { bytes, entries, evicted } = await reportOf(kept);
    turned = entries === 0 ? 0 : (bytes / entries) * ((entries + evicted) / MAX_BYTES);
    if (turned < next) continue;
    next += 0.5;
    const grownMb = rssMb(kept) - before - (rssMb(without) - empty);
    beyond = (grownMb * 1_048_576) / MAX_BYTES;
    const figures = [calls, (bytes / 1_048_576).toFixed(1), entries, rssMb(without), rssMb(kept)];
    process.stdout.write(`  ${figures.join(", ")}, ${beyond.toFixed(2)}\n`);
  }
  if (turned < TURNS) throw new Error("the cache was not replaced twice");
  process.stdout.write(`${beyond <= MOST ? "met" : "MISSED"}: at most ${MOST} x the setting\n`);
  return {
    cell: "memory",
    measure: "memory over the setting",
    beside: null,
    of: { system: "svc", value: beyond, again: null },
    ratio: null,
    bound: { of: "value", most: MOST },
    rounds: "1/1",
  };
}

/** One of two measurements of the same thing, on one system. */
interface Take {
  readonly system: System;
  readonly us: number[];
}

/**
 * Asks both the same calls again and again: one has kept the answers, the other routes. Each is
 * measured twice in a round, as its own control.
 */
async function compareHits(without: System, kept: System): Promise<Figure> {
  const takes: readonly Take[] = [
    { system: kept, us: [] },
    { system: without, us: [] },
    { system: without, us: [] },
    { system: kept, us: [] },
  ];
  let hitsBefore = 0;
  for (let round = -1; round < COST_ROUNDS; round++) {
    for (const { system, us } of takes) {
      const before = sumOf(system, cpuUs);
      await ask(system, 0);
      if (round >= 0) us.push((sumOf(system, cpuUs) - before) / CALLS_A_STEP);
    }
    if (round < 0) hitsBefore = (await reportOf(kept)).hits;
  }
  const share = ((await reportOf(kept)).hits - hitsBefore) / (2 * COST_ROUNDS * CALLS_A_STEP);
  if (share < LEAST_HITS) throw new Error(`${(100 * share).toFixed(1)} % of the calls were hits`);
  const [hit = 0, routed = 0, routedAgain = 0, hitAgain = 0] = takes.map(({ us }) => median(us));
  const ratio = (hit + hitAgain) / (routed + routedAgain);
  const verdict = ratio <= MOST_HIT ? "met" : "MISSED";
  process.stdout.write(
    `a call from the cache ${hit.toFixed(1)} and ${hitAgain.toFixed(1)} µs, routed ` +
      `${routed.toFixed(1)} and ${routedAgain.toFixed(1)} µs: ${ratio.toFixed(2)} x (${verdict}: ` +
      `at most ${MOST_HIT})\n`,
  );
  return {
    cell: "hit-32",
    measure: "CPU µs",
    beside: { system: "routed", value: routed, again: routedAgain },
    of: { system: "from the cache", value: hit, again: hitAgain },
    ratio,
    bound: { of: "ratio", most: MOST_HIT },
    rounds: `${COST_ROUNDS}/${COST_ROUNDS}`,
  };
}

function sumOf({ pids }: System, read: (pid: number) => number): number {
  return pids.reduce((sum, pid) => sum + read(pid), 0);
}

function rssMb(system: System): number {
  return Math.round(sumOf(system, (pid) => memoryMb(pid).rss));
}

/** Sends the next calls over some connections, one at a time on each. */
async function ask({ port }: System, from: number): Promise<void> {
  let next = from;
  const end = from + CALLS_A_STEP;
  const one = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      let head = "";
      const send = (): void => {
        if (next >= end) {
          socket.destroy();
          return resolve();
        }
        const body = requestOf(next++);
        const fields = `Host: b\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
        socket.write(`POST ${PATHS.live} HTTP/1.1\r\n${fields}\r\n\r\n${body}`, "latin1");
      };
      const reader = new MessageReader({
        head: (text) => {
          head = text;
        },
        body: () => {},
        end: () => (head.startsWith("HTTP/1.1 200") ? send() : reject(new Error(head))),
      });
      socket.on("data", (bytes) => reader.push(bytes));
      socket.once("error", reject);
      socket.once("connect", send);
    });
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
}

/** What the service tells of its cache. */
async function reportOf({
  port,
}: System): Promise<Record<"bytes" | "entries" | "evicted" | "hits", number>> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const read = (pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0);
  return {
    bytes: read(/^svc_cache_bytes(?:\{[^}]*\})? (\S+)/m),
    entries: read(/^svc_cache_entries(?:\{[^}]*\})? (\S+)/m),
    hits: read(/^svc_cache_calls_total\{[^}]*hit[^}]*\} (\S+)/m),
    evicted: read(/^svc_cache_removed_total\{[^}]*room[^}]*\} (\S+)/m),
  };
}

function configOf(dir: string, port: number, cache: string): string {
  return `data_dir: ${JSON.stringify(join(dir, "data"))}
devnet: false
cache: ${cache}
chains:
  bench: { chain_id: 1, name: "Bench", block_time_ms: 12000 }
profiles:
  public:
    chains:
      bench:
        providers:
          - { id: p0, name: P0, url: "http://127.0.0.1:${port}", archival: true }
`;
}
