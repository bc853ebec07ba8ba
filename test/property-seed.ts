// Loaded before a test file: gives the properties of fast-check the seed that `SVC_SEED` chooses.
// Without it each property draws a seed of its own, and names it where it fails.
import { isMainThread } from "node:worker_threads";
import { chosenSeed } from "./fakes/seed.ts";

const seed = chosenSeed();
// Processes and threads that a test starts with the options of its own are no test files.
if (seed !== null && isMainThread && /\.test\.\w+$/.test(process.argv[1] ?? "")) {
  const { configureGlobal } = await import("fast-check");
  configureGlobal({ seed });
}
