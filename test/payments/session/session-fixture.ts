// Pay-per-call over the fake chain, as one process after the other would run it on the same store;
// and its payers. Time is simulated and moves only in `run`.
import assert from "node:assert/strict";
import { TransactionRecord } from "../../../src/payments/session/chain/transaction-record.ts";
import { ChannelRecord } from "../../../src/payments/session/channel-record.ts";
import { ChannelWorker } from "../../../src/payments/session/channel-worker.ts";
import { ChannelWriter } from "../../../src/payments/session/channel-writer.ts";
import { CredentialHandler } from "../../../src/payments/session/credential-handler.ts";
import {
  channelIdOf,
  type Descriptor,
  type Hex,
  ZERO_ADDRESS,
} from "../../../src/payments/session/descriptor.ts";
import { CallProcesses } from "../../../src/payments/session/holds.ts";
import { LiveChannels } from "../../../src/payments/session/live-channels.ts";
import type { SessionRail } from "../../../src/payments/session/session-rail.ts";
import { type SessionTerms, termsOf } from "../../../src/payments/session/terms.ts";
import { Sealer } from "../../../src/secrets/sealer.ts";
import { beat, join, type Presence } from "../../../src/shared/nodes/node-rows.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { quiet } from "../../fakes/quiet.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/runtime.ts";
import { type Fate, type MortalProcess, mortalProcess } from "../mortal-process.ts";
import {
  escrowOf,
  FakeReserve,
  Lost,
  rawOf,
  readerOf,
  settlerOf,
  signatureOf,
} from "./fake-reserve.ts";

/** A secret of tests. */
export const SECRET = "a secret of 32 bytes, for tests only";
/** Where what is spent of it is paid out. */
const RECIPIENT = "0x00000000000000000000000000000000000000aa";
const TOKEN = "0x20c0000000000000000000000000000000000000";
const CHAIN_ID = 1337;

/** What outlives processes. */
export interface ChannelFixture {
  readonly store: Store;
  readonly runtime: SimulatedWorld;
  readonly chain: FakeReserve;
  start(options?: LifeOptions): Life;
  /** Lets time go by until something has happened. */
  run<T>(work: Promise<T>): Promise<T>;
  /** Lets time go by; blocks are made. */
  pass(ms: number, stepMs?: number): Promise<void>;
  /**
   * Lets time go by until something is so, at most ten minutes of it, however slow the store is.
   */
  until(isSo: () => unknown): Promise<void>;
}

/** How a process runs. */
export interface LifeOptions {
  readonly fate?: Fate;
  readonly settleUnits?: bigint;
  readonly settleMs?: number;
  readonly waitMs?: number;
  readonly perSecond?: number;
  readonly secret?: string;
  /** True = other processes may have the store at the same time; they see each other by rows. */
  readonly amongOthers?: boolean;
  /** What is configured otherwise. */
  readonly terms?: Partial<SessionTerms>;
}

/** One process. */
export interface Life {
  readonly counter: CredentialHandler;
  readonly reader: ReturnType<typeof readerOf>;
  readonly session: SessionRail;
  readonly watch: ChannelWorker;
  readonly log: () => string;
  isDead(): boolean;
  /** Nothing that it does takes effect any more. */
  kill(): void;
  calls(): number;
  /** Rejects when it is dead. */
  readonly end: Promise<never>;
}

const BLOCK_MS = 1_000;
const STEP_MS = 25;
const LONG_STEP_MS = 250;
const MOST_MS = 600_000;
const MAX_STEPS = 200_000;
const TERMS = termsOf(
  {
    kind: "session",
    rpcUrl: "http://127.0.0.1:1",
    chainId: CHAIN_ID,
    token: { address: TOKEN, name: "", version: "" },
    recipient: RECIPIENT,
    confirmations: 0,
    local: true,
    walletKey: "",
    escrow: null,
    depositN: 1_000_000n,
    settleN: 1n,
    settleMs: 1,
  },
  RECIPIENT,
);

/** A fixture with an empty chain. */
export function channelFixture(store: Store, seed = 1): ChannelFixture {
  const runtime = simulatedWorld(seed);
  const chain = new FakeReserve(() => runtime.wallMs());
  const mine = (): void => {
    chain.mine();
    runtime.after(BLOCK_MS, mine);
  };
  mine();
  return {
    store,
    runtime,
    chain,
    start: (options = {}) => startLife({ store, runtime, chain }, options),
    async run<T>(work: Promise<T>): Promise<T> {
      let isOver = false;
      const end = (): void => {
        isOver = true;
      };
      work.then(end, end);
      for (let steps = 0; !isOver; steps++) {
        assert.ok(steps < MAX_STEPS, "it does not end");
        await quiet();
        if (!isOver) runtime.advance(STEP_MS);
      }
      return work;
    },
    async until(isSo) {
      for (let passedMs = 0; !(await isSo()); passedMs += LONG_STEP_MS) {
        assert.ok(passedMs < MOST_MS, "it does not come to be");
        await quiet();
        runtime.advance(LONG_STEP_MS);
      }
    },
    async pass(ms, stepMs = STEP_MS) {
      for (let passed = 0; passed < ms; passed += stepMs) {
        await quiet();
        runtime.advance(stepMs);
      }
      await quiet();
    },
  };
}

