// The local payment chains: the token behaves as EIP-3009 says, stock wallets pay on both chains,
// what a chain would refuse is told before, and nothing is left.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after, before, describe, it, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Challenge, Credential } from "mppx";
import { tempo } from "mppx/client";
import {
  BaseError,
  ContractFunctionRevertedError,
  createClient,
  decodeFunctionResult,
  domainSeparator,
  encodeFunctionData,
  type Hex,
  http,
  keccak256,
  parseAbi,
  parseEventLogs,
  parseSignature,
  toHex,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import {
  call,
  getBlock,
  readContract,
  simulateContract,
  waitForTransactionReceipt,
  writeContract,
} from "viem/actions";
import { foundry, tempoLocalnet } from "viem/chains";
import { Actions } from "viem/tempo";
import { z } from "zod";
import { FUNDS_UNITS } from "../../../src/devnet/payments/local-contracts.ts";
import {
  type LocalWallet,
  MINTER,
  OTHER_PAYERS,
  PAYER,
  RECIPIENT,
  SESSION,
  SETTLEMENT,
} from "../../../src/devnet/payments/wallets.ts";
import { type PaymentChains, startPaymentChains } from "../../fakes/payment-chains.ts";
import { CONTRACTS, compiled } from "../../fakes/solidity.ts";

const ABI = parseAbi([
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);
const MOVE = [
  "address from",
  "address to",
  "uint256 value",
  "uint256 validAfter",
  "uint256 validBefore",
  "bytes32 nonce",
];
const fields = (all: readonly string[]) =>
  all.map((it) => {
    const [type = "", name = ""] = it.split(" ");
    return { type, name };
  });
const TYPES = {
  TransferWithAuthorization: fields(MOVE),
  ReceiveWithAuthorization: fields(MOVE),
  CancelAuthorization: fields(["address authorizer", "bytes32 nonce"]),
};
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const Pulled = z.object({ signature: z.custom<Hex>((it) => typeof it === "string") });
const Pushed = z.object({ hash: z.custom<Hex>((it) => typeof it === "string") });

interface Move {
  readonly from: Hex;
  readonly to: Hex;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly nonce: Hex;
}

test("every key belongs to its address, and no wallet has two roles", () => {
  const all = [PAYER, ...OTHER_PAYERS, RECIPIENT, SETTLEMENT, SESSION, MINTER];
  for (const { address, key } of all) assert.equal(privateKeyToAccount(key).address, address);
  assert.equal(new Set(all.map((it) => it.address)).size, all.length);
});

test(
  "the committed code of every contract is what the compiler makes of its source; else run " +
    "bin/contracts.ts",
  () => {
    for (const contract of CONTRACTS)
      assert.equal(readFileSync(contract.file, "utf8"), compiled(contract), contract.name);
  },
);

describe("the local payment chains", () => {
  let chains: PaymentChains;
  let sent = 0;
  before(async () => {
    chains = await startPaymentChains();
  });
  after(() => chains.close());

  const evmClient = ({ key }: LocalWallet) =>
    createClient({
      chain: foundry,
      transport: http(chains.evm.rpcUrl),
      account: privateKeyToAccount(key),
      pollingInterval: 20,
    });
  const tempoClient = ({ key }: LocalWallet) =>
    createClient({
      chain: tempoLocalnet,
      transport: http(chains.tempo.rpcUrl),
      account: privateKeyToAccount(key),
      pollingInterval: 20,
    });
  const domain = () => ({
    name: "Development Dollar",
    version: "1",
    chainId: 31_337,
    verifyingContract: chains.evm.token.address as Hex,
  });
  const token = () => ({ address: chains.evm.token.address as Hex, abi: ABI });
  const moveOf = async (change: Partial<Move> = {}): Promise<Move> => {
    const { timestamp } = await getBlock(evmClient(SETTLEMENT));
    const nonce = keccak256(toHex(`authorization ${++sent}`));
    return {
      from: PAYER.address,
      to: RECIPIENT.address,
      value: 100_000n,
      validAfter: 0n,
      validBefore: timestamp + 300n,
      nonce,
      ...change,
    };
  };
  const signed = (primaryType: keyof typeof TYPES, message: Record<string, unknown>, who = PAYER) =>
    privateKeyToAccount(who.key).signTypedData({
      domain: domain(),
      types: TYPES,
      primaryType,
      message,
    } as never);
  const args = (move: Move) =>
    [move.from, move.to, move.value, move.validAfter, move.validBefore, move.nonce] as const;
  const parts = (signature: Hex) => {
    const { r, s, yParity } = parseSignature(signature);
    return [yParity + 27, r, s] as const;
  };
  const write = async (who: LocalWallet, functionName: string, values: readonly unknown[]) => {
    const hash = await writeContract(evmClient(who), {
      ...token(),
      functionName,
      args: values,
    } as never);
    const receipt = await waitForTransactionReceipt(evmClient(who), { hash });
    return { status: receipt.status, events: parseEventLogs({ abi: ABI, logs: receipt.logs }) };
  };
  const refused = async (
    why: string,
    who: LocalWallet,
    functionName: string,
    values: readonly unknown[],
  ): Promise<void> => {
    await assert.rejects(
      simulateContract(evmClient(who), { ...token(), functionName, args: values } as never),
      (error: unknown) => {
        const reverted =
          error instanceof BaseError
            ? error.walk((it) => it instanceof ContractFunctionRevertedError)
            : null;
        assert.equal(
          reverted instanceof ContractFunctionRevertedError ? reverted.reason : String(error),
          `DEVUSD: ${why}`,
        );
        return true;
      },
    );
  };

  it(
    "the token signs for its own domain, payers are funded, the settlement wallet has gas and no " +
      "tokens",
    async () => {
      assert.equal(
        await readContract(evmClient(PAYER), { ...token(), functionName: "DOMAIN_SEPARATOR" }),
        domainSeparator({ domain: domain() }),
      );
      for (const { address } of [PAYER, ...OTHER_PAYERS])
        assert.equal(await chains.evm.balanceOf(address), FUNDS_UNITS);
      assert.equal(await chains.evm.balanceOf(SETTLEMENT.address), 0n);
      assert.ok(
        BigInt(String(await chains.evm.rpc("eth_getBalance", SETTLEMENT.address, "latest"))) >
          chains.rails.evm.lowGasWei,
      );
      for (const { address } of [PAYER, ...OTHER_PAYERS])
        assert.ok((await chains.tempo.balanceOf(address)) > FUNDS_UNITS);
    },
  );

  it("an authorization moves the money once, sent by anybody, and leaves its marker", async () => {
    const move = await moveOf();
    const signature = await signed("TransferWithAuthorization", { ...move });
    const before = await chains.evm.balanceOf(RECIPIENT.address);
    const { status, events } = await write(SETTLEMENT, "transferWithAuthorization", [
      ...args(move),
      ...parts(signature),
    ]);
    assert.deepEqual(
      [status, events.map((it) => it.eventName)],
      ["success", ["AuthorizationUsed", "Transfer"]],
    );
    assert.equal((await chains.evm.balanceOf(RECIPIENT.address)) - before, move.value);
    assert.equal(
      await readContract(evmClient(PAYER), {
        ...token(),
        functionName: "authorizationState",
        args: [PAYER.address, move.nonce],
      }),
      true,
    );
    await refused("authorization is used or canceled", SETTLEMENT, "transferWithAuthorization", [
      ...args(move),
      ...parts(signature),
    ]);
    const again = await moveOf();
    await write(SETTLEMENT, "transferWithAuthorization", [
      ...args(again),
      await signed("TransferWithAuthorization", { ...again }),
    ]);
    assert.equal((await chains.evm.balanceOf(RECIPIENT.address)) - before, 2n * move.value);
  });

  it(
    "what is expired, early, too much, changed, signed by another or by the twin of a signature " +
      "is refused",
    async () => {
      const { timestamp } = await getBlock(evmClient(SETTLEMENT));
      const attempt = async (why: string, change: Partial<Move>, who = PAYER): Promise<void> => {
        const move = await moveOf(change);
        await refused(why, SETTLEMENT, "transferWithAuthorization", [
          ...args(move),
          ...parts(await signed("TransferWithAuthorization", { ...move }, who)),
        ]);
      };
      await attempt("authorization is expired", { validBefore: timestamp });
      await attempt("authorization is not yet valid", { validAfter: timestamp + 300n });
      await attempt("transfer amount exceeds balance", { value: FUNDS_UNITS * 10n });
      await attempt("invalid signature", {}, MINTER);
      const move = await moveOf();
      const signature = await signed("TransferWithAuthorization", { ...move });
      await refused("invalid signature", SETTLEMENT, "transferWithAuthorization", [
        ...args({ ...move, value: move.value + 1n }),
        ...parts(signature),
      ]);
      const { s } = parseSignature(signature);
      const [v, r] = parts(signature);
      const twin = [v === 27 ? 28 : 27, r, toHex(ORDER - BigInt(s), { size: 32 })];
      await refused("invalid signature", SETTLEMENT, "transferWithAuthorization", [
        ...args(move),
        ...twin,
      ]);
      await refused("invalid signature", SETTLEMENT, "transferWithAuthorization", [
        ...args(move),
        "0x12",
      ]);
    },
  );

  it("the payer calls an authorization off", async () => {
    const move = await moveOf();
    const signature = parts(await signed("TransferWithAuthorization", { ...move }));
    const message = { authorizer: PAYER.address, nonce: move.nonce };
    await refused("invalid signature", SETTLEMENT, "cancelAuthorization", [
      PAYER.address,
      move.nonce,
      ...signature,
    ]);
    const { events } = await write(SETTLEMENT, "cancelAuthorization", [
      PAYER.address,
      move.nonce,
      ...parts(await signed("CancelAuthorization", message)),
    ]);
    assert.deepEqual(
      events.map((it) => it.eventName),
      ["AuthorizationCanceled"],
    );
    await refused("authorization is used or canceled", SETTLEMENT, "transferWithAuthorization", [
      ...args(move),
      ...signature,
    ]);
  });

  const charged = async (mode: "pull" | "push") => {
    const challenge = Challenge.from({
      id: `challenge-${mode}`,
      realm: "test",
      method: "tempo",
      intent: "charge",
      request: {
        amount: "100000",
        currency: chains.tempo.token.address,
        recipient: RECIPIENT.address,
        methodDetails: { chainId: 1337 },
      },
    });
    const method = tempo.charge({
      account: privateKeyToAccount(PAYER.key),
      getClient: () => tempoClient(PAYER),
      mode,
    });
    return Credential.deserialize(
      await method.createCredential({ challenge: challenge as never, context: {} }),
    ).payload;
  };

  for (const mode of ["pull", "push"] as const) {
    it(`the stock wallet pays on the Tempo chain (${mode})`, async () => {
      const before = await chains.tempo.balanceOf(RECIPIENT.address);
      const payload = await charged(mode);
      const hash =
        mode === "push"
          ? Pushed.parse(payload).hash
          : String(
              await chains.tempo.rpc("eth_sendRawTransaction", Pulled.parse(payload).signature),
            );
      const { status } = await waitForTransactionReceipt(tempoClient(PAYER), { hash: hash as Hex });
      assert.deepEqual(
        [status, (await chains.tempo.balanceOf(RECIPIENT.address)) - before],
        ["success", 100_000n],
      );
    });
  }

  it(
    "a Tempo transaction that would be reverted is told before it is sent, alone and in a batch " +
      "of requests",
    async () => {
      const { to, data } = Actions.token.transfer.call(tempoClient(PAYER), {
        amount: 2n ** 100n,
        to: RECIPIENT.address,
        token: chains.tempo.token.address as Hex,
      });
      const asked = { from: PAYER.address, type: "0x76", calls: [{ to, data, value: "0x0" }] };
      for (const method of ["eth_call", "eth_estimateGas", "eth_fillTransaction"]) {
        const body = { jsonrpc: "2.0", id: 7, method, params: [asked] };
        const post = async (it: unknown) =>
          (await fetch(chains.tempo.rpcUrl, { method: "POST", body: JSON.stringify(it) })).json();
        const Refusal = z.object({ id: z.literal(7), error: z.object({ message: z.string() }) });
        Refusal.parse(await post(body));
        z.tuple([Refusal, z.object({ id: z.literal(8), result: z.literal("0x539") })]).parse(
          await post([body, { jsonrpc: "2.0", id: 8, method: "eth_chainId" }]),
        );
      }
    },
  );

  it("while the Tempo chain is held a payment waits, and afterwards it goes through", async () => {
    await chains.holdTempo(true);
    const { signature } = Pulled.parse(await charged("pull"));
    const hash = await chains.tempo.rpc("eth_sendRawTransaction", signature);
    assert.equal(await chains.tempo.rpc("eth_getTransactionReceipt", hash), null);
    await chains.holdTempo(false);
    assert.equal(
      (await waitForTransactionReceipt(tempoClient(PAYER), { hash: hash as Hex })).status,
      "success",
    );
  });

  it("the clock of both chains goes on while nobody pays: wallets sign for the next seconds", async () => {
    for (const { rpc } of [chains.tempo, chains.evm]) {
      const height = async () => Number(await rpc("eth_blockNumber"));
      for (const first = await height(); (await height()) < first + 2; ) await sleep(50);
      const { timestamp } = z
        .object({ timestamp: z.string() })
        .parse(await rpc("eth_getBlockByNumber", "latest", false));
      assert.ok(
        Number(timestamp) <= Date.now() / 1000,
        "and it never runs ahead, however many blocks are made",
      );
    }
  });

  it("both chains and the front are on 127.0.0.1", () => {
    for (const url of [
      chains.tempo.rpcUrl,
      chains.tempo.wsUrl,
      chains.evm.rpcUrl,
      chains.evm.wsUrl,
    ])
      assert.equal(new URL(url).hostname, "127.0.0.1");
  });

  it("one who looks at the channel reserve is told that it is a stand-in for development", async () => {
    const abi = parseAbi(["function DEVELOPMENT_STAND_IN() view returns (string)"]);
    const client = createClient({ transport: http(chains.tempo.rpcUrl) });
    const { data } = await call(client, {
      to: "0x4d50500000000000000000000000000000000000",
      data: encodeFunctionData({ abi }),
    });
    assert.match(decodeFunctionResult({ abi, data: data ?? "0x" }), /^development stand-in/);
  });
});

test("a process killed with SIGKILL leaves no payment chain behind", async () => {
  const source = `import { startPaymentChains } from ${JSON.stringify(new URL("../../fakes/payment-chains.ts", import.meta.url).href)};
    const { tempo, evm } = await startPaymentChains();
    console.log(JSON.stringify([tempo, evm].map((it) => it.wsUrl.replace("ws", "http"))));
    setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", source], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(parent.stdout, "data");
  const nodes = z
    .array(z.string())
    .length(2)
    .parse(JSON.parse(String(line)));
  const answers = (url: string): Promise<boolean> =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}',
    }).then(
      () => true,
      () => false,
    );
  for (const url of nodes) assert.equal(await answers(url), true);
  parent.kill("SIGKILL");
  for (const url of nodes) while (await answers(url)) await sleep(20);
});
