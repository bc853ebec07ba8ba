// Repeated tasks of payments: each waits for itself and not for the others. A failure ends none.
import type { Runtime } from "../runtime.ts";

/** A repeated task. A failure is reported, and the next run tries again. */
export interface Task {
  readonly everyMs: number;
  readonly run: () => Promise<void>;
}

/** Running tasks. */
export interface Worker {
  /** Starts nothing more, and waits for the tasks under way. */
  close(): Promise<void>;
}

/** Starts each task now, and again `everyMs` after it has ended. */
export function startWorker(
  runtime: Runtime,
  tasks: readonly Task[],
  onError: (error: unknown) => void,
): Worker {
  let isClosed = false;
  const ended = tasks.map((): Promise<void> => Promise.resolve());
  const cancels = tasks.map(() => () => {});

  function begin(task: Task, index: number): void {
    if (isClosed) return;
    ended[index] = task
      .run()
      .catch(onError)
      .then(() => {
        cancels[index] = isClosed
          ? () => {}
          : runtime.after(task.everyMs, () => begin(task, index));
      });
  }

  for (const [index, task] of tasks.entries()) begin(task, index);
  return {
    async close() {
      isClosed = true;
      for (const cancel of cancels) cancel();
      await Promise.all(ended);
    },
  };
}
