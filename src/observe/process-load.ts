// How busy this process is, measured every few seconds: calls, processor time, memory, and the part
// of the time in which its event loop had something to do.
import { type EventLoopUtilization, performance } from "node:perf_hooks";
import type { Runtime } from "../runtime.ts";
import type { Observer } from "./observer.ts";

interface Reading {
  readonly atMs: number;
  readonly calls: number;
  readonly cpuMicros: number;
  readonly loop: EventLoopUtilization;
}

/** Measures the load since the measurement before. */
export class LoadMeter {
  readonly #runtime: Pick<Runtime, "now">;
  readonly #observer: Pick<Observer, "allSeries">;
  #before: Reading;
  #load: ReturnType<typeof loadOf> | typeof UNMEASURED = UNMEASURED;

  constructor(runtime: Pick<Runtime, "now">, observer: Pick<Observer, "allSeries">) {
    this.#runtime = runtime;
    this.#observer = observer;
    this.#before = this.#read();
  }

  /** The load as it was measured last. */
  get load() {
    return { ...this.#load, memoryBytes: process.memoryUsage.rss() };
  }

  measure(): void {
    const before = this.#before;
    const now = this.#read();
    const ms = now.atMs - before.atMs;
    if (ms <= 0) return;
    this.#before = now;
    this.#load = loadOf(before, now, ms);
  }

  #read(): Reading {
    const { user, system } = process.cpuUsage();
    let calls = 0;
    for (const { ends } of this.#observer.allSeries()) for (const count of ends) calls += count;
    return {
      atMs: this.#runtime.now(),
      calls,
      cpuMicros: user + system,
      loop: performance.eventLoopUtilization(),
    };
  }
}

const UNMEASURED = { callsPerS: null, cpuCores: null, eventLoopBusy: null };

function loadOf(before: Reading, now: Reading, ms: number) {
  const { utilization } = performance.eventLoopUtilization(now.loop, before.loop);
  return {
    callsPerS: rounded(((now.calls - before.calls) * 1_000) / ms),
    cpuCores: rounded((now.cpuMicros - before.cpuMicros) / 1_000 / ms),
    /** 0 to 1. */
    eventLoopBusy: rounded(Math.min(1, utilization)),
  };
}

function rounded(value: number): number {
  return Math.max(0, Math.round(value * 1_000) / 1_000);
}
