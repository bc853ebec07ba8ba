// The work that goes on without anybody asking: each task again and again, never twice at once, one
// not waiting for another. Knows no task.
import type { Runtime } from "../runtime.ts";

/** Something that is done again and again. Its failure is told, and the next time is a new try. */
export interface Task {
  readonly everyMs: number;
  readonly run: () => Promise<void>;
}

/** Work that goes on. */
export interface Worker {
  /** Begins nothing any more, and waits for what is under way. */
  close(): Promise<void>;
}

/** Starts each task now, and again that long after it has ended. */
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
