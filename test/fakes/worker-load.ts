// Callers of a service of several workers, each on a connection of its own, and what they see:
// which worker answered, and which calls failed.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { type Cleanup, RawClient } from "./raw-client.ts";

/** A caller that keeps its connection. */
export interface WorkerCaller {
  /** The worker that answered last; null = none has. */
  readonly worker: string | null;
  readonly answered: number;
  /** The status of the last answer; empty = there was none. */
  readonly status: string;
  /** The connection ended while a call was out, or a wrong answer came. */
  readonly failed: number;
  /** Sends one call; false = it failed. */
  call(): Promise<boolean>;
  /** Whether the connection is of no use any more. */
  readonly isOver: boolean;
}

/** Opens a connection, for calls at a path. */
export function openCaller(t: Cleanup, port: number, path = "/rpc/1"): WorkerCaller {
  const client = new RawClient(t, port);
  // Equal calls at one time may share one answer: those of each caller are its own.
  const name = randomUUID();
  let id = 0;
  let worker: string | null = null;
  let answered = 0;
  let failed = 0;
  let isOver = false;
  let status = "";
  return {
    get worker() {
      return worker;
    },
    get answered() {
      return answered;
    },
    get status() {
      return status;
    },
    get failed() {
      return failed;
    },
    get isOver() {
      return isOver || client.isClosed;
    },
    async call() {
      const body = `{"jsonrpc":"2.0","id":${++id},"method":"eth_call","params":["${name} ${id}"]}`;
      client.socket.write(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
          `Content-Length: ${body.length}\r\n\r\n${body}`,
      );
      const answer = await client.answerOrEnd();
      status = answer?.status ?? "";
      worker = workerOf(answer?.lines ?? []) ?? worker;
      const isRight =
        answer !== null && answer.body.toString() === `{"jsonrpc":"2.0","id":${id},"result":"0x1"}`;
      if (!isRight) {
        failed++;
        isOver = true;
        return false;
      }
      answered++;
      isOver ||= answer.lines.some((line) => /^connection: close$/i.test(line));
      return true;
    },
  };
}

/** The worker in a request id such as `req-mhz3abcd-2-17`. */
function workerOf(lines: readonly string[]): string | null {
  for (const line of lines) {
    const worker = /^x-svc-request-id: req-[0-9a-z]+-(\d+)-[0-9a-z]+$/i.exec(line)?.[1];
    if (worker !== undefined) return worker;
  }
  return null;
}

/** The processes that a process has started, from `/proc`. */
export function childrenOf(pid: number): readonly number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text.split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Whether a process is alive; one that is only remembered by its parent is not. */
export function isAlive(pid: number): boolean {
  return !"ZX".includes(stateOf(pid));
}

/** Whether a process stands still after `SIGSTOP`. */
export function isStopped(pid: number): boolean {
  return stateOf(pid) === "T";
}

/** The letter of its state in `/proc`; `X` = there is none. */
function stateOf(pid: number): string {
  try {
    return /^\d+ \(.*\) (\w) /s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1] ?? "X";
  } catch {
    return "X";
  }
}
