// The second tier by itself, in simulated time, against a server that is slow, silent, full, gone
// or holds what others put there: what is found, when it is given up, and what is never given.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import {
  SecondTier,
  type TierFinding,
  tierKey,
  tierScope,
} from "../../../src/upstream/second-tier/second-tier.ts";
import {
  checksumOf,
  type StoredAnswer,
  type TierKey,
  type TierScope,
} from "../../../src/upstream/second-tier/stored-answer.ts";
import { seededRandom, simulatedWorld } from "../../fakes/runtime.ts";
import { seedsTo } from "../../fakes/seed.ts";
import { tierServer } from "../../fakes/tier-server.ts";

const SECRET = "the secret of this service, of all its nodes";
const SCOPE = tierScope(["team", 1, []], SECRET);
const QUESTION = tierKey(SCOPE, 'eth_getBalance ["0x1","0x50"]');

/** Lets everything that is under way get on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await setImmediate();
}

/** Waits for what another thread does, 30 seconds at most. */
async function untilTrue(isTrue: () => boolean): Promise<void> {
  const endMs = performance.now() + 30_000;
  while (!isTrue() && performance.now() < endMs) await setImmediate();
}

function createFixture() {
  const runtime = simulatedWorld(11);
  const server = tierServer();
  const logged: unknown[] = [];
  const log = { warn: (...line: unknown[]) => logged.push(line), info: () => logged.push("info") };
  const tier = new SecondTier({ runtime, log, connect: server.connect, secret: SECRET });
  const answer = (value: string): StoredAnswer => ({
    provider: "one",
    isError: false,
    askedAtWallMs: runtime.wallMs(),
    value: Buffer.from(value),
  });
  /** The finding of a look-up; null = there is none yet. */
  const begin = (question: TierKey = QUESTION) => {
    const found: TierFinding[] = [];
    const cancel = tier.lookUp(question, (finding) => void found.push(finding));
    return { found, cancel };
  };
  const lookUp = async (question?: TierKey): Promise<TierFinding> => {
    const { found } = begin(question);
    await settle();
    // A value that is compressed is read by another thread.
    await untilTrue(() => found.length > 0);
    return found[0] ?? assert.fail("nothing was told");
  };
  const textOf = async (question?: TierKey): Promise<string | null> =>
    (await lookUp(question)).answer?.value.toString() ?? null;
  /** Opens the way, and gives the scope a generation. */
  const start = async (): Promise<void> => {
    tier.use("redis://:password@localhost");
    await settle();
    await lookUp();
  };
  const store = async (value: string, question = QUESTION): Promise<void> => {
    const { generation } = await lookUp(question);
    const before = tier.report()?.stores.stored ?? 0;
    tier.store(question, generation ?? assert.fail("no generation"), answer(value));
    await untilTrue(() => tier.report()?.stores.stored !== before);
  };
  return { runtime, server, tier, logged, answer, begin, lookUp, textOf, start, store };
}

/** The key under which the answer to the question lies. */
const keyOf = ({ scope, digest }: TierKey): string =>
  `svc:cache:1:${scope.name}:${digest.toString("base64url")}`;
const GENERATION_KEY = `svc:cache:1:${SCOPE.name}:generation`;

const CHECKSUM_BYTES = 16;

/** The same with the checksum that it would have if a node had written it. */
function signed(bytes: Buffer): Buffer {
  const signedPart = bytes.subarray(0, -CHECKSUM_BYTES);
  return Buffer.concat([signedPart, checksumOf(SCOPE.key, [signedPart])]);
}

test("an answer that was stored is found, also a long one, which is compressed", async () => {
  const it = createFixture();
  await it.start();
  assert.equal(await it.textOf(), null);
  await it.store('"0x1"');
  assert.equal(await it.textOf(), '"0x1"');
  const long = JSON.stringify({ data: `0x${"ab".repeat(50_000)}` });
  const other = tierKey(SCOPE, "eth_getCode []");
  await it.store(long, other);
  assert.equal(await it.textOf(other), long);
  assert.ok((it.server.values.get(keyOf(other))?.length ?? 0) < 10_000);
  const { lookUps, stores, state } = it.tier.report() ?? assert.fail();
  assert.deepEqual([lookUps.hit, stores.stored, state], [2, 2, "ready"]);
  it.tier.close();
  assert.equal(it.server.connections.open, 0);
});

