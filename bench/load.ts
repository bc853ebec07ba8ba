// The load generator, a process of its own. Closed loop: every connection sends its next request
// once the last is answered. Fixed rate: calls arrive on schedule, and latency counts from the
// arrival, including the wait for a free connection. Answers a job with "ready", and `go` with a
// report.
import { Worker } from "node:worker_threads";
import { arrivalGaps, sharedNowMs } from "./arrivals.ts";
import { Caller } from "./caller.ts";
import { isRecord } from "./child.ts";
import { Histogram } from "./histogram.ts";
import type { PacerOrder } from "./pacer.ts";
import {
  type AnswerShape,
  callsIn,
  FIRST_NUMBER,
  LARGE_SHAPE,
  mixedMethod,
  type Workload,
} from "./workload.ts";

/** A job: what to send, where, how often and for how long. */
export interface LoadJob {
  readonly port: number;
  /** One path, or several separated by spaces, which connections use in turn. */
  readonly path: string;
  readonly workload: Workload;
  readonly connections: number;
  readonly seconds: number;
  /** Null = closed loop. */
  readonly ratePerSecond: number | null;
  /** Size and framing of the answers of the workload `sized`. */
  readonly shape?: AnswerShape;
  /** Whether answers may say the same in other bytes. */
  readonly byMeaning?: boolean;
}

/** The result of a job. */
export interface LoadReport {
  /** HTTP requests sent. */
  readonly sent: number;
  readonly ok: number;
  readonly failed: number;
  /**
   * Failed requests with a method name outside the standard, which a careful router does not
   * replay. Included in `failed`.
   */
  readonly failedUnknown: number;
  /** The first few faults in words. */
  readonly faults: readonly string[];
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** User and system CPU time of the generator during the job, µs. */
  readonly cpuUs: number;
}

const FAULTS_KEPT = 5;
/** If more calls than this wait for a connection, the rate is too high. */
const MAX_WAITING = 10_000;
const DRAIN_MS = 5_000;
/** Time for the pacer thread to start before the first arrival. */
const PACER_START_MS = 250;

/** Parses a report received over IPC. */
export function parseReport(message: unknown): LoadReport {
  if (!isRecord(message) || typeof message["ok"] !== "number")
    throw new Error("the load generator sent no report");
  return message as unknown as LoadReport;
}

/** One job, from its first to its last answer. */
class Run {
  readonly #job: LoadJob;
  readonly #numbers: () => number;
  readonly #callers: Caller[] = [];
  readonly #idle: Caller[] = [];
  readonly #waiting: number[] = [];
  readonly #latencies = new Histogram();
  readonly #faults: string[] = [];
  #sent = 0;
  #ok = 0;
  #failed = 0;
  #failedUnknown = 0;
  #endMs = 0;
  #finished: () => void = () => undefined;

  constructor(job: LoadJob, numbers: () => number) {
    this.#job = job;
    this.#numbers = numbers;
  }

