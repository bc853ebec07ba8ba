// `npm run bench -- --sockets`: measures the cost of a delivered notification compared with nginx,
// which passes the same frames as they are from one upstream socket each, and with a bare broadcast
// loop using the same library, the memory of an idle socket, and the cost of a call over WebSocket
// compared with HTTP. Interleaved, on one machine; exit code as in `run.ts`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CELLS } from "../cells.ts";
import { type Child, isRecord, startChild } from "../child.ts";
import { figureOf, median, saveResults } from "../figures.ts";
import { measure, snapshot } from "../measure.ts";
import { cpuUs, memoryMb } from "../procfs.ts";
import {
  type Site,
  type System,
  serviceConfig,
  startNginxTunnel,
  startServiceWith,
} from "../systems.ts";

/** The targets: a notification beside nginx, a call beside one over HTTP, an idle socket. */
const MOST_PER_MESSAGE = 0.65;
const MOST_PER_CALL = 1.2;
const MOST_IDLE_KB = 10;
const SOCKETS = 5_000;
const SUBSCRIBERS = 1_000;
const HEADS = 20;
const EVERY_MS = 250;
const ANSWER_MS = 60_000;
const SETTLE_MS = 1_500;
const UNARY_SOCKETS = 64;

/** Two of nginx: how far they differ tells what a difference means. */
const PEER_NAMES = ["bare", "nginx", "nginx-again", "svc"] as const;
type PeerName = (typeof PEER_NAMES)[number];

interface Peer {
  readonly name: PeerName;
  readonly pid: number;
  readonly feedPath: string;
  readonly crowd: Child;
}

