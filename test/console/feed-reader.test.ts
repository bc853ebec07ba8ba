// How a page of the console reads the live feed: by a simulated clock, from a service that is cut
// off, does not answer, or is silent, and in several tabs of which one reads.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { StreamEvent } from "../../console/api/feed.ts";
import { type FeedState, watchFeed } from "../../console/api/feed.ts";
import {
  type CallEvent,
  mergeCalls,
  NOTHING,
  newCalls,
  withEvent,
} from "../../console/api/use-feed.ts";

/** A request for the feed, to be answered by the test. */
interface Asked {
  readonly lastId: string | null;
  readonly isAborted: () => boolean;
  open(): void;
  send(text: string): void;
  end(): void;
  cut(): void;
}

interface Tab {
  readonly states: FeedState[];
  readonly events: StreamEvent[];
  close(): void;
}

/** A browser with tabs, and what it asks the service. */
function startBrowser(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const asked: Asked[] = [];
  t.mock.method(globalThis, "fetch", (_: URL, { headers, signal }: RequestInit) => {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    let stream: ReadableStreamDefaultController<Uint8Array> | null = null;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        stream = controller;
      },
    });
    signal?.addEventListener("abort", () => {
      reject(signal.reason);
      stream?.error(signal.reason);
    });
    asked.push({
      lastId: new Headers(headers).get("last-event-id"),
      isAborted: () => signal?.aborted === true,
      open: () => resolve(new Response(body)),
      send: (text) => stream?.enqueue(new TextEncoder().encode(text)),
      end: () => stream?.close(),
      cut: () => stream?.error(new Error("cut")),
    });
    return promise;
  });
  const url = new URL(`http://service.test/events?of=${encodeURIComponent(t.name)}`);
  return {
    asked,
    open(): Tab {
      const states: FeedState[] = [];
      const events: StreamEvent[] = [];
      const close = watchFeed(url, {
        state: (state) => void states.push(state),
        event: (event) => void events.push(event),
      });
      t.after(close);
      return { states, events, close };
    },
    async pass(ms: number): Promise<void> {
      t.mock.timers.tick(ms);
      for (let n = 0; n < 10; n++) await turn();
    },
  };
}

/** Locks as browsers have them, for tabs in one process. */
function giveLocks(t: TestContext): void {
  const tails = new Map<string, Promise<unknown>>();
  const request = (
    name: string,
    { signal }: { readonly signal: AbortSignal },
    run: () => Promise<void>,
  ): Promise<void> => {
    const held = (tails.get(name) ?? Promise.resolve()).then(() =>
      signal.aborted ? undefined : run(),
    );
    tails.set(name, held);
    return held;
  };
  giveNavigator(t, { request });
}

function giveNavigator(t: TestContext, locks: object | undefined): void {
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: { locks } });
  t.after(() => before && Object.defineProperty(globalThis, "navigator", before));
}

const eventOf = (id: string): string => `id: ${id}\nevent: call\ndata: {}\n\n`;
const waitOf = ({ states }: Tab): number => {
  const last = states.at(-1);
  assert.ok(last?.kind === "waiting", JSON.stringify(last));
  return last.atMs - Date.now();
};

