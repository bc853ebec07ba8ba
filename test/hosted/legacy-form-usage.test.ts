// How long an old form has not been used, on both engines: only time in which it could be used
// counts, and what is off is decided at a start.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LEGACY_FORM_NAMES, type LegacyFormName } from "../../src/core/faults/legacy-form.ts";
import {
  type LegacyFormPolicy,
  type LegacyFormUsage,
  openLegacyFormUsage,
} from "../../src/hosted/legacy-form-usage.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { ALONE } from "../fakes/jobs.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { eachStore } from "../fakes/stores.ts";

const DAY_MS = 86_400_000;
const fail = (error: unknown): never => {
  throw error;
};

eachStore(({ engine, open }) => {
  describe(`the record of old forms (${engine})`, () => {
    /** Runs a service for some days in which it sees some forms, and ends it. */
    async function run(
      store: Store,
      policy: LegacyFormPolicy,
      days: number,
      see: readonly LegacyFormName[] = [],
    ): Promise<LegacyFormUsage["off"]> {
      const runtime = simulatedWorld(1);
      const record = await openLegacyFormUsage({
        store,
        runtime: { ...runtime, after: () => () => undefined },
        policy,
        claims: ALONE,
        onError: fail,
      });
      for (const name of see) record.saw(name);
      runtime.advance(days * DAY_MS);
      await record.close();
      return record.off;
    }

    test(
      "a form is off once the service has run for 30 days without it, and only then, and only " +
        "with `auto`",
      async (t) => {
        const store = await open(t);
        assert.deepEqual(await run(store, "auto", 29), new Set());
        assert.deepEqual(await run(store, "auto", 0.5), new Set());
        assert.deepEqual(
          await run(store, "auto", 0.5, ["key-query"]),
          new Set(),
          "29.5 days are no 30",
        );
        const off = await run(store, "auto", 40);
        assert.deepEqual(off, new Set(LEGACY_FORM_NAMES.filter((it) => it !== "key-query")));
        assert.deepEqual(await run(store, "on", 1), new Set());
        assert.deepEqual(await run(store, "off", 100, ["key-query"]), new Set(LEGACY_FORM_NAMES));
      },
    );

    test("neither time in which it was off nor time in which the service was stopped counts", async (t) => {
      const store = await open(t);
      await run(store, "off", 365);
      assert.deepEqual(await run(store, "auto", 1), new Set());
      const rows = await store.db.selectFrom("old_form").selectAll().execute();
      assert.deepEqual(new Set(rows.map((it) => it.quiet_ms)), new Set([BigInt(DAY_MS)]));
    });

    test(
      "requests and the last time are written each minute, and what could not be written is " +
        "written later",
      async (t) => {
        const store = await open(t);
        const runtime = simulatedWorld(1);
        const errors: unknown[] = [];
        let broken = false;
        const flaky: Store = {
          ...store,
          transaction: (run) =>
            broken ? Promise.reject(new Error("gone")) : store.transaction(run),
        };
        const record = await openLegacyFormUsage({
          store: flaky,
          runtime,
          policy: "on",
          claims: ALONE,
          onError: (error) => errors.push(error),
        });
        const rowOf = () =>
          store.db
            .selectFrom("old_form")
            .selectAll()
            .where("name", "=", "round-robin")
            .executeTakeFirstOrThrow();
        assert.deepEqual([(await rowOf()).last_seen_at, (await rowOf()).requests], [null, 0n]);
        for (let i = 0; i < 3; i++) record.saw("round-robin");
        broken = true;
        runtime.advance(60_000);
        await until(() => errors.length === 1);
        record.saw("round-robin");
        broken = false;
        runtime.advance(60_000);
        await until(async () => (await rowOf()).requests === 4n);
        const seen = await rowOf();
        assert.equal(seen.last_seen_at, BigInt(Math.floor(runtime.wallMs())));
        runtime.advance(60_000);
        await until(async () => (await rowOf()).quiet_ms > 0n);
        assert.deepEqual({ ...(await rowOf()), quiet_ms: 0n }, { ...seen, quiet_ms: 0n });
        await record.close();
        assert.equal((await rowOf()).requests, 4n, "nothing is counted twice");
      },
    );
  });
});

async function until(done: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!(await done())) {
    assert.ok(performance.now() < deadline, "it did not come to this");
    await new Promise((resolve) => setImmediate(resolve));
  }
}
