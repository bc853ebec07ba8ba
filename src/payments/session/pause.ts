// Waiting between two tries.
import type { Runtime } from "../../runtime.ts";

/** Resolves after `ms`. */
export function pause(runtime: Pick<Runtime, "after">, ms: number): Promise<void> {
  return new Promise((resolve) => runtime.after(ms, resolve));
}
