// What the tests of the Tempo rail share: a real chain whose blocks come when they are asked for,
// and payments as stock clients and stranger ones make them.
import assert from "node:assert/strict";
import { Challenge, Credential } from "mppx";
import { tempo } from "mppx/client";
import { type Account as AnyAccount, createClient, type Hex, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { Actions, Transaction } from "viem/tempo";
import { tempoLocalnet } from "viem/tempo/chains";
import { startAnvil } from "../../../../src/devnet/anvil-process.ts";
import { PAYER, RECIPIENT } from "../../../../src/devnet/payments/wallets.ts";
import { Protocol } from "../../../../src/payments/protocol.ts";
import type {
  BadPayment,
  ChainStatus,
  Payment,
  PaymentCredential,
  Rail,
  RailPurchase,
  Submission,
} from "../../../../src/payments/rails/rail.ts";
import type { TempoRailSettings } from "../../../../src/payments/rails/rail-kind.ts";
import { createTempoRail } from "../../../../src/payments/rails/tempo/tempo-rail.ts";
import { realRuntime } from "../../../../src/runtime.ts";
import { type ChainProxy, startChainProxy } from "../../../fakes/chain-proxy.ts";
import { rpcOf } from "../../../fakes/node-rpc.ts";
import { patientWorld } from "../../patient-world.ts";

const REALM = "svc.test";
export const TOKEN = "0x20c0000000000000000000000000000000000000";
export const OTHER_TOKEN = "0x20c0000000000000000000000000000000000001";
const CHAIN_ID = 1337;
export const UNITS = 100_000n;
export const protocol = new Protocol({
  realm: REALM,
  secret: "a secret of this test, long enough to be one",
  previousSecret: null,
});

export interface TempoFixture {
  readonly settings: TempoRailSettings;
  readonly rail: Rail;
  readonly client: ReturnType<typeof clientOf>;
  readonly payer: ReturnType<typeof privateKeyToAccount>;
  readonly rpc: (method: string, ...params: readonly unknown[]) => Promise<unknown>;
  /** Carries each question of the rail. */
  readonly proxy: ChainProxy;
  mine(blocks?: number): Promise<void>;
  /**
   * From now on each block is a second later than the one before it, however long the machine takes
   * for what is between them: what was signed ends when the test says so.
   */
  stopClock(): Promise<void>;
  /** What the recipient has got since the fixture began. */
  received(): Promise<bigint>;
  railWith(over: Partial<TempoRailSettings>, realm?: string): Rail;
  close(): Promise<void>;
}

const TEMPO = ["--network", "tempo", "--hardfork", "T4", "--chain-id", `${CHAIN_ID}`];

/** Starts a chain that mines by `mine` alone. */
export async function startTempoFixture(): Promise<TempoFixture> {
  const node = await startAnvil({
    id: "tempo",
    args: TEMPO,
    runtime: realRuntime,
    onCrash: () => {},
  });
  const rpc = rpcOf(node.url);
  await rpc("evm_mine");
  await rpc("evm_setAutomine", false);
  const proxy = await startChainProxy(node.url);
  const token = { address: TOKEN, name: "", version: "" };
  const base = {
    rpcUrl: proxy.url,
    chainId: CHAIN_ID,
    token,
    recipient: RECIPIENT.address,
    confirmations: 0,
    local: true,
  };
  const settings: TempoRailSettings = { ...base, kind: "tempo", modes: ["pull", "push"] };
  const balance = async (): Promise<bigint> =>
    BigInt(
      String(
        await rpc(
          "eth_call",
          { to: TOKEN, data: `0x70a08231${RECIPIENT.address.slice(2).padStart(64, "0")}` },
          "latest",
        ),
      ),
    );
  const before = await balance();
  const railWith: TempoFixture["railWith"] = (over, realm = REALM) =>
    createTempoRail({ ...settings, ...over }, { runtime: patientWorld, realm });
  return {
    settings,
    rail: railWith({}),
    client: clientOf(node.url),
    payer: privateKeyToAccount(PAYER.key),
    rpc,
    proxy,
    mine: async (blocks = 1) => {
      for (let mined = 0; mined < blocks; mined += 1) await rpc("evm_mine");
    },
    stopClock: async () => void (await rpc("anvil_setBlockTimestampInterval", 1)),
    received: async () => (await balance()) - before,
    railWith,
    close: async () => {
      await Promise.all([proxy.close(), node.end()]);
    },
  };
}

/** A client of the node at a URL, as wallets have one. */
export function clientOf(url: string) {
  return createClient({
    chain: { ...tempoLocalnet, id: CHAIN_ID },
    transport: http(url),
    pollingInterval: 20,
  });
}

/** A challenge of ours, as a client gets it. */
export function challengeOf(
  rail: Rail,
  { units = UNITS, expiresInS = 300 } = {},
): Challenge.Challenge {
  const [, header = ""] = protocol.challenge({
    offers: [rail.offer(units)],
    x402: [],
    digest: "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:",
    fingerprint: "fingerprint",
    resourceUrl: "https://svc.test/",
    description: "a payment",
    expiresAtMs: Date.now() + expiresInS * 1_000,
    keepsAuthorization: false,
  });
  return Challenge.deserialize(header);
}

/**
 * What the stock client answers a challenge with; in mode `push` blocks have to be mined meanwhile.
 * The chain's clock goes on with its blocks only: one is mined when the payment was signed, since
 * the chain takes none that is valid for much longer than its newest block.
 */
export async function stockPayment(
  { client, mine }: TempoFixture,
  challenge: Challenge.Challenge,
  { account, mode = "pull" }: { readonly account: AnyAccount; readonly mode?: "pull" | "push" },
): Promise<string> {
  const method = tempo.charge({ account, getClient: () => client });
  const credential = await method.createCredential({ challenge, context: { mode } } as never);
  await mine();
  return credential;
}

/** A credential as the protocol hands it to the rail. */
export function presented(credential: string): PaymentCredential {
  const read = protocol.read({ protocol: "mpp", text: credential });
  if ("kind" in read) assert.fail(read.reason);
  return read;
}

/** A payload as the protocol hands it to the rail. */
export function shown(
  challenge: Challenge.Challenge,
  payload: unknown,
  source?: string,
): PaymentCredential {
  return presented(
    Credential.serialize({ challenge, payload, ...(source === undefined ? {} : { source }) }),
  );
}

/** The signed transaction of a pull credential. */
export function transactionIn(given: PaymentCredential): Hex {
  const { payload } = given as { payload: { signature: Hex } };
  return payload.signature;
}

/** Reads a payment that has to be right. */
export async function taken(rail: Rail, given: PaymentCredential, units = UNITS): Promise<Payment> {
  const payment = await rail.read(given, units);
  if ("kind" in payment) assert.fail(`${payment.problem}: ${payment.reason}`);
  return payment;
}

/** Problem and reason of a payment that has to be wrong. */
export function refusal(answer: Payment | BadPayment | null): string {
  if (answer === null || !("kind" in answer)) assert.fail("the payment was taken");
  return `${answer.problem}: ${answer.reason}`;
}

/** One call of a transaction. */
export interface TestCall {
  readonly to: Hex;
  readonly data?: Hex;
}

/** `transferWithMemo`, or `transfer` without a memo. */
export function transfer(
  fixture: Pick<TempoFixture, "client">,
  over: { units?: bigint; to?: Hex; token?: Hex; memo?: Hex } = {},
): TestCall {
  const { units = UNITS, to = RECIPIENT.address, token = TOKEN, memo } = over;
  const call = Actions.token.transfer.call(fixture.client, {
    amount: units,
    to,
    token,
    ...(memo === undefined ? {} : { memo }),
  } as never);
  return { to: token, data: (call as unknown as { data: Hex }).data };
}

/** Signs a transaction that no stock client would make. */
export async function signedTransaction(
  fixture: Pick<TempoFixture, "payer">,
  calls: readonly TestCall[],
  over: Record<string, unknown> = {},
  account: AnyAccount = fixture.payer,
): Promise<Hex> {
  const request = {
    calls,
    chainId: CHAIN_ID,
    gas: 2_000_000n,
    maxFeePerGas: 40_000_000_000n,
    maxPriorityFeePerGas: 1_000_000_000n,
    nonceKey: 2n ** 256n - 1n,
    nonce: 0,
    validBefore: nowS() + 25,
    feeToken: TOKEN,
    ...over,
    type: "tempo",
  };
  assert.ok(account.signTransaction !== undefined);
  return account.signTransaction(request as never, { serializer: Transaction.serialize as never });
}

/** A payment that no stock client would make; a block is mined as for those that it makes. */
export async function strangePayment(
  fixture: TempoFixture,
  {
    challenge,
    calls,
    over,
    account,
  }: {
    challenge: Challenge.Challenge;
    calls: readonly TestCall[];
    over?: Record<string, unknown>;
    account?: AnyAccount;
  },
): Promise<PaymentCredential> {
  const signature = await signedTransaction(fixture, calls, over, account);
  await fixture.mine();
  return shown(challenge, { type: "transaction", signature });
}

export function nowS(): number {
  return Math.floor(Date.now() / 1_000);
}

/** A purchase as a test keeps it: what was written is what would be in the store. */
export class Purchase implements RailPurchase {
  readonly id = "purchase";
  readonly payment: Payment;
  submissions: readonly Submission[] = [];

  constructor(payment: Payment) {
    this.payment = payment;
  }
}

/**
 * One step of a purchase: looks, and sends where the rail says so. Resolves with what was seen
 * before.
 */
export async function step(rail: Rail, purchase: Purchase): Promise<ChainStatus> {
  const truth = await rail.look(purchase);
  if (truth.kind !== "open") return truth;
  assert.equal(truth.replace, false);
  const newest = purchase.submissions.at(-1);
  if (newest === undefined) {
    const draft = await rail.draft(purchase);
    assert.ok(draft !== null && draft.wallet === null);
    const submission = await draft.sign(null);
    purchase.submissions = [submission];
    await rail.send(submission);
  } else if (truth.resend) await rail.send(newest);
  return truth;
}

/** Steps and mines until a purchase ends. */
export async function driven(
  fixture: TempoFixture,
  purchase: Purchase,
  rail = fixture.rail,
): Promise<ChainStatus> {
  for (let steps = 0; steps < 10; steps += 1) {
    const truth = await step(rail, purchase);
    if (truth.kind !== "open") return truth;
    await fixture.mine();
  }
  assert.fail("the purchase does not end");
}
