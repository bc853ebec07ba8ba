// What a reload changes of a running configuration, and what waits for a restart.
import assert from "node:assert/strict";
import { test } from "node:test";
import { reloaded } from "../../src/config/reload.ts";
import { configOf, configText } from "../fakes/service.ts";

test("a worker that starts after a reload opens what the others have open", () => {
  const running = configOf(configText([{ id: "a", url: "http://127.0.0.1:1" }]));
  const next = {
    ...configOf(configText([{ id: "b", url: "http://127.0.0.1:2" }])),
    storageUrl: "postgres://other/",
    dataDir: "/elsewhere",
    secret: "another",
    devnet: !running.devnet,
    upstream: { http: "undici" as const },
    limits: { ...running.limits, maxBodyBytes: 7 },
    consistency: "caller" as const,
  };
  const taken = reloaded(running, next);
  const { profiles, limits, deadlines, methods, consistency } = next;
  assert.deepEqual(taken, { ...running, profiles, limits, deadlines, methods, consistency });
  assert.notDeepEqual(taken.profiles, running.profiles);
  assert.equal(taken.storageUrl, running.storageUrl);
});
