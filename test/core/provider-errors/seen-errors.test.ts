// The errors of providers that were seen lately: counted by provider and category, with a sample
// that is at most a minute old when they come often.
import assert from "node:assert/strict";
import { test } from "node:test";
import { noteSeen, type SeenErrors } from "../../../src/core/provider-errors/error-samples.ts";

const START_MS = Date.UTC(2026, 10, 23);

/** Notes an error of a provider; returns how often a sample was made of it. */
function note(seen: SeenErrors, provider: string, atMs: number): number {
  let samples = 0;
  const describe = () => {
    samples++;
    return { method: "eth_call", sample: `at ${atMs}` };
  };
  const about = { provider, category: "server", code: null, httpStatus: 500 };
  noteSeen(seen, { ...about, describe }, START_MS + atMs);
  return samples;
}

test("an error that comes all the time has a sample of the last minute, made once a minute", () => {
  const seen: SeenErrors = new Map();
  let samples = 0;
  for (let second = 0; second <= 150; second++) samples += note(seen, "a", second * 1_000);
  assert.equal(samples, 3);
  const [error] = seen.values();
  assert.deepEqual(
    [error?.sample, error?.count, error?.firstMs, error?.lastMs],
    ["at 120000", 151, START_MS, START_MS + 150_000],
  );
});

test("after the clock was set back samples are taken as before", () => {
  const seen: SeenErrors = new Map();
  note(seen, "a", 7_200_000);
  assert.equal(note(seen, "a", 0), 1);
  assert.equal(note(seen, "a", 30_000), 0);
});

test("of too many providers the one not seen for longest is forgotten", () => {
  const seen: SeenErrors = new Map();
  note(seen, "first", 0);
  for (let n = 0; n < 999; n++) note(seen, `p${n}`, 1_000);
  note(seen, "first", 2_000);
  note(seen, "last", 3_000);
  assert.equal(seen.size, 1_000);
  assert.ok(seen.has("first server") && !seen.has("p0 server"));
});