function startLife(
  { store, runtime, chain }: Pick<ChannelFixture, "store" | "runtime" | "chain">,
  options: LifeOptions,
): Life {
  const process = mortalProcess({
    store,
    runtime,
    fate: options.fate,
    lost: (what) => new Lost(what),
  });
  const { outside, write } = process;
  const sealer = new Sealer(options.secret ?? SECRET, null);
  const mine = process.store;
  const channels = new ChannelRecord(sealer);
  const {
    settleUnits = 1_000_000n,
    settleMs = 600_000,
    waitMs = 5_000,
    perSecond = 1_000,
  } = options;
  const live = new LiveChannels({ store: mine, channels });
  const presence = options.amongOthers ? presenceOf(store, process) : presenceAlone(runtime);
  const processes = new CallProcesses(process.runtime, { presence, heartbeatMs: BLOCK_MS });
  const session: SessionRail = {
    runtime: process.runtime,
    store: mine,
    log: { error: write, warn: write, info: write },
    settings: { local: true } as SessionRail["settings"],
    terms: { ...TERMS, ...options.terms },
    policy: { settleUnits, settleMs, watchMs: 30_000 },
    escrow: escrowOf(chain, outside),
    settler: settlerOf(chain, outside, (salt) => channelOf(parseSalt(salt)).id),
    vouchers: {
      isSigned: async ({ channelId, units, signature }) =>
        signature === signatureOf(channelId, units),
    },
    channels,
    transactions: new TransactionRecord(sealer),
    live,
    writer: new ChannelWriter({ runtime: process.runtime, store: mine, channels, processes, live }),
    waitMs,
  };
  const size = { perSecond, burst: perSecond };
  const reader = readerOf(chain, outside);
  return {
    counter: new CredentialHandler(session, reader, size),
    reader,
    session,
    watch: new ChannelWorker(session),
    log: process.log,
    isDead: process.isDead,
    kill: process.kill,
    calls: process.calls,
    end: process.end,
  };
}

let processes = 0;

/** A process that takes all others for ended. */
export function presenceAlone(runtime: Pick<SimulatedWorld, "now">): () => Presence {
  const epoch = { nodeId: "alone", epoch: BigInt(++processes) };
  return () => ({ epoch, heardAtMs: runtime.now() });
}

/** The row of a process, which shows every second that it lives for as long as it does. */
function presenceOf(
  store: Store,
  { runtime, isDead }: Pick<MortalProcess, "runtime" | "isDead">,
): () => Presence | null {
  const node = { id: `process-${++processes}`, region: "" };
  let presence: Presence | null = null;
  const joined = join(store, node, {
    wallMs: runtime.wallMs(),
    replaces: "any",
    processId: node.id,
  });
  async function show(): Promise<void> {
    const heardAtMs = runtime.now();
    const epoch = presence?.epoch ?? (await joined);
    if (epoch === null || isDead()) return;
    if (await beat(store, epoch, runtime.wallMs())) presence = { epoch, heardAtMs };
  }
  const again = (): void => {
    void show();
    runtime.after(BLOCK_MS, again);
  };
  again();
  return () => presence;
}

/** A channel by a number of the test's. */
export function channelOf(number: number): { readonly id: Hex; readonly descriptor: Descriptor } {
  const word = number.toString(16).padStart(64, "0");
  const address = number.toString(16).padStart(40, "0");
  const descriptor: Descriptor = {
    payer: `0x${address}`,
    payee: RECIPIENT,
    operator: ZERO_ADDRESS,
    token: TOKEN,
    salt: `0x${word}`,
    authorizedSigner: ZERO_ADDRESS,
    expiringNonceHash: `0x${word}`,
  };
  return { id: channelIdOf(descriptor, TERMS.escrow, CHAIN_ID), descriptor };
}

function parseSalt(salt: string): number {
  return Number.parseInt(salt.slice(2), 16);
}

/** The payload of a voucher. */
export function voucherOf(
  number: number,
  units: bigint,
  action: "voucher" | "close" = "voucher",
): unknown {
  const { id, descriptor } = channelOf(number);
  return {
    action,
    channelId: id,
    descriptor,
    cumulativeAmount: String(units),
    signature: signatureOf(id, units),
  };
}

/** The payload that opens a channel. */
export function openingOf(
  number: number,
  {
    deposit,
    units,
    validUntilMs,
  }: { readonly deposit: bigint; readonly units: bigint; readonly validUntilMs: number },
): unknown {
  const { id, descriptor } = channelOf(number);
  const transaction = rawOf({ kind: "open", channel: id, units: String(deposit), validUntilMs });
  return {
    action: "open",
    type: "transaction",
    channelId: id,
    descriptor,
    cumulativeAmount: String(units),
    signature: signatureOf(id, units),
    transaction,
  };
}

/** The payload that puts more into one. */
export function topUpOf(
  number: number,
  { units, validUntilMs }: { readonly units: bigint; readonly validUntilMs: number },
): unknown {
  const { id, descriptor } = channelOf(number);
  const transaction = rawOf({ kind: "top_up", channel: id, units: String(units), validUntilMs });
  return {
    action: "topUp",
    type: "transaction",
    channelId: id,
    descriptor,
    additionalDeposit: String(units),
    transaction,
  };
}
