// Measures the cost of a pay-per-call request compared with a call with a key: CPU of the service's
// process and of its main thread per call, and calls per second. Uses a local Tempo chain with the
// stand-in for channels, vouchers signed in advance, and one provider that answers at once. Does
// not measure the speed of the chain.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Challenge, Credential } from "mppx";
import { Session } from "mppx/tempo";
import { SESSION } from "../src/devnet/payments/wallets.ts";
import { startPaymentChains } from "../test/fakes/payment-chains.ts";
import { newDatabase } from "../test/fakes/postgres.ts";
import { startProcess } from "../test/fakes/process.ts";
import { scriptedUpstream } from "../test/fakes/upstream.ts";
import { callOf, stockClient } from "../test/walks/session-fixture.ts";
import { childPids, cpuUs } from "./procfs.ts";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "1200" },
    channels: { type: "string", default: "12" },
    workers: { type: "string", default: "1" },
    postgres: { type: "boolean", default: false },
  },
});
const CALLS = Number(values.calls);
const CHANNELS = Number(values.channels);
const PRICE = 15n;

type Client = ReturnType<typeof stockClient>;

/** A channel of one wallet, and the amount promised over it. */
interface Channel extends Pick<Client, "client" | "account"> {
  readonly descriptor: Parameters<typeof Session.Precompile.Channel.computeId>[0] extends infer It
    ? Omit<It, "chainId" | "escrow">
    : never;
  readonly channelId: `0x${string}`;
  promised: bigint;
}

const endings: (() => Promise<void>)[] = [];
const t = { after: (run: () => Promise<void>) => void endings.push(run) };
try {
  await measure();
} finally {
  for (const run of endings.toReversed()) await run();
}

async function measure(): Promise<void> {
  const chains = await startPaymentChains();
  t.after(() => chains.close());
  const upstream = await scriptedUpstream();
  const dataDir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  t.after(async () => {
    await upstream.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const profile = (id: string) => ({
    chains: { ethereum: { providers: [{ id, url: upstream.url }] } },
  });
  const { rpcUrl, chainId, token } = chains.tempo;
  const rail = {
    kind: "session",
    rpc_url: rpcUrl,
    chain_id: chainId,
    recipient: SESSION.address,
    token: token.address,
    wallet_key: SESSION.key,
  };
  const config = {
    data_dir: dataDir,
    chains: { ethereum: { chain_id: 1, name: "Ethereum", block_time_ms: 12_000 } },
    server: { workers: Number(values.workers) },
    cache: "off",
    coalesce: "off",
    profiles: { premium: profile("paid"), public: profile("open") },
    hosted: {
      enabled: true,
      buckets: { managed: { per_second: 10_000, burst: 20_000 } },
      payments: { rails: [rail] },
    },
  };
  const service = await startProcess(t, JSON.stringify(config), await storeOf());
  const url = `${service.url}/rpc/session/load-balanced/ethereum`;
  const wallets = [chains.payer, ...chains.otherPayers];
  const channels: Channel[] = [];
  for (let at = 0; at < CHANNELS; at++) {
    const { manager, client, account } = stockClient(
      chains,
      wallets[at % wallets.length] ?? chains.payer,
    );
    await manager.fetch(url, callOf("eth_gasPrice"));
    const { state } = manager;
    if (state.status !== "active") throw new Error("no channel was opened");
    channels.push({
      client,
      account,
      descriptor: state.descriptor,
      channelId: state.channelId,
      promised: PRICE,
    });
  }
  const signed = async (channel: Channel): Promise<unknown> => {
    channel.promised += PRICE;
    const voucher = { channelId: channel.channelId, cumulativeAmount: channel.promised };
    const signature = await Session.Precompile.Voucher.signVoucher(
      channel.client,
      channel.account,
      voucher,
      Session.Precompile.Constants.tip20ChannelEscrow,
      chainId,
    );
    return {
      action: "voucher",
      channelId: channel.channelId,
      descriptor: channel.descriptor,
      cumulativeAmount: String(channel.promised),
      signature,
    };
  };
  const challenged = async (id: number): Promise<Challenge.Challenge> =>
    Challenge.fromResponse(await fetch(url, callOf("eth_gasPrice", id)));
  const paid = async (
    id: number,
    challenge: Challenge.Challenge,
    payload: unknown,
  ): Promise<void> => {
    const headers = {
      "content-type": "application/json",
      authorization: Credential.serialize({ challenge, payload }),
    };
    const response = await fetch(url, { ...callOf("eth_gasPrice", id), headers });
    if (response.status !== 200 || !(await response.text()).includes(`"id":${id},`))
      throw new Error(`call ${id} was answered ${response.status}`);
  };
  const phase = async (
    name: string,
    call: (id: number, channel: Channel, payload: unknown) => Promise<void>,
    vouchers: boolean,
  ): Promise<void> => {
    const perChannel = Math.floor(CALLS / CHANNELS);
    const payloads: unknown[][] = [];
    for (const channel of channels) {
      const own: unknown[] = [];
      for (let at = 0; at < perChannel && vouchers; at++) own.push(await signed(channel));
      payloads.push(own);
    }
    const before = {
      cpu: allCpuUs(service.pid),
      main: threadUs(service.pid),
      at: performance.now(),
    };
    let id = 0;
    await Promise.all(
      channels.map(async (channel, at) => {
        for (let done = 0; done < perChannel; done++)
          await call(++id, channel, payloads[at]?.[done]);
      }),
    );
    const calls = perChannel * CHANNELS;
    const seconds = (performance.now() - before.at) / 1_000;
    const cpu = (allCpuUs(service.pid) - before.cpu) / calls;
    const main = (threadUs(service.pid) - before.main) / calls;
    process.stdout.write(
      `${name}: ${Math.round(calls / seconds)} calls/s, ${Math.round(cpu)} µs CPU a call, ` +
        `${Math.round(main)} µs of it on the main thread\n`,
    );
  };
  const key = JSON.parse((await service.post("/api/v1/agent/keys", {})).text).key;
  const keyed = async (id: number): Promise<void> =>
    void (await (
      await fetch(`${service.url}/rpc/k/${key}/load-balanced/ethereum`, callOf("eth_gasPrice", id))
    ).text());
  await phase("warm-up", async (id, _, payload) => paid(id, await challenged(id), payload), true);
  await phase("a key", keyed, false);
  await phase(
    "a voucher, as stock clients pay (402 first)",
    async (id, _, payload) => paid(id, await challenged(id), payload),
    true,
  );
  const challenge = await challenged(0);
  await phase(
    "a voucher under a challenge that is kept",
    (id, _, payload) => paid(id, challenge, payload),
    true,
  );
}

/** CPU time of the service's processes, µs. */
function allCpuUs(pid: number): number {
  return [pid, ...childPids(pid)].reduce((sum, each) => sum + cpuUs(each), 0);
}

/** The environment that names the store. */
async function storeOf(): Promise<Record<string, string>> {
  if (!values.postgres) return {};
  const { url, drop } = await newDatabase();
  t.after(drop);
  return { DATABASE_URL: url };
}

/** CPU time of the main thread, µs. */
function threadUs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "latin1").split(" ")[0]) / 1_000;
}
