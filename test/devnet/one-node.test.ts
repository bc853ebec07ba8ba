// A development chain of one node, as `npm start -- --devnet-nodes 1` serves it: scripts change its
// state as if they spoke to anvil.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createTestClient, http, parseEther, publicActions, walletActions } from "viem";
import { type Devnet, startDevnet, withDevnet } from "../../src/devnet/devnet.ts";
import { ALICE, localChain, sameHeight } from "../fakes/real-nodes.ts";
import { type Service, startService } from "../fakes/service.ts";

const BOB = "0x00000000000000000000000000000000000b0b01";
const NOBODY = "0x00000000000000000000000000000000000a11ce";
/** Written as a file is, so that routing stays as it comes: with its cache and its view. */
const DEMONSTRATION = "server: { port: 0 }\ndevnet: true\n";

let devnet: Devnet;
let service: Service;
before(async () => {
  devnet = await startDevnet({ nodes: 1, onProgress: () => {} });
  service = await startService(DEMONSTRATION, undefined, (it) => withDevnet(it, devnet));
  await sameHeight(devnet, service);
});
after(() => Promise.all([service.close(), devnet.close()]));

async function ask(method: string, params: readonly unknown[] = []) {
  return (await service.post("/rpc/local", { jsonrpc: "2.0", id: 1, method, params })).json;
}

/** viem's client of anvil, which asks for what changes between two reads. */
function client() {
  const chain = localChain(`${service.url}/rpc/local`);
  const settings = { chain, transport: http(), account: ALICE, pollingInterval: 50 };
  return createTestClient({ ...settings, mode: "anvil", cacheTime: 0 })
    .extend(publicActions)
    .extend(walletActions);
}

async function seconds(): Promise<bigint> {
  return (await client().getBlock()).timestamp;
}

test("every read after a change of state has it, without a block between them", async () => {
  const one = client();
  for (let n = 1n; n <= 9n; n++) {
    await one.setBalance({ address: BOB, value: n });
    assert.equal(await one.getBalance({ address: BOB }), n);
  }
  await one.setCode({ address: BOB, bytecode: "0x602a60005260206000f3" });
  assert.equal(BigInt((await one.call({ to: BOB })).data ?? "0x0"), 42n);
  await one.setNonce({ address: BOB, nonce: 9 });
  assert.equal(await one.getTransactionCount({ address: BOB }), 9);
});

test("a transaction has a block of its own, and its time is the one that was set", async () => {
  const one = client();
  const wanted = (await seconds()) + 5_000n;
  await one.setNextBlockTimestamp({ timestamp: wanted });
  const height = await one.getBlockNumber();
  const hash = await one.sendTransaction({ to: NOBODY, value: 1n });
  const { blockNumber } = await one.waitForTransactionReceipt({ hash });
  assert.equal(blockNumber, height + 1n);
  assert.equal(await seconds(), wanted);
});

test("reverting to a snapshot undoes blocks, receipts and nonces, as often as it is done", async () => {
  const one = client();
  const nonceOf = () => one.getTransactionCount({ address: ALICE.address, blockTag: "pending" });
  const before = [await one.getBlockNumber(), await nonceOf()];
  for (let round = 1n; round <= 3n; round++) {
    const id = await one.snapshot();
    const hash = await one.sendTransaction({ to: NOBODY, value: round });
    await one.waitForTransactionReceipt({ hash });
    assert.equal(await nonceOf(), Number(before[1]) + 1);
    await one.revert({ id });
    assert.deepEqual([await one.getBlockNumber(), await nonceOf()], before);
    assert.equal((await ask("eth_getTransactionReceipt", [hash])).result, null);
  }
});

test("a transaction of an impersonated account is sent without a signature", async () => {
  const one = client();
  await one.setBalance({ address: NOBODY, value: parseEther("1") });
  await one.impersonateAccount({ address: NOBODY });
  const { result: hash } = await ask("eth_sendUnsignedTransaction", [
    { from: NOBODY, to: ALICE.address, value: "0x1" },
  ]);
  const { from, status } = await one.waitForTransactionReceipt({ hash });
  assert.deepEqual([from, status], [NOBODY, "success"]);
});
