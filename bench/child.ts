// The benchmark's own processes: started with an IPC channel, asked one thing at a time, ended by
// their pid. Knows not what they answer.
import { type ChildProcess, fork } from "node:child_process";

/** A process that answers every message with exactly one message. */
export interface Child {
  readonly pid: number;
  /**
   * Sends a message and waits for its answer; one question at a time. Fails when the process ends
   * or stays silent.
   */
  readonly ask: (message: unknown, timeoutMs: number) => Promise<unknown>;
  readonly stop: () => Promise<void>;
}

/**
 * Starts a script of this folder with this Node; a larger young generation keeps the benchmark’s
 * own collector pauses out of the latencies.
 */
export function startChild(script: string, args: readonly string[]): Child {
  const child = fork(new URL(script, import.meta.url), [...args], {
    execArgv: ["--max-semi-space-size=64"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  return {
    pid: child.pid ?? 0,
    ask: (message, timeoutMs) => ask(child, script, message, timeoutMs),
    stop: () => endProcess(child, "SIGTERM"),
  };
}

/** Ends a process and waits until it is gone; after five seconds it is killed. */
export function endProcess(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const killer = setTimeout(() => child.kill("SIGKILL"), 5_000);
    child.once("exit", () => {
      clearTimeout(killer);
      resolve();
    });
    child.kill(signal);
  });
}

/** True for an object with string keys. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function ask(
  child: ChildProcess,
  script: string,
  message: unknown,
  timeoutMs: number,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const finish = (act: () => void): void => {
      clearTimeout(timer);
      child.off("message", onMessage);
      child.off("exit", onExit);
      act();
    };
    const onMessage = (reply: unknown): void => finish(() => resolve(reply));
    const onExit = (): void =>
      finish(() => reject(new Error(`${script} ended before it answered`)));
    const timer = setTimeout(
      () => finish(() => reject(new Error(`${script} did not answer within ${timeoutMs} ms`))),
      timeoutMs,
    );
    child.on("message", onMessage);
    child.on("exit", onExit);
    child.send(Object(message), (error) => {
      if (error !== null) finish(() => reject(error));
    });
  });
}
