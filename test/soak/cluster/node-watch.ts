// Watches from the database when each process of each node writes what was spent, and when its life
// ends: what it served after its last writes may stay unbilled. Changes nothing.
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../fakes/service-fixture.ts";
import { readDatabase } from "./site.ts";
import type { AnsweredCall } from "./traffic.ts";

/** A time in which what one process served may stay unbilled. */
export interface LossWindow {
  /** Id of its row. */
  readonly row: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** A watch under way. */
export interface NodeWatch {
  /** Windows of lives that have ended since the watch began. */
  losses(): readonly LossWindow[];
  /** Resolves when each process that there was, or its successor, has written since. */
  untilAllWrite(): Promise<unknown>;
  stop(): Promise<void>;
}

interface NodeRow {
  readonly id: string;
  readonly epoch: string;
  readonly state: string;
  readonly flush_seq: string;
}

/** What is known of a process. */
interface Life {
  epoch: string;
  seq: string;
  /** When its last write, and the one before that, had not happened yet. */
  lastMs: number;
  beforeLastMs: number;
  /** When its last write had happened. */
  writtenMs: number;
  /** Null = it lives. */
  endedAtMs: number | null;
}

const LOOK_MS = 40;
/** A process that is late to notice that its time is over. */
const NOTICE_MS = 250;

/** Watches until stopped; a paid call ends at half of the node timeout after the last write. */
export function watchNodes(databaseUrl: string, nodeTimeoutMs: number): NodeWatch {
  const lives = new Map<string, Life>();
  const losses: LossWindow[] = [];
  let isRunning = true;
  let readAtMs = performance.now();

  const look = (row: NodeRow, beforeMs: number): void => {
    const known = lives.get(row.id);
    if (known === undefined || known.epoch !== row.epoch) {
      if (known !== undefined) end(row.id, known);
      lives.set(row.id, {
        epoch: row.epoch,
        seq: row.flush_seq,
        lastMs: beforeMs,
        beforeLastMs: beforeMs,
        writtenMs: performance.now(),
        endedAtMs: null,
      });
      return;
    }
    if (row.state === "dead") end(row.id, known);
    if (row.flush_seq === known.seq) return;
    known.seq = row.flush_seq;
    known.beforeLastMs = known.lastMs;
    known.lastMs = beforeMs;
    known.writtenMs = performance.now();
  };
  const end = (row: string, life: Life): void => {
    if (life.endedAtMs !== null) return;
    life.endedAtMs = performance.now();
    const toMs = life.writtenMs + nodeTimeoutMs / 2 + NOTICE_MS;
    losses.push({ row, fromMs: life.beforeLastMs, toMs });
  };
  const watching = (async () => {
    while (isRunning) {
      const startedAtMs = performance.now();
      const rows = await readDatabase<NodeRow>(
        databaseUrl,
        "select id, epoch::text, state, flush_seq::text from node",
      ).catch(() => []);
      for (const row of rows) look(row, readAtMs);
      if (rows.length > 0) readAtMs = startedAtMs;
      await sleep(LOOK_MS);
    }
  })();
  return {
    losses: () => losses,
    untilAllWrite() {
      const sinceMs = performance.now();
      return until("a write of every process", () =>
        [...lives.values()].every(
          ({ endedAtMs, lastMs }) => endedAtMs === null && lastMs > sinceMs,
        ),
      );
    },
    async stop() {
      isRunning = false;
      await watching;
    },
  };
}

/** How many of these answers are within a window of the process that gave them. */
export function answersWithin(
  losses: readonly LossWindow[],
  answers: readonly AnsweredCall[],
): number {
  return answers.filter(({ node, worker, atMs }) =>
    losses.some(
      ({ row, fromMs, toMs }) =>
        (row === node || row === `${node}/${worker}`) && atMs >= fromMs && atMs <= toMs,
    ),
  ).length;
}