/** Runs the measurement; resolves with the exit code. */
export async function measureSockets({
  rounds,
  seconds,
}: {
  readonly rounds: number;
  readonly seconds: number;
}): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const stops: (() => Promise<void>)[] = [];
  const start = (script: string): Child => {
    const child = startChild(script, []);
    stops.push(child.stop);
    return child;
  };
  try {
    const feed = start("sockets/feed.ts");
    const feedPort = numberIn(await feed.ask({ kind: "port" }, ANSWER_MS), "port");
    const bare = start("sockets/bare.ts");
    const barePort = numberIn(
      await bare.ask({ feed: `ws://127.0.0.1:${feedPort}/bare` }, ANSWER_MS),
      "port",
    );
    const upstream = start("upstream.ts");
    const site: Site = { dir, upstreamPorts: (await snapshot(upstream)).ports, nodeFlags: [] };
    const service = await startServiceWith(site, configOf(site, feedPort));
    stops.push(service.stop);
    const pid = service.pids[0] ?? 0;

    const idle = await idleSockets(start("sockets/crowd.ts"), service, pid);
    const tunnel = async (name: "nginx" | "nginx-again"): Promise<System> => {
      const started = await startNginxTunnel(
        join(dir, name),
        `http://127.0.0.1:${feedPort}/${name}/`,
      );
      stops.push(started.stop);
      return started;
    };
    const tunnels = { nginx: await tunnel("nginx"), "nginx-again": await tunnel("nginx-again") };
    const served: Readonly<Record<PeerName, { readonly pid: number; readonly port: number }>> = {
      bare: { pid: bare.pid, port: barePort },
      nginx: { pid: tunnels.nginx.pids.at(-1) ?? 0, port: tunnels.nginx.port },
      "nginx-again": {
        pid: tunnels["nginx-again"].pids.at(-1) ?? 0,
        port: tunnels["nginx-again"].port,
      },
      svc: { pid, port: service.port },
    };
    const peers: readonly Peer[] = PEER_NAMES.map((name) => ({
      name,
      pid: served[name].pid,
      feedPath: name.startsWith("nginx") ? `/${name}/ws/rpc/heads` : `/${name}`,
      crowd: start("sockets/crowd.ts"),
    }));
    for (const { name, crowd } of peers)
      await crowd.ask(
        {
          kind: "open",
          port: served[name].port,
          path: "/ws/rpc/heads",
          connections: SUBSCRIBERS,
          subscribe: true,
        },
        ANSWER_MS,
      );
    const fanOut = await fanOutRounds(feed, peers, rounds);
    const subscribedMb = memoryMb(pid).rss;
    for (const { crowd } of peers) await crowd.ask({ kind: "close" }, ANSWER_MS);
    const unary = await unaryRounds(
      { upstream, load: start("load.ts"), crowd: peers.at(-1)?.crowd ?? upstream },
      service,
      { rounds, seconds },
    );
    return conclude({ idle, fanOut, unary, subscribedMb });
  } finally {
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

interface Idle {
  readonly beforeMb: number;
  readonly afterMb: number;
}

/** Memory of idle sockets. */
async function idleSockets(crowd: Child, service: System, pid: number): Promise<Idle> {
  const open = {
    kind: "open",
    port: service.port,
    path: "/ws/rpc/heads",
    connections: SOCKETS,
    subscribe: false,
  };
  // The first group of clients warms the process up; the growth with the second group is measured.
  await crowd.ask({ ...open, connections: 500 }, ANSWER_MS);
  await crowd.ask({ kind: "close" }, ANSWER_MS);
  await settle();
  const beforeMb = memoryMb(pid).rss;
  await crowd.ask(open, ANSWER_MS);
  await settle();
  const afterMb = memoryMb(pid).rss;
  await crowd.ask({ kind: "close" }, ANSWER_MS);
  await settle();
  return { beforeMb, afterMb };
}

interface FanOut {
  readonly us: Readonly<Record<PeerName, readonly number[]>>;
  /** What the service does besides, in the time of a round, as a part of each notification. */
  readonly besidesUs: number;
  readonly wrong: number;
}

async function fanOutRounds(feed: Child, peers: readonly Peer[], rounds: number): Promise<FanOut> {
  const us: Record<PeerName, number[]> = { bare: [], nginx: [], "nginx-again": [], svc: [] };
  const service = peers.find(({ name }) => name === "svc")?.pid ?? 0;
  let wrong = 0;
  for (let round = -1; round < rounds; round++) {
    for (const peer of round % 2 === 0 ? peers : [...peers].reverse()) {
      await peer.crowd.ask({ kind: "mark" }, ANSWER_MS);
      const before = cpuUs(peer.pid);
      await feed.ask(
        { kind: "push", path: peer.feedPath, heads: HEADS, everyMs: EVERY_MS },
        ANSWER_MS,
      );
      const report = await peer.crowd.ask({ kind: "await", each: HEADS }, ANSWER_MS);
      const delivered = numberIn(report, "delivered");
      wrong += numberIn(report, "wrong") + Math.abs(delivered - SUBSCRIBERS * HEADS);
      // The first round is a warm-up.
      if (round >= 0) us[peer.name].push((cpuUs(peer.pid) - before) / delivered);
    }
  }
  const before = cpuUs(service);
  await new Promise((resolve) => setTimeout(resolve, HEADS * EVERY_MS));
  return { us, besidesUs: (cpuUs(service) - before) / (HEADS * SUBSCRIBERS), wrong };
}

interface Unary {
  readonly httpUs: readonly number[];
  readonly socketUs: readonly number[];
  readonly wrong: number;
}

async function unaryRounds(
  rig: { readonly upstream: Child; readonly load: Child; readonly crowd: Child },
  service: System,
  plan: { readonly rounds: number; readonly seconds: number },
): Promise<Unary> {
  const cell = CELLS.find(({ name }) => name === "small-64");
  if (cell === undefined) throw new Error("the cell small-64 is gone");
  await rig.crowd.ask(
    {
      kind: "open",
      port: service.port,
      path: "/ws/rpc/bench",
      connections: UNARY_SOCKETS,
      subscribe: false,
    },
    ANSWER_MS,
  );
  const httpUs: number[] = [];
  const socketUs: number[] = [];
  let wrong = 0;
  for (let round = -1; round < plan.rounds; round++) {
    const http = await measure(rig, service, cell, { seconds: plan.seconds, ratePerSecond: null });
    const before = cpuUs(service.pids[0] ?? 0);
    const report = await rig.crowd.ask({ kind: "ask", seconds: plan.seconds }, ANSWER_MS);
    const us = (cpuUs(service.pids[0] ?? 0) - before) / numberIn(report, "ok");
    wrong += numberIn(report, "wrong") + http.load.failed;
    if (round < 0) continue;
    httpUs.push(http.cpuUsPerRequest);
    socketUs.push(us);
  }
  return { httpUs, socketUs, wrong };
}

function conclude({
  idle,
  fanOut,
  unary,
  subscribedMb,
}: {
  readonly idle: Idle;
  readonly fanOut: FanOut;
  readonly unary: Unary;
  readonly subscribedMb: number;
}): number {
  const { bare, nginx, "nginx-again": again, svc } = fanOut.us;
  const perMessage = median(svc) / median([...nginx, ...again]);
  const idleKb = ((idle.afterMb - idle.beforeMb) * 1_024) / SOCKETS;
  const perCall = median(unary.socketUs) / median(unary.httpUs);
  const problems = [
    ...(fanOut.wrong + unary.wrong > 0
      ? [`${fanOut.wrong} notifications and ${unary.wrong} answers were not right`]
      : []),
    ...(perMessage > MOST_PER_MESSAGE
      ? [`a notification costs ${perMessage.toFixed(2)} × nginx, at most ` + `${MOST_PER_MESSAGE}`]
      : []),
    ...(idleKb > MOST_IDLE_KB
      ? [`an idle socket takes ${idleKb.toFixed(1)} kB, at most ${MOST_IDLE_KB}`]
      : []),
    ...(perCall > MOST_PER_CALL
      ? [
          `a call over a socket costs ${perCall.toFixed(2)} × one over HTTP, at most ` +
            `${MOST_PER_CALL}`,
        ]
      : []),
  ];
  saveResults({
    name: "sockets",
    title: "Sockets",
    method:
      `\`npm run bench -- --sockets\`: ${SUBSCRIBERS} sockets with a subscription each, ${HEADS} ` +
      "heads of 600 B a round, beside nginx as a tunnel and a bare broadcast loop; 64 connections in closed loops, over HTTP " +
      "and by sockets. Two values are of odd and even rounds.",
    figures: [
      figureOf(
        { cell: `fan-out-${SUBSCRIBERS}`, measure: "CPU µs a notification" },
        { system: "svc", rounds: svc },
        { system: "nginx", rounds: [...nginx, ...again] },
        { of: "ratio", most: MOST_PER_MESSAGE },
      ),
      figureOf(
        { cell: `sockets-${UNARY_SOCKETS}`, measure: "CPU µs a call" },
        { system: "by sockets", rounds: unary.socketUs },
        { system: "over HTTP", rounds: unary.httpUs },
        { of: "ratio", most: MOST_PER_CALL },
      ),
      figureOf(
        { cell: `idle-${SOCKETS}`, measure: "kB a socket" },
        { system: "svc", rounds: [idleKb] },
        null,
        null,
      ),
    ],
    discarded: [],
  });
  process.stdout.write(`${SUBSCRIBERS} sockets with one newHeads subscription each, ${HEADS} heads of 600 B a round, medians of ${svc.length} rounds
  CPU per delivered notification   svc ${median(svc).toFixed(2)} µs   nginx ${median(nginx).toFixed(2)} and ${median(again).toFixed(2)} µs   bare loop ${median(bare).toFixed(2)} µs   ratio to nginx ${perMessage.toFixed(2)} (at most ${MOST_PER_MESSAGE})
  of it what svc does without one  ${fanOut.besidesUs.toFixed(2)} µs (probes and pings in the time of a round, for each notification)
  memory per idle socket           ${idleKb.toFixed(1)} kB of ${SOCKETS}, at most ${MOST_IDLE_KB} (RSS ${idle.beforeMb.toFixed(0)} → ${idle.afterMb.toFixed(0)} MB; with subscriptions and traffic ${subscribedMb.toFixed(0)} MB)
${UNARY_SOCKETS} connections, eth_getBalance, 200 B answers, closed loops
  CPU per call                     HTTP ${median(unary.httpUs).toFixed(1)} µs   socket ${median(unary.socketUs).toFixed(1)} µs   ratio ${perCall.toFixed(2)} (at most ${MOST_PER_CALL})
${problems.length === 0 ? "All answers right, all measured targets met." : problems.map((problem) => `MISSED ${problem}`).join("\n")}\n`);
  return problems.length === 0 ? 0 : 1;
}

/** The benchmark's chains, and one with the feed as its only provider. */
function configOf(site: Site, feedPort: number): string {
  const chain = '  heads: { chain_id: 9, name: "Heads", block_time_ms: 12000 }\n';
  const set =
    `      heads:\n        subscriptions: { new_heads_timeout_ms: 600000 }\n        providers:\n ` +
    `         - { id: feed, ws_url: "ws://127.0.0.1:${feedPort}/svc", archival: true }\n`;
  return serviceConfig(site).replace("profiles:\n", `${chain}profiles:\n`) + set;
}

function numberIn(message: unknown, name: string): number {
  const value = isRecord(message) ? message[name] : undefined;
  if (typeof value !== "number") throw new Error(`a process of the benchmark did not say ${name}`);
  return value;
}

function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
}
