// The service as a process is killed while stock clients pay it over real chains: at questions to
// the chain, and when it has answered and nobody heard. After a restart on the same data the client
// sends the very same request again: its first result, money that moved once and is credited once,
// and a clean audit.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ChainProxy, startChainProxy } from "../fakes/chain-proxy.ts";
import { type PaymentChains, startPaymentChains } from "../fakes/payment-chains.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";
import { evmClient, type Paying, tempoClient, x402Fetch } from "../fakes/stock-clients.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const MAIN = new URL("../../src/main.ts", import.meta.url).pathname;
const CALL = {
  jsonrpc: "2.0",
  id: 7,
  method: "eth_getBalance",
  params: ["0x00000000000000000000000000000000000b0b01", "latest"],
};
const RESULT_MS = 60_000;
const AGAIN_MS = 100;

/**
 * When the process is killed: at a question to the chain, before the node has it or when it has
 * answered, or when the client's answer is under way.
 */
type Moment =
  | { readonly question: string; readonly count: number; readonly when: "before" | "after" }
  | "answer";

/** A request as it was sent. */
interface Sent {
  readonly path: string;
  readonly init: RequestInit;
}

describe("a process that is killed while it is paid", () => {
  const endings: (() => Promise<void>)[] = [];
  const ender = { after: (run: () => Promise<void>) => void endings.push(run) };
  const dataDir = mkdtempSync(join(tmpdir(), "svc-paid-"));
  let chains: PaymentChains;
  let proxies: readonly ChainProxy[];
  let upstream: ScriptedUpstream;
  let service: ServiceProcess;
  let text: string;
  let had: bigint;
  let kills = 0;

  before(async () => {
    [chains, upstream] = await Promise.all([startPaymentChains(), scriptedUpstream()]);
    const [tempo, evm] = await Promise.all([
      startChainProxy(chains.tempo.rpcUrl),
      startChainProxy(chains.evm.rpcUrl),
    ]);
    proxies = [tempo, evm];
    const base = { recipient: chains.recipient.address, confirmations: 0 };
    const rails = [
      {
        kind: "tempo",
        rpc_url: tempo.url,
        chain_id: chains.tempo.chainId,
        token: chains.tempo.token.address,
        ...base,
      },
      {
        kind: "evm",
        rpc_url: evm.url,
        chain_id: chains.evm.chainId,
        token: chains.evm.token,
        wallet_key: chains.settlement.key,
        ...base,
      },
    ];
    const hosted = { enabled: true, free_cu_per_month: 0, payments: { rails, wait_ms: 10_000 } };
    text = configText(
      [{ id: "one", url: upstream.url }],
      { hosted, data_dir: dataDir, log_level: "info" },
      {},
      "public",
    );
    service = await startProcess(ender, text);
    had = await received();
  });
  after(async () => {
    for (const end of endings.reverse()) await end();
    await Promise.all([
      chains?.close(),
      upstream?.close(),
      ...(proxies ?? []).map((it) => it.close()),
    ]);
    rmSync(dataDir, { recursive: true, force: true });
  });

  const received = async (): Promise<bigint> => {
    const { tempo, evm, recipient } = chains;
    return (await tempo.balanceOf(recipient.address)) + (await evm.balanceOf(recipient.address));
  };
  let credited = 0n;
  /** Base units that have moved since it was asked before. */
  const moved = async (): Promise<bigint> => {
    const since = (await received()) - had - credited;
    credited += since;
    return since;
  };

  /** Arms the kill: it happens once. */
  function killAt(moment: Moment): void {
    if (moment === "answer") return;
    const { question, count, when } = moment;
    let seen = 0;
    let isDone = false;
    const kill = (): void => {
      isDone = true;
      kills += 1;
      service.signal("SIGKILL");
    };
    for (const proxy of proxies) {
      let last = "";
      proxy.fault = (name, number) => {
        if (isDone || name !== question || ++seen !== count) return "pass";
        last = `${name} ${number}`;
        if (when === "after") return "lose";
        kill();
        return "drop";
      };
      proxy.answered = (name, number) => {
        if (!isDone && when === "after" && last === `${name} ${number}`) kill();
      };
    }
  }

  /**
   * A `fetch` that keeps what carries a payment; at `answer` the process is killed and the answer
   * lost.
   */
  function recording(moment: Moment, keep: (sent: Sent) => void): typeof fetch {
    return async (input, init) => {
      const request = new Request(input, init);
      const isPaying =
        ["payment-signature", "payment-authorization"].some((it) => request.headers.has(it)) ||
        /Payment /.test(headerOf(request));
      const body = await request.clone().text();
      if (isPaying)
        keep({
          path: new URL(request.url).pathname,
          init: { method: request.method, headers: new Headers(request.headers), body },
        });
      const response = await fetch(request);
      if (!isPaying || moment !== "answer") return response;
      assert.ok(response.ok, await response.text());
      kills += 1;
      service.signal("SIGKILL");
      throw new TypeError("the answer is lost");
    };
  }

  /** Sends the same request until there is a result; nobody may be asked to pay meanwhile. */
  async function resultOf({
    path,
    init,
  }: Sent): Promise<{ readonly status: number; readonly json: Record<string, unknown> }> {
    for (const deadline = performance.now() + RESULT_MS; ; await sleep(AGAIN_MS)) {
      const response = await fetch(service.url + path, init);
      const json = parsed(await response.text());
      if (response.status !== 503) return { status: response.status, json };
      assert.ok(performance.now() < deadline, `no result: ${JSON.stringify(json)}`);
    }
  }

  /**
   * Pays, is left without an answer, and gets the first result of the same request from the next
   * process, however often.
   */
  async function walk(
    moment: Moment,
    { client, path, body, bearer }: Walk,
  ): Promise<Record<string, unknown>> {
    const sent: Sent[] = [];
    const before = kills;
    killAt(moment);
    const headers = {
      "content-type": "application/json",
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    };
    const paying = client(recording(moment, (it) => void sent.push(it)));
    await assert.rejects(
      paying(service.url + path, { method: "POST", headers, body: JSON.stringify(body) }),
    );
    assert.equal(kills, before + 1, "it was killed");
    assert.equal(await service.ended, "SIGKILL");
    assert.equal(sent.length, 1, "the client signed once");
    const [again] = sent;
    assert.ok(again !== undefined);
    service = await startProcess(ender, text);
    const first = await resultOf(again);
    assert.ok(
      first.status === 200 || first.status === 201,
      `${first.status} ${JSON.stringify(first.json)}`,
    );
    assert.deepEqual(await resultOf(again), first);
    return first.json;
  }

  /** A new account with nothing. */
  async function account(): Promise<{
    readonly id: string;
    readonly key: string;
    readonly keyId: string;
    readonly token: string;
  }> {
    const { text: made } = await service.post("/api/v1/keys", {});
    const { account_id, key, id, management_token } = JSON.parse(made);
    return { id: account_id, key, keyId: id, token: management_token };
  }

  const SENDING = "eth_sendRawTransaction";

  it("tempo pull makes a key: killed when the chain has the transaction, before anybody knows", async () => {
    const client: Walk["client"] = (send) => tempoClient(chains, "pull", send);
    const json = await walk(
      { question: SENDING, count: 1, when: "after" },
      { client, path: "/api/v1/agent/keys", body: { initial_fund_usd: "0.25" } },
    );
    assert.equal(json["balance_usd"], "0.25");
    assert.equal(await moved(), 250_000n);
    const called = await service.post(`/rpc/k/${json["key"]}/load-balanced/ethereum`, CALL);
    assert.equal(called.status, 200);
  });

  it("MPP on EVM funds a key: killed when the transaction is written down and not sent", async () => {
    const { key } = JSON.parse((await service.post("/api/v1/agent/keys", {})).text);
    const client: Walk["client"] = (send) => evmClient(chains, send);
    const json = await walk(
      { question: SENDING, count: 1, when: "before" },
      { client, path: `/api/v1/agent/keys/${key}/fund`, body: { amount_usd: "0.5" } },
    );
    assert.equal(json["funded_usd"], "0.5");
    assert.equal(await moved(), 500_000n);
  });

  it(
    "x402 credits an account: killed when the chain has the transaction, and the answer that " +
      "says so",
    async () => {
      const { id, token } = await account();
      const client: Walk["client"] = (send) => x402Fetch(chains, send);
      const path = `/api/v1/accounts/${id}/credit`;
      const json = await walk(
        { question: "eth_getTransactionReceipt", count: 1, when: "after" },
        { client, path, body: { usd: "1.5" }, bearer: token },
      );
      assert.deepEqual([json["credited_usd"], json["balance_usd"]], ["1.5", "1.5"]);
      assert.equal(await moved(), 1_500_000n);
    },
  );

  it("tempo push buys days: killed at the first look at a transaction that the payer has sent", async () => {
    const { id, keyId, token } = await account();
    const client: Walk["client"] = (send) => tempoClient(chains, "push", send);
    const path = `/api/v1/accounts/${id}/custom-access`;
    const body = { days: 2, key_id: keyId };
    const json = await walk(
      { question: "eth_getTransactionReceipt", count: 1, when: "before" },
      { client, path, body, bearer: token },
    );
    assert.equal(json["days"], 2);
    assert.equal(await moved(), 2_600_000n);
  });

  it(
    "MPP on EVM pays at the URL of a call: killed when everything is done and the answer is on " +
      "its way",
    async () => {
      const { key } = await account();
      const client: Walk["client"] = (send) => evmClient(chains, send);
      const json = await walk("answer", {
        client,
        path: `/rpc/k/${key}/load-balanced/ethereum`,
        body: CALL,
      });
      assert.equal(json["result"], "0x1");
      assert.equal(await moved(), 100_000n);
    },
  );

  it("at the end `svc audit` finds nothing: the books agree with each other and with the chains", async () => {
    assert.equal(kills, 5);
    const { code, output } = await audit(service.file);
    assert.equal(code, 0, output);
    assert.match(output, /books: they agree/);
    for (const chain of [chains.tempo, chains.evm])
      assert.match(
        output,
        new RegExp(`\\(chain ${chain.chainId}\\), .*, 0 under way, 0 differences`),
      );
  });
});

interface Walk {
  readonly client: (send: typeof fetch) => Paying;
  readonly path: string;
  readonly body: unknown;
  readonly bearer?: string;
}

function headerOf({ headers }: Request): string {
  return headers.get("authorization") ?? "";
}

function parsed(text: string): Record<string, unknown> {
  return JSON.parse(text);
}

function audit(file: string): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, [MAIN, "audit", "--config", file], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => void chunks.push(chunk));
  return new Promise((resolve) =>
    child.once("close", (code) => resolve({ code, output: Buffer.concat(chunks).toString() })),
  );
}
