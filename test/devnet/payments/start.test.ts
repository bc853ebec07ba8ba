// `npm start` as a newcomer meets it: the commands that it prints pay as they stand, and where
// others may reach the service there is no local money.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { loadConfig } from "../../../src/config/config.ts";
import { MPPX_COMMAND } from "../../../src/core/billing/payment.ts";
import { startLocalPayments, withLocalPayments } from "../../../src/devnet/payments/local.ts";
import { isLoopback } from "../../../src/devnet/payments/wallets.ts";
import type { TempoRailSettings } from "../../../src/payments/rails/rail-kind.ts";
import { realRuntime } from "../../../src/runtime.ts";
import { type ServiceProcess, startProcess } from "../../fakes/process.ts";
import { PATIENT } from "../../fakes/service.ts";
import { until } from "../../fakes/service-fixture.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const CLI = fileURLToPath(new URL("../../../node_modules/mppx/dist/bin.js", import.meta.url));
const COMMAND_MS = 60_000;
const Called = z.object({ result: z.string().startsWith("0x") });
const Key = z.object({ key: z.string().startsWith("svc_ak_"), balance_usd: z.literal("0.1") });

function configOf(
  dataDir: string,
  server: Record<string, unknown>,
  hosted: Record<string, unknown>,
): string {
  const chains = { ethereum: { chain_id: 1, block_time_ms: 12_000 } };
  const profiles = {
    public: { chains: { ethereum: { providers: [{ id: "none", url: "http://127.0.0.1:9" }] } } },
  };
  return JSON.stringify({
    server: { port: 0, ...server },
    devnet: true,
    data_dir: dataDir,
    hosted,
    chains,
    profiles,
    deadlines: PATIENT,
  });
}

interface Start {
  readonly server?: Record<string, unknown>;
  readonly hosted?: Record<string, unknown>;
  readonly dataDir?: string;
  readonly env?: Record<string, string>;
}

async function started(
  t: TestContext,
  { server = {}, hosted = { enabled: true }, dataDir = newFolder(t), env = {} }: Start = {},
): Promise<ServiceProcess> {
  const service = await startProcess(t, configOf(dataDir, server, hosted), env);
  // Its lines for people follow the line that it serves.
  await until("its greeting", () => service.log().includes("all of it  "));
  return service;
}

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-paying-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A service that tells which packages it has loaded. */
async function startedTelling(t: TestContext, dataDir: string) {
  const file = join(newFolder(t), "loaded");
  const hook = fileURLToPath(new URL("../../fakes/loaded-packages.ts", import.meta.url));
  const env = { NODE_OPTIONS: `--import=${hook}`, LOADED_PACKAGES: file };
  const service = await started(t, { dataDir, env });
  return { service, loaded: (): string[] => readFileSync(file, "utf8").trim().split("\n") };
}

/**
 * The commands of the greeting, by the remark above each; the stock client and `node` as they are
 * installed here.
 */
async function commandsOf(service: ServiceProcess): Promise<ReadonlyMap<string, string>> {
  while (!service.log().includes("svc.mjs pay")) await sleep(20);
  const [, ...sections] = (service.log().split("Pay with local money.")[1] ?? "").split("\n  # ");
  const here = (command: string): string =>
    command
      .replaceAll(MPPX_COMMAND, `"${process.execPath}" "${CLI}"`)
      .replaceAll(/\bnode bin/g, `"${process.execPath}" bin`);
  return new Map(
    sections.map((section) => {
      const [remark = "", ...lines] = section.split("\n");
      return [
        remark,
        here(lines.slice(0, lines.findIndex((line) => !line.endsWith("\\")) + 1).join("\n")),
      ];
    }),
  );
}

