// Which encoding a caller gets, and that the work of compressing is bounded: two at a time, and
// each leave is given back on every way out.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import type { Addressed } from "../../../src/web/http/client-address.ts";
import { trustedProxiesOf } from "../../../src/web/http/client-address.ts";
import { acceptedEncoding, Compression } from "../../../src/web/rpc/answers/compression.ts";
import type { BodySink } from "../../../src/web/rpc/caller.ts";

const ACCEPTED: readonly (readonly [
  header: string | undefined,
  encoding: "zstd" | "gzip" | null,
])[] = [
  [undefined, null],
  ["", null],
  ["identity", null],
  ["br, deflate", null],
  ["gzip", "gzip"],
  ["GZIP", "gzip"],
  ["gzip, deflate, br, zstd", "zstd"],
  ["gzip;q=1.0, zstd;q=0.5", "gzip"],
  ["gzip;q=0, zstd;q=0", null],
  ["gzip;q=0", null],
  ["*", "zstd"],
  ["*;q=0", null],
  ["zstd;q=0, *", "gzip"],
  ["gzip;q=0.001", "gzip"],
  ["gzip;q=2", null],
  ["gzip;level=9", null],
  ["gzip zstd", null],
  [`gzip${" ".repeat(2_000)}`, null],
];

for (const [header, encoding] of ACCEPTED) {
  test(`Accept-Encoding: ${header?.slice(0, 40)} gets ${encoding}`, () =>
    assert.equal(acceptedEncoding(header), encoding));
}

function asker(headers: Record<string, string>, address = "203.0.113.9"): Addressed {
  return { address, header: (name) => headers[name] };
}

test("only callers on public addresses are concerned, as the trusted proxies tell", () => {
  const compression = new Compression(trustedProxiesOf(["10.0.0.1"]));
  const concerned = (address: string, forwarded?: string): boolean =>
    compression.concerns(
      asker(forwarded === undefined ? {} : { "x-forwarded-for": forwarded }, address),
    );
  assert.deepEqual(
    [concerned("8.8.8.8"), concerned("::ffff:8.8.8.8"), concerned("2001:4860:4860::8888")],
    [true, true, true],
  );
  assert.deepEqual(
    [concerned("127.0.0.1"), concerned("192.168.1.2"), concerned("::1"), concerned("")],
    [false, false, false, false],
  );
  assert.deepEqual(
    [
      concerned("10.0.0.1", "8.8.8.8"),
      concerned("10.0.0.1", "10.0.0.7"),
      concerned("127.0.0.1", "8.8.8.8"),
    ],
    [true, false, false],
  );
});

const ANY = asker({ "accept-encoding": "gzip" });

test("two at a time; a third is sent as it is, and each way out gives its leave back", async () => {
  const compression = new Compression(trustedProxiesOf([]));
  const [first, second] = [compression.take(ANY), compression.take(ANY)];
  assert.ok(first !== null && second !== null);
  assert.equal(compression.take(ANY), null);
  assert.equal(compression.take(asker({})), null, "a caller that accepts nothing takes no leave");
  const bytes = randomBytes(50_000);
  assert.deepEqual(
    gunzipSync(
      Buffer.concat(
        (await first.whole([bytes.subarray(0, 7), bytes.subarray(7)])) ?? assert.fail(),
      ),
    ),
    bytes,
  );
  const third = compression.take(ANY) ?? assert.fail("the first gave its leave back");
  assert.equal(compression.take(ANY), null);
  const sink = collect();
  const body = second.body(sink, () => {});
  body.write(bytes, () => {});
  body.abandon();
  body.abandon();
  const fourth = compression.take(ANY) ?? assert.fail("the second gave its leave back");
  assert.equal(compression.take(ANY), null, "and only one");
  third.body(collect(), () => {}).destroy();
  await fourth.whole([bytes]);
  assert.ok(compression.take(ANY) !== null && compression.take(ANY) !== null);
});

/** Waits for work in other threads; ends with the test. */
async function turnsUntil(happened: () => boolean): Promise<void> {
  while (!happened()) await new Promise((resolve) => setImmediate(resolve));
}

interface Collected extends BodySink {
  readonly parts: Buffer[];
  readonly ended: Promise<void>;
}

/** A sink that keeps what it gets and lets each part wait for a turn. */
function collect(): Collected {
  const parts: Buffer[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  return {
    parts,
    ended: promise,
    write(chunk, written) {
      parts.push(Buffer.from(chunk));
      setImmediate(written);
      return chunk.length;
    },
    end: resolve,
    drained: (run) => void setImmediate(run),
    destroy: resolve,
  };
}

for (const [encoding, read] of [
  ["gzip", gunzipSync],
  ["zstd", zstdDecompressSync],
] as const) {
  test(`a body in pieces arrives whole as ${encoding}, and every piece is given back`, async () => {
    const compression = new Compression(trustedProxiesOf([]));
    const job = compression.take(asker({ "accept-encoding": encoding })) ?? assert.fail();
    const sink = collect();
    const body = job.body(sink, () => {});
    const pieces = Array.from({ length: 200 }, (_, n) => randomBytes(1 + ((n * 7_919) % 60_000)));
    let written = 0;
    for (const piece of pieces) {
      assert.ok(
        body.write(piece, () => written++) > 0,
        "it is read by another thread: it cannot be reused at once",
      );
    }
    body.end();
    await sink.ended;
    assert.equal(written, pieces.length);
    assert.ok(Buffer.concat(pieces).equals(read(Buffer.concat(sink.parts))));
  });
}

for (const encoding of ["gzip", "zstd"]) {
  test(`${encoding}: a caller that stops reading and leaves keeps no memory: every piece is given ` +
    "back, and its leave", {
    timeout: 60_000,
  }, async () => {
    const compression = new Compression(trustedProxiesOf([]));
    const job = compression.take(asker({ "accept-encoding": encoding })) ?? assert.fail();
    let unsent = 0;
    const full = Promise.withResolvers<void>();
    const stuck: BodySink = {
      write(chunk) {
        unsent += chunk.length;
        return unsent;
      },
      end: () => assert.fail("nothing is said to a caller that left"),
      drained: () => full.resolve(),
      destroy: () => {},
    };
    const body = job.body(stuck, () => {});
    const pieces = Array.from({ length: 12 }, () => randomBytes(130_000));
    let written = 0;
    for (const piece of pieces) body.write(piece, () => written++);
    await full.promise;
    assert.ok(written < pieces.length, "the reader is slower than the answer");
    body.abandon();
    await turnsUntil(() => written === pieces.length);
    assert.ok(
      compression.take(ANY) !== null && compression.take(ANY) !== null,
      "its leave is back as well",
    );
  });
}
