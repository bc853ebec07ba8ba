// Loaded before a test file: switches off what node's test runner records of each promise. It does
// so to name the test that an uncaught error belongs to, by a hook that makes an `await` twenty
// times as slow: a third of the time of our simulations. Without it such an error still ends the
// file as a failure, under the file's name instead of the test's. Node has no option for this, so
// it takes an internal function of it; where that is gone, tests are slower and nothing else.
import { createRequire } from "node:module";
import { before } from "node:test";
import { isMainThread } from "node:worker_threads";

// Processes and threads that a test starts with the options of its own are no test files.
if (isMainThread && /\.test\.\w+$/.test(process.argv[1] ?? "")) {
  const untrack = untracking();
  // The runner sets its hook when the first thing is declared, and that is this.
  if (untrack !== null) before(untrack);
}

function untracking(): (() => void) | null {
  try {
    const { internalBinding } = createRequire(import.meta.url)("internal/test/binding");
    const { setPromiseHooks } = internalBinding("async_wrap");
    return typeof setPromiseHooks === "function"
      ? () => setPromiseHooks(undefined, undefined, undefined, undefined)
      : null;
  } catch {
    return null;
  }
}
