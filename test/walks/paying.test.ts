// Stock clients pay the running service, over real payment chains: mppx as a library and as a
// command, @x402/fetch, and an agent who reads SKILL.md and nothing else. Money that moved is money
// that was credited.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { decodePaymentResponseHeader } from "@x402/fetch";
import { Receipt } from "mppx";
import { MPPX_COMMAND } from "../../src/core/billing/payment.ts";
import { type PaidService, startPaidService } from "../fakes/paid-service.ts";
import type { Service } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { inFolder, linkPackages, programsIn, runProgram } from "../fakes/skill-programs.ts";
import { evmClient, type Paying, tempoClient, x402Fetch } from "../fakes/stock-clients.ts";

const CALL = {
  jsonrpc: "2.0",
  id: 7,
  method: "eth_getBalance",
  params: ["0x00000000000000000000000000000000000b0b01", "latest"],
};
const ROOT = join(import.meta.dirname, "../..");

// biome-ignore lint/suspicious/noExplicitAny: answers of any shape
const jsonOf = (response: Response): Promise<any> => response.json();

describe("stock clients pay the service", () => {
  let fixture: PaidService;
  let service: Service;
  let had: bigint;

  const received = async (): Promise<bigint> => {
    const { tempo, evm, recipient } = fixture.chains;
    return (await tempo.balanceOf(recipient.address)) + (await evm.balanceOf(recipient.address));
  };

  before(async () => {
    fixture = await startPaidService(({ rails }) => [rails.tempo, rails.evm, rails.session]);
    service = fixture.service;
    had = await received();
  });
  after(() => fixture?.close());

  const post = (
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): readonly [string, RequestInit] => [
    service.url + path,
    {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    },
  ];

  const byTempo = (mode: "pull" | "push" = "pull"): Paying => tempoClient(fixture.chains, mode);
  const byEvm = (): Paying => evmClient(fixture.chains);
  const byX402 = (): Paying => x402Fetch(fixture.chains);

  const secrets: string[] = [];
  let credited = 0n;
  /** Base units that were credited since it was asked before. */
  const moved = async (): Promise<bigint> => {
    const now = await received();
    const since = now - had - credited;
    credited += since;
    return since;
  };

  for (const mode of ["pull", "push"] as const)
    it(`mppx makes and funds a key on Tempo (${mode})`, async () => {
      const paying = byTempo(mode);
      const made = await paying(
        ...post("/api/v1/agent/keys", { name: "walk", initial_fund_usd: "0.25" }),
      );
      const { key, balance_usd } = await jsonOf(made);
      assert.deepEqual([made.status, balance_usd], [201, "0.25"]);
      assert.match(Receipt.fromResponse(made).reference, /^0x[0-9a-f]{64}$/);
      assert.equal(await moved(), 250_000n);
      const funded = await paying(...post(`/api/v1/agent/keys/${key}/fund`, { amount_usd: "0.5" }));
      assert.deepEqual([funded.status, (await jsonOf(funded)).balance_usd], [200, "0.75"]);
      assert.equal(await moved(), 500_000n);
      const called = await fetch(...post(`/rpc/k/${key}/load-balanced/ethereum`, CALL));
      assert.deepEqual([called.status, (await jsonOf(called)).result], [200, "0x1"]);
    });

  for (const [name, client] of [
    ["mppx on EVM", byEvm],
    ["@x402/fetch", byX402],
    ["mppx on Tempo", byTempo],
  ] as const)
    it(`${name} pays at the URL of a call whose key is used up, and gets the call's answer`, async () => {
      const { json } = await service.post("/api/v1/keys", {});
      const path = `/rpc/k/${json.key}/load-balanced/ethereum`;
      await exhaust(json.key);
      const response = await client()(...post(path, CALL));
      assert.deepEqual([response.status, (await jsonOf(response)).result], [200, "0x1"]);
      assert.ok(
        response.headers.has("payment-receipt") || response.headers.has("payment-response"),
      );
      assert.equal(await moved(), 100_000n);
      const account = await jsonOf(
        await fetch(`${service.url}/api/v1/accounts/current`, {
          headers: { authorization: `Bearer ${json.management_token}` },
        }),
      );
      assert.equal(account.balance_usd, "0.099985");
    });

  it("@x402/fetch funds a key and reads where the money went", async () => {
    const { json } = await service.post("/api/v1/agent/keys", {});
    const response = await byX402()(
      ...post(`/api/v1/agent/keys/${json.key}/fund`, { amount_usd: "0.125" }),
    );
    const { funded_usd, purchase_id, receipt } = await jsonOf(response);
    assert.deepEqual(
      [response.status, funded_usd, receipt.protocol, receipt.rail],
      [200, "0.125", "x402", "evm"],
    );
    const settled = decodePaymentResponseHeader(response.headers.get("PAYMENT-RESPONSE") ?? "");
    assert.deepEqual([settled.success, settled.transaction], [true, receipt.tx_hash]);
    assert.equal((await service.get(`/api/v1/purchases/${purchase_id}`)).json.state, "settled");
    assert.equal(await moved(), 125_000n);
  });

  it("mppx credits an account beside its management token, which stays where it is", async () => {
    const { json } = await service.post("/api/v1/keys", {});
    const authorization = `Bearer ${json.management_token}`;
    const response = await byTempo()(
      ...post(`/api/v1/accounts/${json.account_id}/credit`, { usd: "1.5" }, { authorization }),
    );
    assert.deepEqual([response.status, (await jsonOf(response)).balance_usd], [200, "1.5"]);
    const days = await byEvm()(
      ...post(
        `/api/v1/accounts/${json.account_id}/custom-access`,
        { days: 2, key_id: json.id },
        { authorization },
      ),
    );
    assert.deepEqual([days.status, (await jsonOf(days)).days], [200, 2]);
    assert.equal(await moved(), 1_500_000n + 2_600_000n);
  });

  it("a payment sent again, byte for byte, gets the first result and costs nothing", async () => {
    const sent: [string, RequestInit][] = [];
    const recording: typeof fetch = (input, init) => {
      sent.push([String(input), { ...init }]);
      return fetch(input, init);
    };
    const paying = tempoClient(fixture.chains, "pull", recording);
    const first = await paying(...post("/api/v1/agent/keys", { initial_fund_usd: "0.1" }));
    const body = await jsonOf(first);
    const again = sent.at(-1);
    assert.ok(again !== undefined && sent.length === 2);
    for (let i = 0; i < 3; i++) assert.deepEqual(await jsonOf(await fetch(...again)), body);
    assert.equal(
      (await fetch(again[0], { ...again[1], body: JSON.stringify({ initial_fund_usd: "0.2" }) }))
        .status,
      409,
    );
    secrets.push(
      new Headers(again[1].headers).get("authorization")?.slice("Payment ".length) ?? "",
      first.headers.get("payment-receipt") ?? "",
      body.key,
    );
    assert.equal(await moved(), 100_000n);
  });

  it(
    "the shell lines of SKILL.md work as they stand for an agent that has a wallet and has read " +
      "nothing else; llms.txt has the same",
    async () => {
      const lines = await shellLines(service, "/SKILL.md");
      const [key = "", , , ...paid] = await run(lines, fixture);
      assert.match(key, /^svc_ak_\w+$/);
      assert.equal(paid.join("\n").match(/pur_\w{20}/g)?.length, 5, paid.join("\n"));
      assert.match(paid.join("\n"), /"result": *"0x/, "a call that was paid for by itself");
      assert.equal(
        await moved(),
        400_000n + 1_300_000n,
        "two for the key, one for another key, one for an account, and a day of Custom access",
      );
      const { json } = await service.get(`/api/v1/agent/keys/${key}`);
      assert.equal(json.balance_usd, "0.224995", "the free grant, less one call, and two payments");
      for (const it of await shellLines(service, "/llms.txt")) assert.ok(lines.includes(it), it);
    },
  );

  it(
    "the programs in SKILL.md work as they stand, one for each way to pay, with the packages that " +
      "it says to install and no others",
    async () => {
      const { text } = await service.get("/SKILL.md");
      const programs = programsIn(text);
      assert.equal(programs.length, text.match(/^```ts$/gm)?.length);
      const told = await Promise.all(
        programs.map((program) =>
          inFolder((folder) => {
            linkPackages(program.packages, folder);
            return runProgram(program, folder, fixture.chains);
          }),
        ),
      );
      assert.deepEqual(
        told.map((it) => it.slice(0, 3)),
        ["201", "201", "201", "200"],
        told.join("\n"),
      );
      assert.match(told.at(-1) ?? "", /"result":"0x/);
      assert.equal(await moved(), 3n * 100_000n);
    },
  );

  it("at the end the books agree", async () => {
    assert.deepEqual(await fixture.differences(), []);
  });

  it("nothing of a payment, a receipt, a wallet or a node's address is in the log or the metrics", async () => {
    const { settlement, session, tempo, evm } = fixture.chains;
    const told = service.log() + (await service.get("/metrics")).text;
    for (const secret of [
      ...secrets,
      settlement.key.slice(2),
      session.key.slice(2),
      tempo.rpcUrl,
      evm.rpcUrl,
    ]) {
      assert.ok(secret.length > 10);
      assert.equal(told.includes(secret), false);
    }
  });

  /** An account that was just made has nothing. */
  async function exhaust(key: string): Promise<void> {
    const { status } = await fetch(...post(`/rpc/k/${key}/load-balanced/ethereum`, CALL));
    assert.equal(status, 402);
  }
});

/** What a document says to type. */
async function shellLines(service: Service, path: string): Promise<readonly string[]> {
  const { text } = await service.get(path);
  return Array.from(text.matchAll(/^```sh\n([\s\S]*?)\n```$/gm), ([, shell = ""]) => shell);
}

/** Types it, with the payer's wallet and an empty home; returns the lines that come out. */
async function run(lines: readonly string[], { chains }: PaidService): Promise<readonly string[]> {
  const home = mkdtempSync(join(tmpdir(), "svc-agent-"));
  try {
    const env = {
      ...process.env,
      HOME: home,
      XDG_CACHE_HOME: home,
      PATH: [directNpx(home), process.env["PATH"]].join(delimiter),
      MPPX_PRIVATE_KEY: chains.payer.key,
      NO_UPDATE_NOTIFIER: "1",
      NO_COLOR: "1",
    };
    const { stdout } = await promisify(execFile)(
      "bash",
      ["-euo", "pipefail", "-c", lines.join("; echo;\n")],
      { cwd: ROOT, env },
    );
    return stdout.split("\n").filter((line) => line.trim() !== "");
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/**
 * A folder with an `npx` that starts the command of our documents as npx does, and nothing else: in
 * two thirds of the time, and a document has a dozen. `test/clients/installs.ts` asks the real one.
 */
function directNpx(home: string): string {
  const folder = join(home, "bin");
  mkdirSync(folder);
  const options = MPPX_COMMAND.split(" ").slice(1, -1);
  const script = [
    "#!/bin/sh",
    `[ "$(echo "$@" | cut -d ' ' -f -${options.length + 1})" = "${options.join(" ")} mppx" ] || exit 64`,
    `shift ${options.length + 1}`,
    `exec "${process.execPath}" "${join(ROOT, "node_modules/.bin/mppx")}" "$@"`,
  ];
  writeFileSync(join(folder, "npx"), script.join("\n"), { mode: 0o755 });
  return folder;
}

describe("an instance that takes only EIP-3009 payments", () => {
  let fixture: PaidService;

  before(async () => {
    fixture = await startPaidService(({ rails }) => [rails.evm]);
  });
  after(() => fixture?.close());

  it("the shell lines of its SKILL.md work as they stand", async () => {
    const { evm, recipient } = fixture.chains;
    const had = await evm.balanceOf(recipient.address);
    const [, , , ...paid] = await run(await shellLines(fixture.service, "/SKILL.md"), fixture);
    assert.equal(paid.join("\n").match(/pur_\w{20}/g)?.length, 3, paid.join("\n"));
    assert.equal((await evm.balanceOf(recipient.address)) - had, 200_000n + 1_300_000n);
    assert.deepEqual(await fixture.differences(), []);
  });
});

describe("a payment whose chain is slow", () => {
  let fixture: PaidService;

  before(async () => {
    fixture = await startPaidService(({ rails }) => [rails.tempo], 200);
  });
  after(() => fixture?.close());

  it(
    "stops a stock client after one payment, is read at its status_url, and is credited without " +
      "the client",
    async () => {
      const { service, chains } = fixture;
      const sent: RequestInit[] = [];
      const recording: typeof fetch = (input, init) => {
        sent.push({ ...init });
        return fetch(input, init);
      };
      const paying = tempoClient(chains, "pull", recording);
      const { json } = await service.post("/api/v1/agent/keys", {});
      const fund = `${service.url}/api/v1/agent/keys/${json.key}/fund`;
      const had = await chains.tempo.balanceOf(chains.recipient.address);
      await chains.holdTempo(true);
      const pending = await paying(fund, {
        method: "POST",
        body: JSON.stringify({ amount_usd: "0.5" }),
      });
      const { error } = await jsonOf(pending);
      assert.deepEqual(
        [pending.status, error.code, sent.length, pending.headers.has("retry-after")],
        [503, "payment_pending", 2, true],
      );
      assert.equal((await service.get("/metrics")).text.includes("svc_purchases{state="), true);
      const under = async (): Promise<string> =>
        (await jsonOf(await fetch(error.status_url))).state;
      await until("its submission", async () => (await under()) === "submitted");
      await chains.holdTempo(false);
      await until("its settlement", async () => (await under()) === "settled");
      assert.equal((await service.get(`/api/v1/agent/keys/${json.key}`)).json.balance_usd, "0.525");
      const again = await fetch(fund, sent.at(-1));
      assert.deepEqual([again.status, (await jsonOf(again)).funded_usd], [200, "0.5"]);
      assert.equal((await chains.tempo.balanceOf(chains.recipient.address)) - had, 500_000n);
      assert.deepEqual(await fixture.differences(), []);
    },
  );
});
