// The cells of the benchmark and the published targets as data; no other file names them.
import { PATHS } from "./systems.ts";
import type { AnswerShape, Workload } from "./workload.ts";

/** One row of the comparison: a workload and a number of connections. */
export interface Cell {
  readonly name: string;
  readonly title: string;
  readonly workload: Workload;
  readonly path: string;
  readonly connections: number;
  /**
   * `closed`: closed loop at full speed. `half`: arrivals at half the rate that this service just
   * reached in a closed loop.
   */
  readonly pace: "closed" | "half";
  /** False if the upstream alone is no baseline. */
  readonly withDirect: boolean;
  /** Size and framing of the answers of the workload `sized`. */
  readonly shape?: AnswerShape;
}

/** Every cell, in order of execution. */
export const CELLS: readonly Cell[] = [
  {
    name: "small-1",
    title: "200 B answers, 1 connection",
    workload: "small",
    path: PATHS.live,
    connections: 1,
    pace: "closed",
    withDirect: true,
  },
  {
    name: "small-64",
    title: "200 B answers, 64 connections",
    workload: "small",
    path: PATHS.live,
    connections: 64,
    pace: "closed",
    withDirect: true,
  },
  {
    name: "half",
    title: "200 B answers, 64 connections, arrivals at half of saturation",
    workload: "small",
    path: PATHS.live,
    connections: 64,
    pace: "half",
    withDirect: true,
  },
  {
    name: "large-1",
    title: "1 MiB answers, 1 connection",
    workload: "large",
    path: PATHS.live,
    connections: 1,
    pace: "closed",
    withDirect: true,
  },
  {
    name: "large-64",
    title: "1 MiB answers, 64 connections",
    workload: "large",
    path: PATHS.live,
    connections: 64,
    pace: "closed",
    withDirect: true,
  },
  {
    name: "dead-64",
    title: "200 B answers, 64 connections, one of three upstreams dead",
    workload: "small",
    path: PATHS.dead,
    connections: 64,
    pace: "closed",
    withDirect: false,
  },
  {
    name: "batch-16",
    title: "batches of 20, 16 connections (CPU per batch)",
    workload: "batch",
    path: PATHS.live,
    connections: 16,
    pace: "closed",
    withDirect: true,
  },
];

/** A published target of this service in a cell. */
export interface Target {
  readonly cell: string;
  readonly measure:
    | "cpuVsNginx"
    | "cpuVsNginxDefault"
    | "addedP50Ms"
    | "addedP99Ms"
    | "memoryGrowthMb";
  readonly max: number;
}

/** All targets; a missed one means exit code 1. */
export const TARGETS: readonly Target[] = [
  { cell: "small-64", measure: "cpuVsNginx", max: 2.2 },
  { cell: "half", measure: "addedP50Ms", max: 0.3 },
  { cell: "half", measure: "addedP99Ms", max: 2 },
  { cell: "large-1", measure: "cpuVsNginxDefault", max: 1.5 },
  { cell: "large-64", measure: "cpuVsNginxDefault", max: 1.5 },
  { cell: "large-1", measure: "memoryGrowthMb", max: 256 },
  { cell: "large-64", measure: "memoryGrowthMb", max: 256 },
];

/** Above this share of one core, the generator or upstream limits the throughput itself. */
export const SATURATED_CORES = 0.95;

/**
 * When latency is measured (`half`), a round counts only if other processes on the machine use less
 * than this many cores.
 */
export const QUIET_CORES = 0.3;
