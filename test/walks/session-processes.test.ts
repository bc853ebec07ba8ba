// Pay per call served by several processes: two nodes on one PostgreSQL, and two workers over the
// embedded store. A stock client pays for calls that reach either, one voucher buys one call
// wherever it is shown, and a node that is killed takes nothing with it.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SESSION } from "../../src/devnet/payments/wallets.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { newDatabase, postgresAvailability } from "../fakes/postgres.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { PATIENT } from "../fakes/service.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";
import { assertBooked, callOf, chainsOfFile, stockClient, until } from "./session-fixture.ts";

const postgres = postgresAvailability();
const chains = await chainsOfFile();

const PRICE = 15n;
const SECRET = "a secret of 32 bytes, for tests only";
const PATH = "/rpc/session/load-balanced/ethereum";

test("vouchers of one channel arrive at two nodes: each buys one call, also shown to both at once, " +
  "and the channel of a node that is killed is served by the other", {
  skip: postgres.kind === "no" && postgres.reason,
}, async (t) => {
  const { url, drop } = await newDatabase();
  const upstream = await scriptedUpstream();
  const start = (): Promise<ServiceProcess> =>
    startProcess(t, configOf(upstream.url, { cluster: { enabled: true } }), {
      SVC_SECRET: SECRET,
      DATABASE_URL: url,
    });
  const nodes = await Promise.all([start(), start()]);
  t.after(async () => {
    await upstream.close();
    for (const node of nodes) node.signal("SIGKILL");
    await Promise.all(nodes.map((node) => node.ended));
    await drop();
  });
  const living = [...nodes];
  const paid: { readonly path: string; readonly init: RequestInit }[] = [];
  const send: typeof fetch = (input, init = {}) => {
    if (new Headers(init.headers).has("authorization")) paid.push({ path: PATH, init });
    // By payments: a call is two requests where its price has to be asked for first.
    const node = living[paid.length % living.length];
    return onOwnConnection(String(input).replace("http://service", node?.url ?? ""), init);
  };
  const { manager } = stockClient(chains, chains.payer, { fetch: send });
  let answered = 0n;
  const call = async (): Promise<number> => {
    const id = Number(answered) + 1;
    const response = await manager.fetch(`http://service${PATH}`, callOf("eth_gasPrice", id));
    if (response.status === 200) answered++;
    return response.status;
  };
  for (let calls = 0; calls < 20; calls++) assert.equal(await call(), 200, `call ${calls}`);
  assert.deepEqual(
    await Promise.all(nodes.map(channelsOf)),
    ["1", "1"],
    "both nodes took calls of the channel",
  );

  // The newest voucher once more, for other requests, at both nodes at the same time.
  const asked = upstream.asked.length;
  const last = paid.at(-1);
  assert.ok(last !== undefined);
  const again = await Promise.all(
    [0, 1, 2, 3].map((at) => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 900 + at, method: "eth_gasPrice" });
      return fetch(`${nodes[at % 2]?.url}${last.path}`, { ...last.init, body });
    }),
  );
  assert.deepEqual(
    again.map(({ status }) => status),
    [402, 402, 402, 402],
  );
  assert.equal(upstream.asked.length, asked, "no provider was asked for them");

  living.splice(1);
  const [survivor, killed] = nodes;
  killed?.signal("SIGKILL");
  await killed?.ended;
  await until(async () => (await call()) === 200, "the other node serves the channel");
  for (let calls = 0; calls < 3; calls++) assert.equal(await call(), 200);
  const receipt = await manager.close();
  survivor?.signal("SIGTERM");
  await survivor?.ended;
  const store = await openStore({ url, dataDir: "" });
  try {
    const { spentUnits, settledUnits } = await assertBooked(store);
    assert.deepEqual(
      [receipt?.spent, settledUnits, spentUnits],
      [String(spentUnits), spentUnits, answered * PRICE],
    );
    assert.equal(BigInt(upstream.asked.length), answered);
  } finally {
    await store.close();
  }
});

test("two workers over the embedded store take the calls of one channel", async (t) => {
  const upstream = await scriptedUpstream();
  const dataDir = mkdtempSync(join(tmpdir(), "svc-session-workers-"));
  t.after(async () => {
    await upstream.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const config = configOf(upstream.url, { data_dir: dataDir, server: { workers: 2 } });
  const service = await startProcess(t, config, { SVC_SECRET: SECRET });
  const { manager } = stockClient(chains, chains.otherPayers[1] ?? chains.payer, {
    fetch: onOwnConnection,
  });
  let answered = 0n;
  await until(async () => {
    const id = Number(answered) + 1;
    const response = await manager.fetch(`${service.url}${PATH}`, callOf("eth_gasPrice", id));
    assert.equal(response.status, 200, await response.clone().text());
    answered++;
    return answered >= 12n && (await channelsOf(service)) === "2";
  }, "both workers have the channel");
  const receipt = await manager.close();
  service.signal("SIGTERM");
  assert.equal(await service.ended, 0);
  const store = await openStore({ url: "", dataDir });
  try {
    const { spentUnits, settledUnits } = await assertBooked(store);
    assert.deepEqual(
      [receipt?.spent, settledUnits, spentUnits],
      [String(spentUnits), spentUnits, answered * PRICE],
    );
  } finally {
    await store.close();
  }
});

/** Number of channels in the memory of a service. */
async function channelsOf({ url }: Pick<ServiceProcess, "url">): Promise<string> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return /^svc_session_channels(?:\{[^}]*\})? (\d+)$/m.exec(text)?.[1] ?? "";
}

/** As `fetch`, on a connection of its own: each is given to the worker whose turn it is. */
const onOwnConnection: typeof fetch = (input, init = {}) =>
  new Promise((resolve, reject) => {
    const headers = Object.fromEntries(new Headers(init.headers));
    const options = { method: init.method ?? "GET", headers, agent: false };
    const sent = request(String(input), options, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => void parts.push(part));
      response.on("end", () => {
        const answer = new Headers();
        for (let at = 0; at < response.rawHeaders.length; at += 2)
          answer.append(response.rawHeaders[at] ?? "", response.rawHeaders[at + 1] ?? "");
        const status = response.statusCode ?? 0;
        const body = parts.length === 0 ? null : Buffer.concat(parts);
        resolve(new Response(body, { status, headers: answer }));
      });
    });
    sent.on("error", reject);
    sent.end(typeof init.body === "string" ? init.body : undefined);
  });

function configOf(provider: string, more: Readonly<Record<string, unknown>>): string {
  const { chainId, rpcUrl, token } = chains.tempo;
  const profile = (id: string) => ({
    chains: { ethereum: { providers: [{ id, url: provider }] } },
  });
  const rail = {
    kind: "session",
    rpc_url: rpcUrl,
    chain_id: chainId,
    recipient: SESSION.address,
    token: token.address,
    wallet_key: SESSION.key,
    deposit_usd: "1",
    settle_usd: "0.00006",
  };
  return JSON.stringify({
    chains: { ethereum: { chain_id: 1, name: "Ethereum", block_time_ms: 12_000 } },
    profiles: { premium: profile("paid"), public: profile("open") },
    deadlines: PATIENT,
    hosted: { enabled: true, payments: { rails: [rail], wait_ms: 60_000 } },
    ...more,
  });
}
