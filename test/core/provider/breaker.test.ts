// The circuit breaker: what opens, what closes, and that nothing wedges it.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  admitted,
  type Breaker,
  type Cause,
  CLOSED,
  FAILURES_TO_OPEN,
  next,
  OPEN_BASE_MS,
  OPEN_CAP_MS,
  OPEN_JITTER,
  OVERDUE_TRIAL_MS,
  openRemainingMs,
  PERMIT_EXPIRY_MS,
  PROBES_TO_CLOSE,
  probed,
  probeFailed,
  RUN_TO_OPEN,
  type Signal,
  SUCCESSES_TO_CLOSE,
  settled,
} from "../../../src/core/provider/breaker.ts";

const CAUSES: readonly Cause[] = ["server", "network", "timeout", "auth"];
const MIDDLE = 0.5;

function hear(breaker: Breaker, signals: readonly Signal[], nowMs = 0): Breaker {
  return signals.reduce<Breaker>(
    (state, signal) =>
      next(settled(state, nowMs), signal, { startedAtMs: nowMs, nowMs, chance: MIDDLE }),
    breaker,
  );
}

function openAt(nowMs: number): Breaker {
  return hear(CLOSED, ["timeout", "timeout"], nowMs);
}

function trialAt(breaker: Breaker, nowMs: number): Breaker {
  const taken = admitted(settled(breaker, nowMs), nowMs);
  assert.ok(taken !== null, "the trial was not admitted");
  return taken;
}

for (const cause of CAUSES) {
  test(`${RUN_TO_OPEN[cause]} ${cause} failures in a row open the circuit, one fewer does not`, () => {
    const run = Array.from({ length: RUN_TO_OPEN[cause] }, () => cause);
    assert.equal(hear(CLOSED, run.slice(1)).kind, "closed");
    assert.equal(hear(CLOSED, run).kind, "open");
  });
}

test("five consecutive failures of mixed causes open the circuit", () => {
  const mixed: Signal[] = ["server", "timeout", "network", "timeout"];
  assert.equal(hear(CLOSED, mixed).kind, "closed");
  assert.equal(hear(CLOSED, [...mixed, "auth"]).kind, "open");
});

test("a success forgets the failures before it, an ignored outcome neither counts nor forgets", () => {
  assert.equal(hear(CLOSED, ["timeout", "success", "timeout"]).kind, "closed");
  assert.equal(hear(CLOSED, ["timeout", "ignored", "timeout"]).kind, "open");
  assert.equal(
    hear(
      CLOSED,
      ["server", "server", "server", "server"].flatMap((cause): Signal[] => [
        cause === "server" ? cause : "ignored",
        "ignored",
      ]),
    ).kind,
    "closed",
  );
});

test("a provider with one request a minute, or a day, still opens", () => {
  for (const gapMs of [60_000, 86_400_000]) {
    let breaker: Breaker = CLOSED;
    for (let at = 0; at < FAILURES_TO_OPEN; at++) breaker = hear(breaker, ["server"], at * gapMs);
    assert.equal(breaker.kind, "open");
  }
});

test("an open circuit admits nobody before its time and becomes half-open at it", () => {
  const open = openAt(1_000);
  assert.equal(admitted(settled(open, 1_000 + OPEN_BASE_MS - 1), 1_000 + OPEN_BASE_MS - 1), null);
  assert.equal(openRemainingMs(open, 1_000 + OPEN_BASE_MS - 1), 1);
  assert.equal(settled(open, 1_000 + OPEN_BASE_MS).kind, "half_open");
});

test("results of what was sent before the opening change nothing while the circuit is open", () => {
  const open = openAt(0);
  for (const signal of ["success", "ignored", ...CAUSES] as const) {
    assert.equal(next(open, signal, { startedAtMs: 0, nowMs: 10, chance: MIDDLE }), open);
  }
});

