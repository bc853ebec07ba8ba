// How a process comes to the id of its node: the successor of a worker at once, since its
// supervisor saw the end of the one before; every other process only when that one is gone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { beat, join, leave } from "../../src/shared/nodes/node-rows.ts";
import { waitForNodeId } from "../../src/shared/nodes/start.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { newPlace } from "../fakes/stores.ts";

const NODE = { id: "n1/2", region: "" };
const NODE_TIMEOUT_MS = 30_000;

test("the successor of a killed worker joins at once, another process waits", async (t) => {
  const { place, remove } = await newPlace("sqlite");
  const store = await openStore(place);
  t.after(async () => {
    await store.close();
    await remove();
  });
  const world = simulatedWorld(1);
  const joining = { wallMs: 1_000, replaces: null, processId: "service/2" };
  const killed = await join(store, NODE, joining);
  assert.ok(killed !== null);
  let waits = 0;
  const startOf = (processId: string) =>
    waitForNodeId({
      store,
      runtime: world,
      nodeId: NODE.id,
      nodeTimeoutMs: NODE_TIMEOUT_MS,
      processId,
      log: { info: () => void waits++ },
    });
  assert.equal(await startOf("service/2"), null);
  assert.equal(waits, 0);
  const stranger = startOf("elsewhere/2");
  while (waits === 0) await turn();
  const next = await join(store, NODE, joining);
  assert.ok(next !== null && next.epoch > killed.epoch);
  assert.equal(await beat(store, killed, 2_000), false, "what the killed one still sent is void");
  // The other sees that somebody lives.
  const refused = assert.rejects(stranger, /Another process lives as node n1\/2/);
  let isOver = false;
  void refused.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    world.advance(NODE_TIMEOUT_MS / 20);
    await turn();
  }
  await refused;
  await leave(store, next);
});