async function run(
  t: TestContext,
  command: string,
): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> {
  // The stock wallet keeps its channels in the home directory.
  const home = mkdtempSync(join(tmpdir(), "svc-wallet-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const env = { PATH: process.env["PATH"], HOME: home, NO_UPDATE_NOTIFIER: "1" };
  const child = spawn("/bin/sh", ["-c", command], {
    cwd: ROOT,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.after(() => void child.kill("SIGKILL"));
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk) => {
    out += chunk;
  });
  child.stderr.on("data", (chunk) => {
    err += chunk;
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), COMMAND_MS);
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  clearTimeout(timer);
  return { code, out, err };
}

/** Packages that a demonstration does not need before somebody pays, asks or builds. */
function heavyOf(loaded: readonly string[]): readonly string[] {
  const heavy = ["viem", "mppx", "ox", "@x402/core", "pg", "esbuild", "marked", "@redis/client"];
  return heavy.filter((name) => loaded.includes(name));
}

test(
  "the printed commands pay: the stock command line by MPP tempo and by a channel, svc pay by " +
    "EIP-3009; a key holds what was paid",
  async (t) => {
    const dataDir = newFolder(t);
    const { service, loaded } = await startedTelling(t, dataDir);
    assert.deepEqual(heavyOf(loaded()), [], "a start loads nothing that only payments need");
    const commands = await commandsOf(service);
    assert.equal(commands.size, 3);
    for (const [remark, command] of commands) {
      const { code, out, err } = await run(t, command);
      assert.equal(code, 0, `${remark}: ${out}${err}`);
      if (!remark.startsWith("buy a key")) {
        assert.ok(Called.safeParse(JSON.parse(out)).success, out);
        continue;
      }
      const { key } = Key.parse(JSON.parse(out));
      const { status } = await service.post(`/rpc/k/${key}/local`, {
        jsonrpc: "2.0",
        id: 1,
        method: "eth_blockNumber",
        params: [],
      });
      assert.equal(status, 200);
    }
    assert.ok(heavyOf(loaded()).includes("viem"));
    service.signal("SIGTERM");
    assert.equal(await service.ended, 0);
    const again = await startedTelling(t, dataDir);
    assert.ok(heavyOf(again.loaded()).includes("viem"), "what was paid for before goes on");
  },
);

test("channels are told to be a stand-in, in the log and beside the command", async (t) => {
  const service = await started(t);
  await commandsOf(service);
  assert.match(
    service.log(),
    /payment channels on the local Tempo chain are a stand-in for development, not Tempo's own/,
  );
  assert.match(
    service.log(),
    /# one call without a key \(MPP session; its channels are a stand-in for development, not Tempo's own\)/,
  );
});

test("where others may reach the service there are no local payments, and the log says why", async (t) => {
  for (const [server, reached] of [
    [{ host: "0.0.0.0" }, "0.0.0.0"],
    [{ public_url: "https://rpc.example" }, "rpc.example"],
  ] as const) {
    const service = await started(t, { server });
    assert.ok(
      service.log().includes(`no local payments: others may reach ${reached}`),
      service.log(),
    );
    assert.ok(!service.log().includes("Pay with local money"));
    const { status } = await service.post("/api/v1/agent/keys", { initial_fund_usd: "0.10" });
    assert.notEqual(status, 402);
  }
});

test("a plain router starts no payment chain, and its link to the sign-in page signs in once", async (t) => {
  const service = await started(t, { hosted: { enabled: false } });
  assert.ok(!/payment|Tempo/.test(service.log()), service.log());
  // The page that reads the code: console/pages/sign-in/sign-in-page.tsx.
  // A session is valid at one host: the link names the one of every other line, and of README.
  const [, base, token] = /(\S+)\/dashboard\/sign-in#sign-in=(\S+)/.exec(service.log()) ?? [];
  assert.equal(base, service.url);
  assert.match(service.log(), new RegExp(`ready at ${base}\n`));
  assert.ok(token !== undefined, service.log());
  const statuses: number[] = [];
  for (let tries = 0; tries < 2; tries++) {
    const { status } = await fetch(`${service.url}/api/v1/console/session`, {
      method: "POST",
      headers: {
        origin: service.url,
        "sec-fetch-site": "same-origin",
        "content-type": "application/json",
      },
      body: JSON.stringify({ token }),
    });
    statuses.push(status);
  }
  assert.deepEqual(statuses, [201, 401]);
});

test(
  "local rails come beside those of the file, and never in the place of one; the ranges are " +
    "those of the file",
  () => {
    const text = Buffer.from(
      configOf("data", {}, { enabled: true, payments: { min_usd: "0.5", rails: [] } }),
    );
    const result = loadConfig({ file: "svc.yml", text, env: {}, flags: {} });
    assert.ok(result.ok);
    const token = { address: "0x20c0000000000000000000000000000000000000", name: "", version: "" };
    const rail = (change: Partial<TempoRailSettings>): TempoRailSettings => {
      return {
        kind: "tempo",
        rpcUrl: "http://127.0.0.1:1",
        chainId: 1337,
        token,
        recipient: token.address,
        confirmations: 0,
        local: true,
        modes: ["pull"],
        ...change,
      };
    };
    const local = {
      rails: [rail({})],
      tempoUrl: null,
      evmUrl: null,
      standIn: true,
      close: async () => {},
    };
    const railsOf = (own: readonly TempoRailSettings[]) => {
      const { hosted } = result.config;
      assert.ok(hosted !== null);
      return withLocalPayments(
        { ...result.config, hosted: { ...hosted, payments: { ...hosted.payments, rails: own } } },
        local,
      ).hosted?.payments.rails;
    };
    assert.equal(
      withLocalPayments(result.config, local).hosted?.payments.minN,
      500_000_000n,
      "what the file says beside its rails holds for them",
    );
    assert.deepEqual(railsOf([]), [rail({})]);
    assert.deepEqual(railsOf([rail({ local: false })]), [rail({ local: false })]);
    assert.deepEqual(railsOf([rail({ chainId: 4217, local: false })]), [
      rail({ chainId: 4217, local: false }),
      rail({}),
    ]);
  },
);

test("what does not start is said, and the other chain is offered alone", async () => {
  const lines: string[] = [];
  const local = await startLocalPayments({
    devnet: Promise.reject(new Error("no nodes here")),
    runtime: realRuntime,
    onProgress: (line) => lines.push(line),
  });
  try {
    assert.deepEqual(
      local.rails.map((it) => it.kind),
      ["tempo", "session"],
    );
    assert.equal(local.evmUrl, null);
    assert.ok(
      lines.includes(
        "the local chain has no token to pay with: no nodes here. Payments by it are not offered",
      ),
      lines.join("\n"),
    );
  } finally {
    await local.close();
  }
});

test("only this machine is a loopback", () => {
  for (const host of ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
    assert.equal(isLoopback(host), true, host);
  for (const host of [
    "0.0.0.0",
    "::",
    "127.0.0.1.example.com",
    "10.0.0.1",
    "128.0.0.1",
    "localhost.example",
    "",
  ])
    assert.equal(isLoopback(host), false, host);
});
