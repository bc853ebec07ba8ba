// A worker that is killed while its service has many requests a second: only requests on
// connections that this worker had accepted fail. A plain router; its figures are the machine's.
import { setTimeout as sleep } from "node:timers/promises";
import { startProcess } from "../../fakes/process.ts";
import { configText } from "../../fakes/service.ts";
import { until } from "../../fakes/service-fixture.ts";
import { scriptedUpstream } from "../../fakes/upstream.ts";
import { childrenOf, openCaller, type WorkerCaller } from "../../fakes/worker-load.ts";

/** What a killed worker did to callers. */
export interface WorkerKillFindings {
  readonly answered: number;
  readonly failed: number;
  /** Answered calls a second before the kill. */
  readonly perSecond: number;
  /** From the kill until every caller was answered again. */
  readonly recoveredMs: number;
  readonly wrong: readonly string[];
}

/** The load that is asked for; a busy machine gives less. */
const CONNECTIONS = 64;
const PER_SECOND = 2_000;
const MEASURED_MS = 2_000;

/** Kills one of two workers under load. */
export async function killWorkerUnderLoad(): Promise<WorkerKillFindings> {
  const stops: (() => unknown)[] = [];
  const ender = { after: (stop: () => unknown) => void stops.push(stop) };
  try {
    const upstream = await scriptedUpstream();
    ender.after(() => upstream.close());
    const text = configText([{ id: "a", url: upstream.url }], { server: { port: 0, workers: 2 } });
    const service = await startProcess(ender, text);
    const port = Number(new URL(service.url).port);
    const load = startLoad(ender, port);
    await sleep(MEASURED_MS);
    const answeredBefore = load.answered();
    const killedAtMs = performance.now();
    const [victim] = childrenOf(service.pid);
    if (victim === undefined) throw new Error("the service has no workers");
    process.kill(victim, "SIGKILL");
    const died = await until("the line about the death", () =>
      /"worker":"(\d+)","ended":"SIGKILL"/.exec(service.log()),
    );
    await load.untilAllAnswered();
    const recoveredMs = performance.now() - killedAtMs;
    await sleep(MEASURED_MS);
    const callers = await load.stop();
    const failed = callers.filter((caller) => caller.failed > 0);
    const strangers = failed.filter(({ worker }) => worker !== null && worker !== died[1]);
    return {
      answered: load.answered(),
      failed: failed.length,
      perSecond: Math.round((answeredBefore * 1_000) / MEASURED_MS),
      recoveredMs: Math.round(recoveredMs),
      wrong: strangers.map(({ worker }) => `a call on a connection of worker ${worker} failed`),
    };
  } finally {
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop();
  }
}

interface Load {
  answered(): number;
  /** Resolves when each caller has been answered once more. */
  untilAllAnswered(): Promise<unknown>;
  /** Resolves with every connection that there was. */
  stop(): Promise<readonly WorkerCaller[]>;
}

/** Callers that each keep a connection, and open another when it is lost. */
function startLoad(ender: { after(stop: () => unknown): void }, port: number): Load {
  const callers: WorkerCaller[] = [];
  const answeredBy = Array.from({ length: CONNECTIONS }, () => 0);
  const pauseMs = (1_000 * CONNECTIONS) / PER_SECOND;
  let isRunning = true;
  const loops = answeredBy.map(async (_, at) => {
    while (isRunning) {
      const caller = openCaller(ender, port);
      callers.push(caller);
      while (isRunning && !caller.isOver) {
        const sentMs = performance.now();
        if (await caller.call()) answeredBy[at] = (answeredBy[at] ?? 0) + 1;
        await sleep(Math.max(0, pauseMs - (performance.now() - sentMs)));
      }
    }
  });
  return {
    answered: () => answeredBy.reduce((sum, count) => sum + count, 0),
    untilAllAnswered() {
      const before = [...answeredBy];
      return until("an answer to every caller", () =>
        answeredBy.every((count, at) => count > (before[at] ?? 0)),
      );
    },
    async stop() {
      isRunning = false;
      await Promise.all(loops);
      return callers;
    },
  };
}
