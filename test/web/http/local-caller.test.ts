// Who counts as a caller on this machine, and that on a devnet instance only such a caller may
// create keys without end.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openStore } from "../../../src/shared/store/store.ts";
import { isLocalCaller } from "../../../src/web/http/local-caller.ts";
import { type Served, type ServedApi, serveApi } from "../../fakes/hosted.ts";

const HERE = "http://127.0.0.1:4000";

test("a loopback address is local, unless a page of another origin sent the request", () => {
  const rows: readonly (readonly [
    address: string,
    origin: string | undefined,
    baseUrl: string,
    publicUrl: string | null,
    local: boolean,
  ])[] = [
    ["127.0.0.1", undefined, HERE, null, true],
    ["127.9.9.9", undefined, HERE, null, true],
    ["::1", undefined, HERE, null, true],
    ["10.0.0.1", undefined, HERE, null, false],
    ["203.0.113.7", undefined, HERE, null, false],
    ["", undefined, HERE, null, false],
    ["127.0.0.1.evil.test", undefined, HERE, null, false],
    ["127.0.0.1", "http://127.0.0.1:4000", HERE, null, true],
    ["127.0.0.1", "http://localhost:4000", "http://localhost:4000", null, true],
    ["::1", "http://[::1]:4000", "http://[::1]:4000", null, true],
    ["127.0.0.1", "http://localhost:3000", "http://localhost:4000", null, false],
    ["127.0.0.1", "https://localhost:4000", "http://localhost:4000", null, false],
    ["127.0.0.1", "null", HERE, null, false],
    ["127.0.0.1", "", HERE, null, false],
    ["127.0.0.1", "https://evil.test", HERE, null, false],
    // A name of the page's own site that was pointed at this machine.
    ["127.0.0.1", "http://evil.test:4000", "http://evil.test:4000", null, false],
    [
      "127.0.0.1",
      "http://localhost.evil.test:4000",
      "http://localhost.evil.test:4000",
      null,
      false,
    ],
    ["127.0.0.1", "https://rpc.example", "https://rpc.example", "https://rpc.example", true],
    ["127.0.0.1", "http://127.0.0.1:4000", "https://rpc.example", "https://rpc.example", false],
    ["10.0.0.1", "https://rpc.example", "https://rpc.example", "https://rpc.example", false],
  ];
  for (const [address, origin, baseUrl, publicUrl, local] of rows)
    assert.equal(
      isLocalCaller(
        { headers: origin === undefined ? {} : { origin } },
        { address, baseUrl, publicUrl },
      ),
      local,
      `${address} ${origin} ${baseUrl}`,
    );
});

async function served(t: TestContext, overrides: Served): Promise<ServedApi> {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-local-"));
  const store = await openStore({ url: "", dataDir });
  t.after(async () => {
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return serveApi(t, store, overrides);
}

/** Statuses of so many requests for keys, beyond what the limit of eight an hour lets through. */
async function statuses(
  api: ServedApi,
  from: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<readonly number[]> {
  const all = new Set<number>();
  for (let n = 0; n < 10; n++) {
    const what = n % 2 === 0 ? "POST /api/v1/agent/keys" : "POST /api/v1/keys";
    all.add((await api.call(what, { from, headers, body: {} })).status);
  }
  return [...all].sort();
}

test("a devnet instance limits no caller on this machine; others, and pages of other sites, it does", async (t) => {
  const api = await served(t, { devnet: true });
  assert.deepEqual(await statuses(api, "127.0.0.1"), [201]);
  assert.deepEqual(await statuses(api, "::1"), [201]);
  assert.deepEqual(await statuses(api, "203.0.113.9"), [201, 429], "behind a trusted proxy");
  assert.deepEqual(await statuses(api, "127.0.0.2", { origin: "https://evil.test" }), [201, 429]);
});

test("without devnet a caller on this machine is limited like everybody", async (t) => {
  const api = await served(t, {});
  assert.deepEqual(await statuses(api, "127.0.0.1"), [201, 429]);
});

test("what a caller says of itself through a proxy that is not trusted changes nothing", async (t) => {
  const api = await served(t, { devnet: true, trustedProxies: [] });
  assert.deepEqual(
    await statuses(api, "203.0.113.9"),
    [201],
    "the connection is from this machine",
  );
});
