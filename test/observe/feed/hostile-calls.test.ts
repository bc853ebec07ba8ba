// Calls whose callers and providers mean harm, as the live feed and its decisions show and keep
// them: no answer of a provider makes a secret visible, and no number of names, texts and readers
// takes memory beyond its bounds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ANY_CALL } from "../../../src/observe/feed/call-filter.ts";
import { decisionView } from "../../../src/observe/feed/decision.ts";
import { EventFeed } from "../../../src/observe/feed/event-feed.ts";
import { FeedHub, MAX_READERS } from "../../../src/observe/feed/feed-hub.ts";
import { MAX_DECISION_BYTES } from "../../../src/observe/feed/kept-decisions.ts";
import { fakeProvider } from "../../fakes/providers.ts";
import { seededRandom, simulatedWorld } from "../../fakes/runtime.ts";
import { createCallMaker } from "./feed-fixture.ts";

const PATH_KEY = "alchemyish-Zx81kq_Lw04";
const HEADER_KEY = "vendor-header-key-4471";
const CALLER_KEY = "svc_ak_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";
const HOST = "node-7.inside.example";

test("what a provider repeats of its address, of headers or of a caller's key is shown to nobody", () => {
  const world = simulatedWorld(1);
  const feed = new EventFeed({ runtime: world, worker: "1", workers: 1 });
  const hub = new FeedHub({ runtime: world, feed, exchange: null });
  const read: Buffer[] = [];
  hub.join(
    { receive: (bytes) => void read.push(bytes), end() {} },
    { filter: ANY_CALL, lastId: null },
  );
  const address = {
    url: `https://${HOST}/v2/${PATH_KEY}?tier=gold`,
    wsUrl: `wss://${HOST}:8443/${PATH_KEY}`,
    headers: { "x-vendor": HEADER_KEY },
  };
  const { call } = createCallMaker(world, [fakeProvider(0, address), fakeProvider(1, address)]);
  const escaped = PATH_KEY.replaceAll("-", "%2d");
  const messages = [
    `POST https://${HOST}/v2/${PATH_KEY} failed`,
    `no route for ${PATH_KEY.toUpperCase()}`,
    `key ${escaped} is over its limit`,
    `${HEADER_KEY}: quota`,
    `cannot reach ${HOST.toUpperCase()} or ${HOST}:8443`,
    `${"very ".repeat(196)}long ${PATH_KEY}`,
    `authorization: Bearer ${CALLER_KEY}`,
    `unknown key ${CALLER_KEY}`,
    `0x${"ab".repeat(65)} is not signed`,
    `balance of 0x${"cd".repeat(20)} is too low`,
  ];
  for (const message of messages) {
    call(feed, { failedOver: true, message });
    // A key in place of a method, at every distance from the end of what is shown.
    for (let before = 0; before < 78; before += 7)
      call(feed, { failedOver: true, method: `${"m".repeat(before)} ${CALLER_KEY}` });
    world.advance(1_000);
  }
  const decisions = feed.decisions();
  assert.equal(decisions.length, messages.length * 13);
  const shown = [Buffer.concat(read).toString(), JSON.stringify(decisions.map(decisionView))];
  for (const text of shown) {
    assert.ok(text.includes("[redacted]") && text.includes("is not signed"));
    for (const secret of [
      PATH_KEY,
      escaped,
      HEADER_KEY,
      HOST,
      "svc_ak",
      "abab",
      "cdcd",
      CALLER_KEY.slice(7, 20),
    ])
      assert.ok(!text.toLowerCase().includes(secret.toLowerCase()), secret);
  }
});

test("10,000 calls a second with names and errors that never repeat take bounded memory", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const usedBytes = (): number => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const chance = seededRandom(7);
  const word = (chars: number): string =>
    Array.from({ length: chars }, () => String.fromCharCode(97 + Math.floor(chance() * 26))).join(
      "",
    );
  const world = simulatedWorld(7);
  const feed = new EventFeed({ runtime: world, worker: "1", workers: 1 });
  const hub = new FeedHub({ runtime: world, feed, exchange: null });
  const { call } = createCallMaker(world);
  const before = usedBytes();
  const readers = Array.from({ length: MAX_READERS }, (_, n) =>
    hub.join({ receive() {}, end() {} }, { filter: { ...ANY_CALL, minMs: n }, lastId: null }),
  );
  assert.ok(readers.every((reader) => reader !== null));
  const tail = word(1_500);
  for (let n = 0; n < 60_000; n++) {
    const story = { method: `eth_${word(60)}${n}`, keyId: `key_${n}` };
    call(feed, n % 3 === 0 ? { ...story, failedOver: true, message: `${n} ${tail}` } : story);
    world.advance(0.1);
  }
  const { bytes } = feed.use();
  assert.ok(bytes <= MAX_DECISION_BYTES, `${bytes}`);
  // Decisions, and 1 MiB for the readers of each filter who may come back.
  const bound = 1.5 * MAX_DECISION_BYTES + MAX_READERS * 1_310_720;
  const kept = usedBytes() - before;
  assert.ok(kept < bound, `${kept} bytes are kept`);
});
