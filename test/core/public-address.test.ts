// Where users may send the service: a corpus of URLs, every special range at both of its ends, and
// spellings of one address that must not differ.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import {
  isAddress,
  isLoopbackAddress,
  isPublicAddress,
  reachedBy,
  readUserUrl,
} from "../../src/core/public-address.ts";

interface Row {
  readonly url: string;
  readonly expected: "allowed" | "refused";
  readonly why?: string;
}

const CORPUS: readonly Row[] = JSON.parse(
  readFileSync(new URL("../data/ssrf.json", import.meta.url), "utf8"),
);

test(
  "the corpus: what is public is allowed, every disguise of what is not is refused, and no " +
    "reason repeats the URL",
  () => {
    assert.ok(CORPUS.length >= 60);
    for (const { url, expected, why } of CORPUS) {
      const read = readUserUrl(url);
      assert.equal(
        read.kind,
        expected === "allowed" ? "url" : "refused",
        `${url} (${why ?? "public"})`,
      );
      if (read.kind === "refused")
        assert.ok(url.length < 8 || !read.reason.includes(url), read.reason);
      else assert.equal(readUserUrl(read.url).kind, "url", `${read.url} is read as it was written`);
    }
  },
);

test("a URL comes back in the spelling that every client uses", () => {
  const spelled = (url: string) => {
    const read = readUserUrl(url);
    return read.kind === "url" ? [read.url, read.host, read.transport] : read.reason;
  };
  assert.deepEqual(spelled("HTTPS://ETH.Example.com:443/A?b"), [
    "https://eth.example.com/A?b",
    "eth.example.com",
    "http",
  ]);
  assert.deepEqual(spelled("wss://BÜCHER.example/x"), [
    "wss://xn--bcher-kva.example/x",
    "xn--bcher-kva.example",
    "ws",
  ]);
  assert.deepEqual(spelled("http://0x8.0x8.010.8:8545"), [
    "http://8.8.8.8:8545/",
    "8.8.8.8",
    "http",
  ]);
  assert.deepEqual(spelled("ws://[2606:4700:0:0::1111]"), [
    "ws://[2606:4700::1111]/",
    "2606:4700::1111",
    "ws",
  ]);
});

test("a URL that is too long only when it is escaped is refused at once, not later", () => {
  assert.equal(readUserUrl(`https://eth.example.com/${"é".repeat(700)}`).kind, "refused");
  assert.equal(readUserUrl(`https://eth.example.com/${"é".repeat(300)}`).kind, "url");
});

test("operators may allow private ranges, but nothing else; and a public service never calls itself", () => {
  const rules = { allowPrivate: true, ownHost: null };
  for (const url of ["http://127.0.0.1:8545/", "ws://localhost:8546/", "http://node:8545/"])
    assert.equal(readUserUrl(url, rules).kind, "url", url);
  for (const url of [
    "http://u:p@localhost:8545/",
    "ftp://localhost/",
    "http://localhost:22/",
    "http://localhost:8545/#x",
  ])
    assert.equal(readUserUrl(url, rules).kind, "refused", url);
  const own = readUserUrl("https://RPC.svc.example:8443/rpc/1", {
    allowPrivate: false,
    ownHost: "rpc.svc.example",
  });
  assert.match(own.kind === "refused" ? own.reason : "", /this service itself/);
});

/** First and last address of each range that is not public, and the neighbours outside. */
const EDGES: readonly (readonly [
  first: string,
  last: string,
  before: string | null,
  after: string | null,
])[] = [
  ["0.0.0.0", "0.255.255.255", null, "1.0.0.0"],
  ["10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"],
  ["100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"],
  ["127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"],
  ["168.63.129.16", "168.63.129.16", "168.63.129.15", "168.63.129.17"],
  ["169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"],
  ["172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"],
  ["192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"],
  ["192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"],
  ["192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"],
  ["192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"],
  ["198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"],
  ["198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"],
  ["203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"],
  ["224.0.0.0", "255.255.255.255", "223.255.255.255", null],
  ["::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", null, "2000::"],
  [
    "2001::",
    "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:200::",
  ],
  [
    "2001:db8::",
    "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db9::",
  ],
  [
    "3fff::",
    "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
    "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "3fff:1000::",
  ],
  [
    "4000::",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    null,
  ],
];

