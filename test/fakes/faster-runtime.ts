// The machine's own outside, where time runs several times as fast: for walks over real sockets
// about what is judged over minutes.
import { type Runtime, realRuntime } from "../../src/runtime.ts";

/** A runtime of faster time, whose wall clock may skip some of it. */
export type FasterRuntime = Runtime & { skip(ms: number): void };

/** A runtime whose time runs so many times as fast. */
export function fasterRuntime(times: number): FasterRuntime {
  const startedMs = realRuntime.wallMs();
  let skippedMs = 0;
  return {
    ...realRuntime,
    now: () => times * realRuntime.now(),
    wallMs: () => startedMs + skippedMs + times * (realRuntime.wallMs() - startedMs),
    after: (ms, run) => realRuntime.after(ms / times, run),
    skip(ms) {
      skippedMs += ms;
    },
  };
}