test("of what was sent while the circuit is open only a success counts, and two of them close it", () => {
  const open = openAt(0);
  for (const signal of ["ignored", ...CAUSES] as const)
    assert.equal(hear(open, [signal], 10), open);
  const once = hear(open, ["success"], 10);
  assert.equal(once.kind, "half_open");
  assert.equal(hear(once, ["success"], 20), CLOSED);
  const late = next(once, "success", { startedAtMs: 5, nowMs: 20, chance: MIDDLE });
  assert.equal(late, CLOSED, "it was sent after the opening as well");
  assert.equal(
    next(once, "timeout", { startedAtMs: 5, nowMs: 20, chance: MIDDLE }),
    once,
    "it was sent before the first success",
  );
});

test(
  "a good probe makes an open circuit half-open at once, and one that was sent before the " +
    "opening does not",
  () => {
    const open = openAt(1_000);
    assert.equal(probed(open, { startedAtMs: 999, nowMs: 1_005 }), open);
    const half = probed(open, { startedAtMs: 1_001, nowMs: 1_005 });
    assert.equal(half.kind, "half_open");
    assert.equal(
      hear(trialAt(hear(trialAt(half, 1_010), ["success"], 1_020), 1_030), ["success"], 1_040),
      CLOSED,
    );
    assert.equal(probed(CLOSED, { startedAtMs: 2_000, nowMs: 2_001 }), CLOSED);
  },
);

/** A half-open circuit after so many more good probes. */
function probedTimes(breaker: Breaker, times: number, nowMs: number): Breaker {
  let state = breaker;
  for (let n = 0; n < times; n++)
    state = probed(settled(state, nowMs), { startedAtMs: nowMs, nowMs });
  return state;
}

test("a half-open circuit that no call tries closes after three good probes in a row", () => {
  const waited = settled(openAt(0), OPEN_CAP_MS);
  assert.equal(waited.kind, "half_open");
  assert.equal(probedTimes(waited, PROBES_TO_CLOSE - 1, 70_000).kind, "half_open");
  assert.equal(probedTimes(waited, PROBES_TO_CLOSE, 70_000).kind, "closed");
  assert.equal(probedTimes(openAt(0), PROBES_TO_CLOSE, 10).kind, "closed", "one opened the way");
  const failed = probeFailed(probedTimes(waited, PROBES_TO_CLOSE - 1, 70_000));
  assert.equal(probedTimes(failed, PROBES_TO_CLOSE - 1, 70_000).kind, "half_open", "in a row");
  assert.equal(probedTimes(failed, PROBES_TO_CLOSE, 70_000).kind, "closed");
  const early = probed(waited, { startedAtMs: -1, nowMs: 70_000 });
  assert.equal(early, waited, "it was sent before the circuit opened");
});

test("once a call has tried a half-open circuit, calls decide and probes do not", () => {
  const trial = trialAt(openAt(0), OPEN_CAP_MS);
  const undecided = next(trial, "ignored", { startedAtMs: OPEN_CAP_MS, nowMs: 60_010, chance: 0 });
  for (const tried of [trial, undecided])
    assert.equal(probedTimes(tried, 9, 60_020).kind, "half_open");
});

test("the wait of a circuit that probes closed stays doubled until two calls succeed", () => {
  const recovered = probedTimes(openAt(0), PROBES_TO_CLOSE, 10);
  const waitAfter = (signals: readonly Signal[]): number =>
    openRemainingMs(hear(recovered, [...signals, "timeout", "timeout"], 20), 20);
  assert.deepEqual(
    [waitAfter([]), waitAfter(["success"]), waitAfter(["success", "success"])],
    [2 * OPEN_BASE_MS, 2 * OPEN_BASE_MS, OPEN_BASE_MS],
  );
  const again = hear(recovered, ["timeout", "timeout"], 20);
  assert.equal(probed(again, { startedAtMs: 30, nowMs: 31 }), again, "once per wait");
  assert.equal(hear(recovered, ["success", "success"], 20), CLOSED);
});