test("every range ends where it ends", () => {
  for (const [first, last, before, after] of EDGES) {
    assert.deepEqual(
      [isPublicAddress(first), isPublicAddress(last)],
      [false, false],
      `${first}–${last}`,
    );
    for (const outside of [before, after])
      if (outside !== null) assert.equal(isPublicAddress(outside), true, outside);
  }
});

test("addresses that carry an IPv4 address are as public as that one, however they are written", () => {
  const byte = fc.integer({ min: 0, max: 255 });
  fc.assert(
    fc.property(byte, byte, byte, byte, (a, b, c, d) => {
      const plain = `${a}.${b}.${c}.${d}`;
      const hex = (x: number, y: number): string => (x * 256 + y).toString(16);
      const said = isPublicAddress(plain);
      for (const carrier of [
        `::ffff:${plain}`,
        `0:0:0:0:0:FFFF:${hex(a, b)}:${hex(c, d)}`,
        `64:ff9b::${plain}`,
        `2002:${hex(a, b)}:${hex(c, d)}::1`,
      ])
        assert.equal(isPublicAddress(carrier), said, carrier);
      for (const host of [
        plain,
        String(((a * 256 + b) * 256 + c) * 256 + d),
        `0x${a.toString(16)}.${b}.${c}.0${d.toString(8)}`,
      ])
        assert.equal(readUserUrl(`http://${host}/`).kind, said ? "url" : "refused", host);
    }),
    { numRuns: 500 },
  );
});

test("addresses that only look as if they carried a public IPv4 address are not public", () => {
  for (const address of [
    "::8.8.8.8",
    "::ffff:0:8.8.8.8",
    "64:ff9b:1::8.8.8.8",
    "64:ff9b::1:8.8.8.8",
    "64:ff9b:0:0:1::8.8.8.8",
    "192.31.196.1",
    "192.175.48.1",
    "192.52.193.1",
    "2620:4f:8000::1",
  ])
    assert.deepEqual([isAddress(address), isPublicAddress(address)], [true, false], address);
});

test("a connection to an address that carries an IPv4 address reaches that one", () => {
  for (const [address, reached] of [
    ["::ffff:1.2.3.4", "1.2.3.4"],
    ["64:ff9b::102:304", "1.2.3.4"],
    ["2002:102:304::9", "1.2.3.4"],
    ["2606:4700::1", "2606:4700::1"],
    ["1.2.3.4", "1.2.3.4"],
    ["a.example", "a.example"],
  ] as const)
    assert.equal(reachedBy(address), reached, address);
});

test("what is no address is not public", () => {
  for (const text of [
    "",
    "example.com",
    "1.2.3",
    "1.2.3.256",
    "01.2.3.4",
    "0x8.8.8.8",
    "8.8.8.8 ",
    "::1%lo",
    "fe80::1%eth0",
    "1::2::3",
    ":::",
    "[2606::1]",
  ])
    assert.deepEqual([isPublicAddress(text), isAddress(text)], [false, false], text);
  assert.deepEqual([isAddress("8.8.8.8"), isAddress("::1")], [true, true]);
});

test("only this machine's own addresses are loopback", () => {
  for (const it of [
    "127.0.0.1",
    "127.255.255.255",
    "::1",
    "0:0:0:0:0:0:0:1",
    "::ffff:127.8.8.8",
    "::FFFF:7f00:1",
  ])
    assert.equal(isLoopbackAddress(it), true, it);
  for (const it of [
    "",
    "localhost",
    "0.0.0.0",
    "128.0.0.1",
    "126.255.255.255",
    "127.0.0.1.example",
    "::",
    "::2",
    "1::1",
    "::127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
  ])
    assert.equal(isLoopbackAddress(it), false, it);
});
