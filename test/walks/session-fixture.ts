// Pay-per-call end to end: the real service before a scripted provider or an anvil node, a local
// Tempo chain with the stand-in for channels, stock clients.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after } from "node:test";
import { tempo } from "mppx/client";
import { createClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { tempoLocalnet } from "viem/chains";
import { nanoOf } from "../../src/core/billing/payment.ts";
import type { LocalWallet } from "../../src/devnet/payments/wallets.ts";
import { audit } from "../../src/hosted/audit/audit.ts";
import type { SessionRailSettings } from "../../src/payments/rails/rail-kind.ts";
import { parseHex } from "../../src/payments/session/descriptor.ts";
import { type Runtime, realRuntime } from "../../src/runtime.ts";
import { openStore, readStore, type Store } from "../../src/shared/store/store.ts";
import { type PaymentChains, startPaymentChains } from "../fakes/payment-chains.ts";
import { PATIENT, type Service, startService } from "../fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

/** Ends what was started: a test or a test file. */
export interface Ending {
  after(run: () => Promise<void>): void;
}

/** A service that sells calls. */
export interface SessionFixture {
  readonly chains: PaymentChains;
  readonly service: () => Service;
  readonly upstream: ScriptedUpstream;
  /** Where calls are paid for. */
  readonly url: () => string;
  /** Sets the service's clock ahead. */
  pass(ms: number): void;
  /** Ends the service as an operator would, and starts it over the same store. */
  restart(): Promise<void>;
  /** Reads the store beside the running service. */
  peek<T>(run: (store: Store) => Promise<T>): Promise<T>;
  /** Sets the state of a channel beside the running service, as another instance does. */
  setChannelState(id: string, state: "open" | "closing"): void;
  /** Reads the store while the service rests. */
  read<T>(run: (store: Store) => Promise<T>): Promise<T>;
}

/** What may be different. */
export interface SessionFixtureOptions {
  readonly rail?: Partial<SessionRailSettings>;
  readonly waitMs?: number;
  /** Further settings of the provider. */
  readonly providerSettings?: Record<string, unknown>;
  /** URL of the provider; default = the scripted one. */
  readonly provider?: (chains: PaymentChains, upstream: ScriptedUpstream) => string;
  readonly hosted?: Record<string, unknown>;
  /** Further settings at the top level. */
  readonly extra?: Record<string, unknown>;
  readonly blockTimeMs?: number;
}

/** The chains of a file of tests: started once. */
export async function paymentChains(t: Ending): Promise<PaymentChains> {
  const chains = await startPaymentChains();
  t.after(() => chains.close());
  return chains;
}

/** The chains of a test file, ended after its last test. */
export function chainsOfFile(): Promise<PaymentChains> {
  return paymentChains({ after: (run) => after(run) });
}

/** Starts it. */
export async function sessionFixture(
  t: Ending,
  chains: PaymentChains,
  options: SessionFixtureOptions = {},
): Promise<SessionFixture> {
  const upstream = await scriptedUpstream();
  const dataDir = mkdtempSync(join(tmpdir(), "svc-session-"));
  const url = options.provider?.(chains, upstream) ?? upstream.url;
  const profile = (id: string, at: string) => ({
    chains: { ethereum: { providers: [{ id, url: at, ...options.providerSettings }] } },
  });
  const text = JSON.stringify({
    server: { port: 0 },
    data_dir: dataDir,
    log_level: "debug",
    chains: {
      ethereum: {
        chain_id: options.provider === undefined ? 1 : chains.evm.chainId,
        name: "Ethereum",
        block_time_ms: options.blockTimeMs ?? 12_000,
      },
    },
    profiles: { premium: profile("paid", url), public: profile("open", url) },
    deadlines: PATIENT,
    hosted: { enabled: true, ...options.hosted },
    ...options.extra,
  });
  const rail: SessionRailSettings = { ...chains.rails.session, ...options.rail };
  let aheadMs = 0;
  const runtime = worldAhead(() => aheadMs);
  const start = (): Promise<Service> =>
    startService(text, runtime, (config) => {
      assert.ok(config.hosted !== null);
      const payments = {
        rails: [rail],
        minN: 100_000_000n,
        maxN: 100_000_000_000n,
        customDayN: 1n,
        maxCustomDays: 30,
        waitMs: options.waitMs ?? 60_000,
        offerMs: 300_000,
      };
      return { ...config, hosted: { ...config.hosted, payments } };
    });
  t.after(async () => {
    await upstream.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  let service = await start();
  t.after(() => service.close());
  return {
    chains,
    upstream,
    service: () => service,
    url: () => `${service.url}/rpc/session/load-balanced/ethereum`,
    pass(ms) {
      aheadMs += ms;
    },
    async restart() {
      await service.drain();
      service = await start();
    },
    async peek(run) {
      const store = await readStore({ url: "", dataDir });
      try {
        return await run(store);
      } finally {
        await store.close();
      }
    },
    setChannelState(id, state) {
      const db = new DatabaseSync(join(dataDir, "svc.db"));
      assert.equal(
        db.prepare("update session_channel set state = ? where id = ?").run(state, id.toLowerCase())
          .changes,
        1,
      );
      db.close();
    },
    async read(run) {
      await service.close();
      const store = await openStore({ url: "", dataDir });
      try {
        return await run(store);
      } finally {
        await store.close();
        service = await start();
      }
    },
  };
}

/** A stock client with a wallet. */
export function stockClient(
  chains: PaymentChains,
  wallet: LocalWallet,
  options: { readonly maxDeposit?: string; readonly fetch?: typeof fetch } = {},
) {
  const account = privateKeyToAccount(wallet.key);
  const chain = {
    ...tempoLocalnet,
    id: chains.tempo.chainId,
    rpcUrls: { default: { http: [chains.tempo.rpcUrl] } },
  };
  const client = createClient({
    account,
    chain,
    transport: http(chains.tempo.rpcUrl),
    pollingInterval: 50,
  });
  return { manager: tempo.session.manager({ account, client, ...options }), client, account };
}

/** A call as a client sends it. */
export function callOf(method: string, id = 1, params: readonly unknown[] = []): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
  };
}

/** That the books agree, and that what is booked for channels is what came out of them. */
export async function assertBooked(store: Store): Promise<{
  readonly bookedUnits: bigint;
  readonly spentUnits: bigint;
  readonly settledUnits: bigint;
}> {
  assert.deepEqual(await audit(store), []);
  const channels = await store.db.selectFrom("session_channel").selectAll().execute();
  const spentUnits = channels.reduce((sum, it) => sum + it.spent_units, 0n);
  const settledUnits = channels.reduce((sum, it) => sum + it.settled_units, 0n);
  const entries = await store.db
    .selectFrom("ledger_entry")
    .innerJoin("ledger_tx", "ledger_tx.id", "ledger_entry.tx_id")
    .select("ledger_entry.amount_n")
    .where("ledger_tx.kind", "=", "session")
    .where("ledger_entry.book", "=", "revenue")
    .execute();
  const bookedN = entries.reduce((sum, it) => sum + it.amount_n, 0n);
  assert.equal(bookedN, nanoOf(settledUnits));
  return { bookedUnits: settledUnits, spentUnits, settledUnits };
}

/** Waits until something is so. */
export async function until(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    assert.ok(tries < 400, `${what}: not within 20 s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The row of a channel. */
export function rowOf(fixture: SessionFixture, id: string) {
  return fixture.peek((store) =>
    store.db
      .selectFrom("session_channel")
      .selectAll()
      .where("id", "=", parseHex(id))
      .executeTakeFirstOrThrow(),
  );
}

/** Waits until nothing is on its way to the chain. */
export async function quiet(fixture: SessionFixture): Promise<void> {
  const open = (store: Store) =>
    store.db
      .selectFrom("session_transaction")
      .select("tx_hash")
      .where("ended_at", "is", null)
      .execute();
  await until(async () => (await fixture.peek(open)).length === 0, "every transaction has ended");
}

/**
 * The outside, whose clock is ahead of the real one by as much as the test says. What waits for an
 * answer has its real time.
 */
function worldAhead(aheadMs: () => number): Runtime {
  return { ...realRuntime, wallMs: () => realRuntime.wallMs() + aheadMs() };
}

/** The challenges of an answer. */
export function challengesOf(
  response: Response,
): readonly { readonly request: Readonly<Record<string, unknown>> }[] {
  return (response.headers.get("www-authenticate") ?? "")
    .split(/(?=Payment id=)/)
    .map((text) => /request="([^"]+)"/.exec(text)?.[1] ?? "")
    .filter((text) => text !== "")
    .map((text) => ({ request: JSON.parse(Buffer.from(text, "base64url").toString()) }));
}