  async open(): Promise<void> {
    const buffer = Caller.readBuffer();
    const { port, path, workload, shape = LARGE_SHAPE, byMeaning = false } = this.#job;
    const done = (caller: Caller, number: number, dueMs: number, fault: string | null): void =>
      this.#done(caller, number, dueMs, fault);
    const paths = path.split(" ");
    for (let at = 0; at < this.#job.connections; at++)
      this.#callers.push(
        new Caller(
          { port, path: paths[at % paths.length] ?? path, workload, shape, byMeaning, done },
          buffer,
        ),
      );
    await Promise.all(this.#callers.map((caller) => caller.open()));
  }

  async go(): Promise<LoadReport> {
    const cpu = process.cpuUsage();
    const startMs = sharedNowMs() + (this.#job.ratePerSecond === null ? 0 : PACER_START_MS);
    this.#endMs = startMs + this.#job.seconds * 1_000;
    const finished = new Promise<void>((resolve) => {
      this.#finished = resolve;
    });
    const drained = setTimeout(() => this.#finished(), this.#endMs - sharedNowMs() + DRAIN_MS);
    if (this.#job.ratePerSecond === null)
      for (const caller of this.#callers) this.#send(caller, startMs);
    else this.#pace(this.#job.ratePerSecond, startMs);
    await finished;
    clearTimeout(drained);
    return this.#report(startMs, cpu);
  }

  #send(caller: Caller, dueMs: number): void {
    this.#sent++;
    caller.send(this.#numbers(), dueMs);
  }

  #pace(ratePerSecond: number, startMs: number): void {
    const order: PacerOrder = { ratePerSecond, startMs, endMs: this.#endMs };
    const gap = arrivalGaps(ratePerSecond);
    let dueMs = startMs + gap();
    this.#idle.push(...this.#callers);
    const pacer = new Worker(new URL("./pacer.ts", import.meta.url), { workerData: order });
    pacer.on("message", () => {
      const nowMs = sharedNowMs();
      for (; dueMs <= nowMs && dueMs < this.#endMs; dueMs += gap()) this.#arrive(dueMs);
    });
    pacer.once("exit", () => this.#checkEnd());
  }

  #arrive(dueMs: number): void {
    const caller = this.#idle.pop();
    if (caller !== undefined) this.#send(caller, dueMs);
    else if (this.#waiting.length < MAX_WAITING) this.#waiting.push(dueMs);
    else {
      this.#sent++;
      this.#fail("more calls waiting than the generator keeps: the rate is too high");
    }
  }

  #done(caller: Caller, number: number, dueMs: number, fault: string | null): void {
    const nowMs = sharedNowMs();
    if (fault === null) {
      this.#ok++;
      this.#latencies.add(nowMs - dueMs);
    } else {
      if (this.#job.workload === "mixed" && mixedMethod(number).startsWith("bench_"))
        this.#failedUnknown++;
      this.#fail(fault);
    }
    if (this.#job.ratePerSecond === null) {
      if (nowMs < this.#endMs) this.#send(caller, nowMs);
    } else {
      const next = this.#waiting.shift();
      if (next !== undefined) this.#send(caller, next);
      else this.#idle.push(caller);
    }
    this.#checkEnd();
  }

  #fail(fault: string): void {
    this.#failed++;
    if (this.#faults.length < FAULTS_KEPT) this.#faults.push(fault);
  }

  #checkEnd(): void {
    if (this.#ok + this.#failed >= this.#sent && sharedNowMs() >= this.#endMs) this.#finished();
  }

  #report(startMs: number, cpu: NodeJS.CpuUsage): LoadReport {
    for (const caller of this.#callers) caller.close();
    const unanswered = this.#sent - this.#ok - this.#failed;
    if (unanswered > 0)
      this.#faults.push(`${unanswered} requests without an answer ${DRAIN_MS} ms after the end`);
    const used = process.cpuUsage(cpu);
    return {
      sent: this.#sent,
      ok: this.#ok,
      failed: this.#failed + Math.max(0, unanswered),
      failedUnknown: this.#failedUnknown,
      faults: this.#faults,
      seconds: (sharedNowMs() - startMs) / 1_000,
      p50Ms: this.#latencies.quantileMs(0.5),
      p95Ms: this.#latencies.quantileMs(0.95),
      p99Ms: this.#latencies.quantileMs(0.99),
      maxMs: this.#latencies.maxMs,
      cpuUs: used.user + used.system,
    };
  }
}

function parseJob(message: unknown): LoadJob | null {
  return isRecord(message) && message["kind"] === "job" ? (message["job"] as LoadJob) : null;
}

function main(): void {
  let next = FIRST_NUMBER;
  let run: Run | null = null;
  process.on("message", (message) => {
    const job = parseJob(message);
    if (job !== null) {
      const opened = new Run(job, () => {
        const number = next;
        next += callsIn(job.workload);
        return number;
      });
      run = opened;
      void opened.open().then(() => process.send?.("ready"));
      return;
    }
    void run?.go().then((report) => process.send?.(report));
    run = null;
  });
  process.on("disconnect", () => process.exit(0));
}

if (import.meta.main) main();