test("equal look-ups are one operation, and one who leaves does not end it for others", async () => {
  const it = createFixture();
  await it.start();
  await it.store('"0x1"');
  const before = it.server.commands.length;
  const [first, second, third] = [it.begin(), it.begin(), it.begin()];
  first.cancel();
  await settle();
  assert.equal(it.server.commands.length - before, 2);
  assert.deepEqual(
    [first, second, third].map(({ found }) => found.length),
    [0, 1, 1],
  );
  const last = it.begin();
  last.cancel();
  await settle();
  assert.equal(last.found.length, 0);
  assert.equal(it.runtime.pendingTimers(), 0, "no timer is left");
});

test("what is not exactly a stored answer to the question is none", async () => {
  const it = createFixture();
  await it.start();
  await it.store('"0x1"');
  const key = keyOf(QUESTION);
  const good = it.server.values.get(key) ?? assert.fail();
  const changed = (change: (bytes: Buffer) => void): Buffer => {
    const bytes = Buffer.from(good);
    change(bytes);
    return signed(bytes);
  };
  const valueAt = good.length - CHECKSUM_BYTES - '"0x1"'.length;
  const longer = (by: Buffer): Buffer =>
    signed(Buffer.concat([good.subarray(0, -CHECKSUM_BYTES), by, Buffer.alloc(CHECKSUM_BYTES)]));
  const bad: Readonly<Record<string, Buffer>> = {
    junk: Buffer.from("junk"),
    "a page": Buffer.from(`<html>${" ".repeat(500)}</html>`),
    "another version": changed((bytes) => bytes.writeUInt8(1, 3)),
    "unknown flags": changed((bytes) => bytes.writeUInt8(8, 4)),
    "another generation": changed((bytes) => bytes.writeUInt8(bytes.readUInt8(6) ^ 1, 6)),
    "another question": changed((bytes) => bytes.writeUInt8(bytes.readUInt8(30) ^ 1, 30)),
    "a time to come": changed((bytes) => bytes.writeDoubleBE(it.runtime.wallMs() + 120_000, 53)),
    "a time long ago": changed((bytes) => bytes.writeDoubleBE(1, 53)),
    "no time": changed((bytes) => bytes.writeDoubleBE(Number.NaN, 53)),
    "another length": changed((bytes) => bytes.writeUInt32BE(4, 61)),
    "a name beyond its end": changed((bytes) => bytes.writeUInt16BE(60_000, 65)),
    "cut short": signed(good.subarray(0, -1)),
    "something after it": longer(Buffer.from("x")),
    "no JSON": changed((bytes) => bytes.writeUInt8(0x78, valueAt)),
    "two values": changed((bytes) => bytes.write("1,2,3", valueAt)),
    "too large": longer(Buffer.alloc(300_000, 0x20)),
    "compressed, but it is not": changed((bytes) => bytes.writeUInt8(2, 4)),
  };
  for (const [name, bytes] of Object.entries(bad)) {
    it.server.values.set(key, bytes);
    const before = it.tier.report()?.lookUps.unusable ?? 0;
    assert.equal(await it.textOf(), null, name);
    assert.equal(it.tier.report()?.lookUps.unusable, before + 1, name);
  }
  it.server.values.set(key, good);
  assert.equal(await it.textOf(), '"0x1"');
  const other = tierKey(SCOPE, "eth_getCode []");
  it.server.values.set(keyOf(other), good);
  assert.equal(await it.textOf(other), null, "under another key");
});

test("a value that grows beyond what it says when it is unpacked is none", async () => {
  const it = createFixture();
  await it.start();
  await it.store(JSON.stringify("a".repeat(200_000)));
  const key = keyOf(QUESTION);
  const bytes = Buffer.from(it.server.values.get(key) ?? assert.fail());
  bytes.writeUInt32BE(5_000, 61);
  it.server.values.set(key, signed(bytes));
  assert.equal(await it.textOf(), null);
  assert.equal(it.tier.report()?.lookUps.unusable, 1);
});