test(
  "a circuit that real calls opened again after good probes is made half-open by probes at " +
    "most once per wait",
  () => {
    let breaker = openAt(0);
    let opened = 0;
    for (let nowMs = 1; nowMs <= 600_000; nowMs += 1_000) {
      const before = settled(breaker, nowMs);
      breaker = probed(before, { startedAtMs: nowMs, nowMs });
      if (breaker.kind !== "half_open") continue;
      if (before.kind === "open") opened += 1;
      breaker = hear(trialAt(breaker, nowMs), ["server"], nowMs);
      assert.equal(breaker.kind, "open");
    }
    assert.ok(opened >= 8 && opened <= 11, `${opened} times in ten minutes`);
  },
);

test(
  "what failed before a probe made the circuit half-open neither opens it again nor takes its " +
    "permit",
  () => {
    const half = probed(openAt(1_000), { startedAtMs: 2_000, nowMs: 2_005 });
    const taken = trialAt(half, 2_010);
    for (const startedAtMs of [500, 1_500]) {
      for (const signal of ["ignored", ...CAUSES] as const)
        assert.equal(next(taken, signal, { startedAtMs, nowMs: 3_000, chance: MIDDLE }), taken);
    }
  },
);

test("half-open admits one trial at a time and closes after two successes", () => {
  let breaker = trialAt(openAt(0), OPEN_BASE_MS);
  assert.equal(admitted(settled(breaker, OPEN_BASE_MS + 1), OPEN_BASE_MS + 1), null);
  for (let success = 1; success <= SUCCESSES_TO_CLOSE; success++) {
    assert.equal(breaker.kind, "half_open");
    breaker = hear(breaker, ["success"], OPEN_BASE_MS + success);
    if (success < SUCCESSES_TO_CLOSE) breaker = trialAt(breaker, OPEN_BASE_MS + success);
  }
  assert.equal(breaker, CLOSED);
});

test("an ignored trial gives its permit back and leaves the count of successes alone", () => {
  const once = hear(trialAt(openAt(0), OPEN_BASE_MS), ["success"], OPEN_BASE_MS + 1);
  const ignored = hear(trialAt(once, OPEN_BASE_MS + 1), ["ignored"], OPEN_BASE_MS + 2);
  assert.deepEqual(ignored, once);
  assert.equal(hear(trialAt(ignored, OPEN_BASE_MS + 3), ["success"], OPEN_BASE_MS + 4), CLOSED);
});

test("every reopening doubles the wait up to the cap, and closing starts over", () => {
  let breaker = openAt(0);
  let nowMs = 0;
  const waits: number[] = [];
  for (let reopening = 0; reopening < 8; reopening++) {
    const waitMs = openRemainingMs(breaker, nowMs);
    waits.push(waitMs);
    nowMs += waitMs;
    breaker = hear(trialAt(breaker, nowMs), ["server"], nowMs);
  }
  assert.deepEqual(waits, [30_000, 60_000, 60_000, 60_000, 60_000, 60_000, 60_000, 60_000]);
  nowMs += OPEN_CAP_MS;
  breaker = hear(
    trialAt(hear(trialAt(breaker, nowMs), ["success"], nowMs), nowMs),
    ["success"],
    nowMs,
  );
  assert.equal(openRemainingMs(hear(breaker, ["timeout", "timeout"], nowMs), nowMs), OPEN_BASE_MS);
});

test("waits differ by chance by at most five percent", () => {
  const waitFor = (chance: number): number =>
    openRemainingMs(
      next(hear(CLOSED, ["timeout"]), "timeout", { startedAtMs: 0, nowMs: 0, chance }),
      0,
    );
  assert.equal(waitFor(0), OPEN_BASE_MS * (1 - OPEN_JITTER));
  assert.ok(
    waitFor(0.999_999) > OPEN_BASE_MS * 1.049 &&
      waitFor(0.999_999) <= OPEN_BASE_MS * (1 + OPEN_JITTER),
  );
});

