// The real outside for rails on real chains: a question to a node is given up after a minute, not
// after five seconds, which a busy machine may need.
import { type Runtime, realRuntime } from "../../src/runtime.ts";

/** Every wait lasts for twelve times as long. */
export const patientWorld: Runtime = {
  ...realRuntime,
  after: (ms, run) => realRuntime.after(12 * ms, run),
};