test("a service that accepts and never answers is asked again, in growing pauses", async (t) => {
  giveNavigator(t, undefined);
  const { asked, open, pass } = startBrowser(t);
  const tab = open();
  await pass(19_000);
  assert.equal(tab.states.at(-1)?.kind, "connecting");
  const pauses: number[] = [];
  for (let n = 0; n < 7; n++) {
    await pass(20_000);
    pauses.push(waitOf(tab));
    await pass(waitOf(tab));
  }
  assert.deepEqual(pauses.slice(1), [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  assert.equal(asked.length, 8);
  assert.deepEqual(
    asked.map(({ isAborted }) => isAborted()),
    [true, true, true, true, true, true, true, false],
  );
});

test("a feed that is silent or cut goes on after the last event that was read", async (t) => {
  giveNavigator(t, undefined);
  const { asked, open, pass } = startBrowser(t);
  const tab = open();
  await pass(0);
  asked[0]?.open();
  asked[0]?.send(`retry: 3000\n\n${eventOf("1.a.7")}event: beat\ndata: {}\n\n`);
  await pass(0);
  assert.equal(tab.states.at(-1)?.kind, "live");
  await pass(20_000);
  assert.equal(waitOf(tab), 1_000);
  await pass(1_000);
  assert.equal(asked[1]?.lastId, "1.a.7");
  asked[1]?.open();
  asked[1]?.send(`${eventOf("1.a.8")}id: 1.a.9\nevent: ca`);
  await pass(0);
  asked[1]?.cut();
  await pass(0);
  await pass(waitOf(tab));
  assert.equal(asked[2]?.lastId, "1.a.8", "what was not read whole was not read");
  assert.deepEqual(
    tab.events.map(({ id }) => id),
    ["1.a.7", "1.a.7", "1.a.8"],
  );
});

const STREAM =
  "retry: 2000\n\n: a comment\n\n" +
  'id: 7\nevent: call\ndata: {"a":1}\n\n' +
  "event: beat\r\ndata: one\r\ndata: two\r\n\r\n" +
  "id: 8\ndata:no space\n\nevent: empty\n\n";
const EVENTS: readonly StreamEvent[] = [
  { id: "7", name: "call", data: '{"a":1}' },
  { id: "7", name: "beat", data: "one\ntwo" },
  { id: "8", name: "message", data: "no space" },
];

test("events are read whole, wherever the stream is cut; one without an end is given up", async (t) => {
  giveNavigator(t, undefined);
  const { asked, open, pass } = startBrowser(t);
  const tab = open();
  await pass(0);
  asked[0]?.open();
  for (const character of STREAM) asked[0]?.send(character);
  await pass(0);
  assert.deepEqual(tab.events, EVENTS);
  for (let round = 0; round < 50; round++) asked[0]?.send("x".repeat(10_000));
  await pass(0);
  assert.equal(waitOf(tab), 1_000);
  assert.equal(asked[0]?.isAborted(), true);
});

test("a feed that ends with its session is not asked again; one that could not be checked is", async (t) => {
  giveNavigator(t, undefined);
  const { asked, open, pass } = startBrowser(t);
  const tab = open();
  for (const [at, reason] of ["unchecked", "too_many_filters", "draining"].entries()) {
    await pass(0);
    asked[at]?.open();
    asked[at]?.send(`event: end\ndata: {"reason":"${reason}"}\n\n`);
    asked[at]?.end();
    await pass(0);
    assert.equal(tab.events.at(-1)?.data, `{"reason":"${reason}"}`);
    await pass(waitOf(tab));
  }
  assert.equal(asked.length, 4);
  asked[3]?.open();
  asked[3]?.send(`event: end\ndata: {"reason":"session_ended"}\n\n`);
  await pass(0);
  await pass(60_000);
  assert.equal(tab.states.at(-1)?.kind, "ended");
  assert.equal(asked.length, 4);
  assert.equal(asked[3]?.isAborted(), true, "its connection is given up");
});

test("one tab reads for all; when it is closed another goes on where it was", async (t) => {
  giveLocks(t);
  const { asked, open, pass } = startBrowser(t);
  const [first, second] = [open(), open()];
  await pass(0);
  assert.equal(asked.length, 1);
  asked[0]?.open();
  asked[0]?.send(eventOf("1.a.7"));
  while (second.events.length === 0) await pass(0);
  assert.equal(first.events.length, 1);
  first.close();
  await pass(0);
  assert.equal(asked.length, 2);
  assert.equal(asked[0]?.isAborted(), true);
  assert.equal(asked[1]?.lastId, "1.a.7");
});

test("calls of several workers stand in the order of their ends, each once", () => {
  const call = (id: string, at: string): CallEvent =>
    ({ id, at: `2026-11-23T10:00:${at}Z` }) as CallEvent;
  const older = [call("1-b", "00.300"), call("1-a", "00.100")];
  const newer = [call("2-b", "00.250"), call("2-a", "00.050"), call("1-b", "00.300")];
  assert.deepEqual(
    mergeCalls(newer, older).map(({ id }) => id),
    ["1-b", "2-b", "1-a", "2-a"],
  );
  const many = Array.from({ length: 300 }, (_, n) => call(`${n}`, `${10 + (n % 50)}.000`));
  assert.equal(mergeCalls(many, older).length, 100);
});

test("what is new is counted, and what was left out is told until a beat without it", () => {
  const call = (id: string): CallEvent => ({ id, at: "2026-11-23T10:00:00Z" }) as CallEvent;
  assert.equal(newCalls([call("3"), call("2"), call("1")], [call("1"), call("0")]), 2);
  const event = (name: string, data: object): StreamEvent => ({
    ...{ id: "", name },
    data: JSON.stringify(data),
  });
  const beat = event("beat", { calls_per_s: 420 });
  const sampled = withEvent(NOTHING, event("sampled", { shown: 160, of: 420 }), false);
  const said = "Sampled: 160 of 420 calls of the last second are shown, failed ones first.";
  assert.equal(sampled.gap, said);
  const once = withEvent(sampled, beat, false);
  assert.deepEqual([once.gap, once.callsPerSecond], [said, 420]);
  assert.equal(withEvent(once, beat, false).gap, "");
});