test("a permit that never comes back is free again after a minute", () => {
  const taken = trialAt(openAt(0), OPEN_BASE_MS);
  assert.equal(admitted(settled(taken, OPEN_BASE_MS + PERMIT_EXPIRY_MS - 1), 0), null);
  trialAt(taken, OPEN_BASE_MS + PERMIT_EXPIRY_MS);
});

test("a permit is free again after a second if its provider answers others, and not before", () => {
  const takenAtMs = OPEN_BASE_MS;
  const taken = trialAt(openAt(0), takenAtMs);
  const isFree = (ageMs: number, heardAtMs: number): boolean =>
    admitted(settled(taken, takenAtMs + ageMs, heardAtMs), takenAtMs + ageMs) !== null;
  assert.equal(isFree(OVERDUE_TRIAL_MS, takenAtMs + 1), true);
  assert.equal(isFree(OVERDUE_TRIAL_MS - 1, takenAtMs + 1), false);
  assert.equal(isFree(OVERDUE_TRIAL_MS, takenAtMs), false, "nothing was heard since it was taken");
});

test("a try sent before the opening neither ends the trial nor counts as one", () => {
  const taken = trialAt(openAt(1_000), 1_000 + OPEN_BASE_MS);
  for (const signal of ["success", "ignored", "server"] as const) {
    assert.equal(
      next(taken, signal, { startedAtMs: 999, nowMs: 1_000 + OPEN_BASE_MS + 5, chance: MIDDLE }),
      taken,
    );
  }
});

test("a clock that jumps back wedges neither an open circuit nor a trial nor its outcome", () => {
  const open = openAt(1_000_000);
  assert.equal(settled(open, 10).kind, "half_open");
  const taken = trialAt(open, 1_000_000 + OPEN_BASE_MS);
  assert.notEqual(admitted(settled(taken, 10), 10), null);
  assert.equal(
    hear(trialAt(hear(trialAt(taken, 10), ["success"], 20), 30), ["success"], 40),
    CLOSED,
  );
});

test("a trial counts as one also where the clock has jumped back to just after the opening", () => {
  const back = settled(openAt(5_000_000), 4_000_000);
  const taken = trialAt(back, 5_009_999);
  assert.equal(
    hear(trialAt(hear(taken, ["success"], 5_009_999), 5_009_999), ["success"], 5_009_999),
    CLOSED,
  );
});

test(
  "property: whatever happens and however the clock runs, a healthy provider closes again " +
    "after a bounded wait",
  () => {
    const step = fc.record({
      signal: fc.constantFrom<Signal>("success", "ignored", ...CAUSES),
      clockMs: fc.integer({ min: -1_000_000, max: 1_000_000 }),
      admit: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (steps, chance) => {
          let nowMs = 5_000_000;
          let breaker: Breaker = CLOSED;
          for (const { signal, clockMs, admit } of steps) {
            nowMs += clockMs;
            breaker = settled(breaker, nowMs);
            if (admit) breaker = admitted(breaker, nowMs) ?? breaker;
            breaker = next(breaker, signal, { startedAtMs: nowMs - 10, nowMs, chance });
          }
          nowMs += OPEN_CAP_MS * (1 + OPEN_JITTER) + PERMIT_EXPIRY_MS;
          for (let success = 0; success < SUCCESSES_TO_CLOSE; success++) {
            breaker = trialAt(breaker, nowMs);
            breaker = hear(breaker, ["success"], nowMs);
          }
          assert.equal(breaker.kind, "closed");
        },
      ),
    );
  },
);

test("property: ignored outcomes never change the kind of a state nor its counts", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom<Signal>("success", ...CAUSES), { maxLength: 20 }),
      fc.array(fc.boolean(), { maxLength: 20 }),
      (signals, noise) => {
        const quiet = hear(CLOSED, signals);
        const noisy = hear(
          CLOSED,
          signals.flatMap((signal, at): Signal[] =>
            noise[at] === true ? ["ignored", signal, "ignored"] : [signal],
          ),
        );
        assert.deepEqual(noisy, quiet);
      },
    ),
  );
});
