// Child processes of the benchmark: started with an IPC channel, sent one message at a time, ended
// by pid. Knows nothing of the messages.
import { type ChildProcess, fork } from "node:child_process";

/** A process that answers every message with exactly one message. */
export interface Child {
  readonly pid: number;
  /**
   * Sends a message and waits for its answer; one message at a time. Rejects if the process ends or
   * does not answer in time.
   */
  readonly ask: (message: unknown, timeoutMs: number) => Promise<unknown>;
  readonly stop: () => Promise<void>;
}

/**
 * Starts a script of this folder with the current Node. A larger young generation keeps pauses of
 * the benchmark's own garbage collector out of the latencies.
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

/** Ends a process and waits for its exit; kills it after five seconds. */
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

/** Whether a value is an object with string keys. */
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