for (const seed of seedsTo(5)) {
  test(`bytes changed by chance give the answer that was stored, or none (seed ${seed})`, async () => {
    const it = createFixture();
    const random = seededRandom(seed);
    await it.start();
    await it.store('{"number":"0x50"}');
    const key = keyOf(QUESTION);
    const good = it.server.values.get(key) ?? assert.fail();
    for (let round = 0; round < 200; round++) {
      const bytes = Buffer.from(good);
      const at = Math.floor(random() * good.length);
      bytes[at] = Math.floor(random() * 256);
      it.server.values.set(key, bytes);
      const text = await it.textOf();
      assert.equal(text, bytes.equals(good) ? '{"number":"0x50"}' : null, `byte ${at}`);
    }
  });
}

for (const [what, value] of [
  ["a value", '{"number":"0x50","logs":[{"data":"0x1234"}]}'],
  ["one that is compressed", JSON.stringify({ data: `0x${"ab".repeat(4_000)}` })],
] as const)
  test(`no single bit of what is stored can flip without being refused (${what})`, async () => {
    const it = createFixture();
    await it.start();
    await it.store(value);
    const key = keyOf(QUESTION);
    const good = it.server.values.get(key) ?? assert.fail();
    const told: number[] = [];
    for (let bit = 0; bit < 8 * good.length; bit++) {
      const bytes = Buffer.from(good);
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      it.server.values.set(key, bytes);
      if ((await it.textOf()) !== null) told.push(bit);
    }
    assert.deepEqual(told, []);
    assert.equal(it.tier.report()?.lookUps.unusable, 8 * good.length);
    it.server.values.set(key, good);
    assert.equal(await it.textOf(), value);
  });

test("a value is told by nodes with the same secret and providers, under its own key alone", async () => {
  const it = createFixture();
  await it.start();
  await it.store('"0x1"');
  const description = ["team", 1, []];
  const scopes = {
    same: tierScope(description, SECRET),
    "another secret": tierScope(description, `${SECRET} no more`),
    none: tierScope(description, null),
  };
  const told = async (scope: TierScope): Promise<string | null> =>
    it.textOf({ scope, digest: QUESTION.digest });
  assert.equal(await told(scopes.same), '"0x1"');
  assert.equal(await told(scopes["another secret"]), null);
  assert.equal(await told(scopes.none), null);
  // What was moved, with its head made to say so, by one who does not have the key.
  const other = tierKey(SCOPE, "eth_getCode []");
  const moved = Buffer.from(it.server.values.get(keyOf(QUESTION)) ?? assert.fail());
  other.digest.copy(moved, 21);
  it.server.values.set(keyOf(other), moved);
  assert.equal(await it.textOf(other), null);
  assert.equal(it.tier.report()?.lookUps.unusable, 3);
});

test("a server that is silent costs each call 20 ms, and then nothing until it answers", async () => {
  const it = createFixture();
  await it.start();
  await it.store('"0x1"');
  it.server.mode = "silent";
  const calls = Array.from({ length: 6 }, (_, at) => it.begin(tierKey(SCOPE, `call ${at}`)));
  await settle();
  it.runtime.advance(19);
  assert.ok(calls.every(({ found }) => found.length === 0));
  it.runtime.advance(1);
  assert.ok(calls.every(({ found }) => found[0]?.answer === null));
  assert.equal(it.tier.isUsable(SCOPE), false);
  assert.equal(it.tier.report()?.state, "open");
  assert.equal(it.server.connections.open, 0, "no reply that comes later is read");
  assert.equal(it.logged.length, 1);
  assert.doesNotMatch(JSON.stringify(it.logged), /password|localhost/);

  // It is tried again in the background, while nobody asks it.
  it.runtime.advance(1_200);
  await settle();
  assert.equal(it.server.connections.opened, 2);
  it.runtime.advance(3_000);
  await settle();
  assert.deepEqual([it.server.connections.open, it.tier.report()?.state], [0, "open"]);
  it.server.mode = "up";
  it.runtime.advance(2_400);
  await settle();
  assert.equal(it.tier.report()?.state, "ready");
  assert.equal(await it.textOf(), '"0x1"');
  assert.equal(it.logged.length, 2, "one warning, and one line when it answers again");
});

