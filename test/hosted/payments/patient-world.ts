// The real outside for rails on real chains: a question to a node is given up after a minute, not after five seconds, which a busy machine may need.
import { realWorld, type World } from "../../../src/world.ts";

/** Every wait lasts for twelve times as long. */
export const patientWorld: World = { ...realWorld, after: (ms, run) => realWorld.after(12 * ms, run) };
