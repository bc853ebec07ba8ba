// The cells of the benchmark and the published targets as data: the only list of what a page of
// figures has from the generator of calls. Runs nothing.
import { PATHS, type SystemKind } from "./systems.ts";
import type { AnswerShape, Workload } from "./workload.ts";

/** A workload, a number of connections, and the systems that are compared under it. */
export interface Cell {
  readonly name: string;
  readonly title: string;
  readonly workload: Workload;
  readonly path: string;
  readonly connections: number;
  /** `closed`: closed loop at full speed. A number: independent arrivals per second. */
  readonly pace: "closed" | number;
  /** Whether the upstream alone is measured too: the floor that added latency counts from. */
  readonly withDirect: boolean;
  /** The first is the one that the others are compared with. Default: nginx and this service. */
  readonly systems?: readonly SystemKind[];
  /** Size and framing of the answers of the workload `sized`. */
  readonly shape?: AnswerShape;
}

/** The systems of a cell, the one that the others are compared with first. */
export function systemsOf({ systems }: Cell): readonly SystemKind[] {
  return systems ?? ["nginx", "svc"];
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
    withDirect: false,
  },
  {
    name: "tls-64",
    title: "200 B answers over TLS to the upstream, 64 connections",
    workload: "small",
    path: PATHS.tls,
    connections: 64,
    pace: "closed",
    withDirect: false,
    systems: ["nginx", "relay-tls", "svc"],
  },
  {
    name: "rate-1000",
    title: "200 B answers, 64 connections, 1,000 arrivals a second",
    workload: "small",
    path: PATHS.live,
    connections: 64,
    pace: 1_000,
    withDirect: true,
  },
  {
    name: "rate-10000",
    title: "200 B answers, 64 connections, 10,000 arrivals a second",
    workload: "small",
    path: PATHS.live,
    connections: 64,
    pace: 10_000,
    withDirect: true,
  },
  {
    name: "large-64",
    title: "1 MiB answers, 64 connections",
    workload: "large",
    path: PATHS.live,
    connections: 64,
    pace: "closed",
    withDirect: false,
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
    title: "batches of 20, 16 connections (CPU per batch; nginx forwards one request, svc twenty)",
    workload: "batch",
    path: PATHS.live,
    connections: 16,
    pace: "closed",
    withDirect: false,
  },
  {
    name: "keyed-64",
    title: "200 B answers, 64 connections: with keys, one for each, beside none",
    workload: "small",
    path: PATHS.live,
    connections: 64,
    pace: "closed",
    withDirect: false,
    systems: ["svc", "svc-keyed"],
  },
  {
    name: "pipelined-64",
    title: "200 B answers, 64 connections: pipelined to providers, beside one at a time",
    workload: "small",
    path: PATHS.live,
    connections: 64,
    pace: "closed",
    withDirect: false,
    systems: ["svc", "svc-pipelined"],
  },
  {
    name: "workers-64",
    title: "200 B answers, 64 connections: two workers beside one process",
    workload: "small",
    path: PATHS.live,
    connections: 64,
    pace: "closed",
    withDirect: false,
    systems: ["svc", "svc-workers"],
  },
];

/** What is measured of a system in a cell. */
export type MeasureName = "cpuUs" | "addedP50Ms" | "addedP95Ms" | "addedP99Ms" | "memoryGrowthMb";

/**
 * A bound: `ratio` of the value over that of the system compared with, `added` to its value, or the
 * `value` itself.
 */
export interface Bound {
  readonly of: "ratio" | "added" | "value";
  readonly most: number;
}

/** A published target of this service, or of one of its configurations, in a cell. */
export interface Target extends Bound {
  readonly cell: string;
  readonly system: SystemKind;
  readonly measure: MeasureName;
}

/** All targets; a missed one means exit code 1. */
export const TARGETS: readonly Target[] = [
  { cell: "small-64", system: "svc", measure: "cpuUs", of: "ratio", most: 1.7 },
  { cell: "tls-64", system: "svc", measure: "cpuUs", of: "ratio", most: 1.7 },
  { cell: "rate-1000", system: "svc", measure: "addedP50Ms", of: "value", most: 0.3 },
  { cell: "rate-1000", system: "svc", measure: "addedP99Ms", of: "value", most: 2 },
  { cell: "rate-10000", system: "svc", measure: "addedP50Ms", of: "value", most: 0.3 },
  { cell: "rate-10000", system: "svc", measure: "addedP99Ms", of: "value", most: 2 },
  { cell: "large-64", system: "svc", measure: "cpuUs", of: "ratio", most: 1.7 },
  { cell: "large-64", system: "svc", measure: "memoryGrowthMb", of: "value", most: 256 },
  { cell: "keyed-64", system: "svc-keyed", measure: "cpuUs", of: "added", most: 3 },
  { cell: "workers-64", system: "svc-workers", measure: "cpuUs", of: "ratio", most: 1.05 },
];

/** Above this share of one core, the generator or upstream limits the throughput itself. */
export const SATURATED_CORES = 0.95;

/**
 * When latency is measured (`rate-…`), a round counts only if other processes on the machine use
 * less than this many cores.
 */
export const QUIET_CORES = 0.3;