test("a server that goes away ends what is under way at once, and is tried ever less often", async () => {
  const it = createFixture();
  await it.start();
  it.server.mode = "silent";
  const { found } = it.begin();
  await settle();
  it.server.mode = "down";
  it.server.cut();
  await settle();
  assert.equal(found.length, 1);
  let attempts = 0;
  for (let second = 0; second < 300; second++) {
    it.runtime.advance(1_000);
    await setImmediate();
    await setImmediate();
    if (it.tier.report()?.state === "connecting") attempts += 1;
  }
  assert.equal(it.tier.report()?.state, "open");
  assert.ok(attempts <= 16, `${attempts} attempts`);
  it.tier.close();
  assert.equal(it.runtime.pendingTimers(), 0);
});

test("a server that is full is read from all the same", async () => {
  const it = createFixture();
  await it.start();
  await it.store('"0x1"');
  const { generation } = await it.lookUp();
  it.server.mode = "full";
  for (let n = 0; n < 20; n++) {
    it.tier.store(tierKey(SCOPE, `${n}`), generation ?? assert.fail(), it.answer("1"));
    await settle();
  }
  assert.equal(it.tier.report()?.stores.error, 20);
  assert.equal(await it.textOf(), '"0x1"');
});

test("no more is under way than the bounds say: others go on, and answers are dropped", async () => {
  const it = createFixture();
  await it.start();
  const { generation } = await it.lookUp();
  const calls = Array.from({ length: 200 }, (_, n) => it.begin(tierKey(SCOPE, `call ${n}`)));
  it.runtime.advance(0);
  assert.equal(calls.filter(({ found }) => found.length === 1).length, 72);
  for (let n = 0; n < 100; n++)
    it.tier.store(tierKey(SCOPE, `${n}`), generation ?? assert.fail(), it.answer("1"));
  await settle();
  const { lookUps, stores } = it.tier.report() ?? assert.fail();
  assert.deepEqual([lookUps.skipped, stores.dropped, stores.stored], [72, 36, 64]);
});

test("a purge removes a scope for all, and nothing that was asked for before it is found after", async () => {
  const it = createFixture();
  await it.start();
  await it.store('"0x1"');
  const { generation } = await it.lookUp();
  const other = tierKey(tierScope("other", SECRET), "x");
  await it.lookUp(other);
  await it.store('"0x9"', other);
  const under = it.begin();
  const purged = it.tier.purge([SCOPE]);
  assert.equal(under.found[0]?.answer, null, "what is under way finds nothing");
  await settle();
  assert.equal(await purged, true);
  assert.equal(await it.textOf(), null);
  it.tier.store(QUESTION, generation ?? assert.fail(), it.answer('"0x2"'));
  await settle();
  assert.equal(await it.textOf(), null, "it was asked for before the purge");
  assert.equal(await it.textOf(other), '"0x9"');
});

test("a purge that does not reach the server is made up for before the scope is used again", async () => {
  const it = createFixture();
  await it.start();
  await it.store('"0x1"');
  it.server.mode = "down";
  it.server.cut();
  assert.equal(await it.tier.purge([SCOPE]), false);
  it.server.mode = "up";
  it.runtime.advance(1_200);
  for (let turn = 0; turn < 40 && !it.tier.isUsable(SCOPE); turn++) {
    assert.equal(it.tier.isUsable(SCOPE), false);
    await setImmediate();
  }
  assert.equal(await it.textOf(), null);
});

test("where the generation is lost or is anything else, what was stored is gone", async () => {
  for (const lost of [null, Buffer.alloc(3), Buffer.alloc(100)]) {
    const it = createFixture();
    await it.start();
    await it.store('"0x1"');
    if (lost === null) it.server.values.delete(GENERATION_KEY);
    else it.server.values.set(GENERATION_KEY, lost);
    assert.equal(await it.textOf(), null);
    await settle();
    assert.equal(await it.textOf(), null);
    await it.store('"0x2"');
    assert.equal(await it.textOf(), '"0x2"');
  }
});

test("another server is used from the moment it is named, and none costs nothing", async () => {
  const it = createFixture();
  assert.equal(it.tier.report(), null);
  assert.equal(it.tier.isUsable(SCOPE), false);
  await it.start();
  it.tier.use("redis://elsewhere");
  await settle();
  assert.deepEqual([it.server.connections.open, it.server.connections.opened], [1, 2]);
  it.tier.use(null);
  assert.equal(it.server.connections.open, 0);
  assert.equal(it.runtime.pendingTimers(), 0);
});
