// The memory that a start needs and serving does not. Knows nothing of what was started.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Returns it to the system. Loading modules grows the young generation of V8 to its largest size,
 * and an idle process does not shrink it: up to a third of its memory. Under load it grows again.
 */
export function collectStartGarbage(): void {
  // Node has no other way to ask for a collection.
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  if (typeof collect === "function") collect({ type: "major", flavor: "last-resort" });
}
