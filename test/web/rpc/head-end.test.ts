// The end of heads on the fast path: what all answers carry, and a date that follows the clock
// though the clock is read once a second.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ALWAYS } from "../../../src/web/http/respond.ts";
import { CurrentHeadEnds } from "../../../src/web/rpc/connections/fast-path-head.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

function dateIn(text: string): number {
  return Date.parse(/\r\nDate: ([^\r]+)\r\n/.exec(text)?.[1] ?? "");
}

test("an end holds what every answer carries, the date, the connection and the empty line", () => {
  const world = simulatedWorld(1);
  const { keepAlive, close } = new CurrentHeadEnds(world, 65_900).make();
  const date = new Date(world.wallMs()).toUTCString();
  assert.equal(
    keepAlive.text,
    `${ALWAYS}Date: ${date}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=65\r\n\r\n`,
  );
  assert.equal(close.text, `${ALWAYS}Date: ${date}\r\nConnection: close\r\n\r\n`);
  for (const { text, bytes } of [keepAlive, close]) assert.equal(bytes.toString("latin1"), text);
});

test("the date is that of the second in which it is asked for, also after a long pause", () => {
  const world = simulatedWorld(2);
  const ends = new CurrentHeadEnds(world, 65_000);
  world.advance(250);
  for (const ms of [0, 1, 500, 248, 1, 999, 1, 1_000, 86_400_000, 3]) {
    world.advance(ms);
    const second = Math.floor(world.wallMs() / 1_000) * 1_000;
    assert.equal(dateIn((ends.current ?? ends.make()).keepAlive.text), second, `after ${ms} ms`);
  }
});

test("one timer waits while answers are written, and none when no more are", () => {
  const world = simulatedWorld(3);
  const ends = new CurrentHeadEnds(world, 65_000);
  for (let asked = 0; asked < 100; asked++) ends.current ?? ends.make();
  assert.equal(world.pendingTimers(), 1);
  world.advance(1_000);
  assert.equal(world.pendingTimers(), 0);
});
