// The watch over an open connection, on times made up: when it pings, gives up, and lets go.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Heartbeat, type HeartbeatSample } from "../../../src/upstream/socket/heartbeat.ts";
import { SOCKET_LIMITS } from "../../../src/upstream/socket/socket-limits.ts";

const LIMITS = { ...SOCKET_LIMITS, pingAfterMs: 15_000, deadAfterMs: 30_000, idleMs: 60_000 };

/**
 * Looks at these moments; everything not said is as at the beginning: nothing arrives, nothing is
 * sent, somebody needs it.
 */
function looks(
  ...sights: readonly (Partial<HeartbeatSample> & { readonly nowMs: number })[]
): readonly string[] {
  const still: HeartbeatSample = { nowMs: 0, bytesRead: 100, begun: 5, needed: true };
  const watch = new Heartbeat(LIMITS, still);
  return sights.map((it) => watch.judge({ ...still, ...it }));
}

test("silence is pinged once and given up later; any byte in between is a sign of life", () => {
  assert.deepEqual(
    looks(
      { nowMs: 12_000 },
      { nowMs: 15_000 },
      { nowMs: 18_000 },
      { nowMs: 29_000 },
      { nowMs: 30_000 },
    ),
    ["nothing", "ping", "nothing", "nothing", "dead"],
  );
  const more = { bytesRead: 102 };
  assert.deepEqual(
    looks(
      { nowMs: 15_000 },
      { nowMs: 29_000, ...more },
      { nowMs: 31_000, ...more },
      { nowMs: 44_000, ...more },
      { nowMs: 59_000, ...more },
    ),
    ["ping", "nothing", "nothing", "ping", "nothing"],
  );
});

test("a process that stood still does not take its own silence for the provider's", () => {
  assert.deepEqual(looks({ nowMs: 100_000 }, { nowMs: 103_000 }), ["ping", "nothing"]);
  assert.deepEqual(
    looks({ nowMs: 15_000 }, { nowMs: 100_000 }, { nowMs: 103_000, bytesRead: 102 }),
    ["ping", "nothing", "nothing"],
  );
  assert.deepEqual(looks({ nowMs: 15_000 }, { nowMs: 100_000 }, { nowMs: 103_000 }), [
    "ping",
    "nothing",
    "dead",
  ]);
});

test(
  "what nobody has needed for the whole time is let go; a request that came and went in " +
    "between counts as need",
  () => {
    const unneeded = { needed: false, bytesRead: 0 };
    assert.deepEqual(
      looks(
        { nowMs: 10_000, ...unneeded },
        { nowMs: 59_000, ...unneeded, bytesRead: 1 },
        { nowMs: 60_000, ...unneeded },
      ),
      ["nothing", "nothing", "idle"],
    );
    assert.deepEqual(
      looks(
        { nowMs: 59_000, ...unneeded, begun: 6 },
        { nowMs: 118_000, ...unneeded, bytesRead: 1, begun: 6 },
      ),
      ["nothing", "nothing"],
    );
  },
);
