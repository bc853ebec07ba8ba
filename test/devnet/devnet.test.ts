// The local chain against real anvil processes: one chain on every node, failover among them, and
// none left behind.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { type Devnet, type DevnetProvider, startDevnet } from "../../src/devnet/devnet.ts";
import { rpcOf } from "../fakes/node-rpc.ts";
import { until } from "../fakes/service-fixture.ts";

// Well-known keys of anvil's own test accounts.
const ALICE = privateKeyToAccount(
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
);
const BOB = privateKeyToAccount(
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
);

function ask(
  { url }: DevnetProvider,
  method: string,
  params: readonly unknown[] = [],
): Promise<unknown> {
  return rpcOf(url)(method, ...params);
}

function signed(account: typeof ALICE, nonce: number): Promise<string> {
  const fees = { gas: 21_000n, maxFeePerGas: 3_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n };
  return account.signTransaction({
    chainId: 31337,
    nonce,
    to: BOB.address,
    value: 1n,
    type: "eip1559",
    ...fees,
  });
}

async function blockHashOf(provider: DevnetProvider, transaction: unknown): Promise<string> {
  const receipt = await until(
    "receipt",
    async () =>
      (await ask(provider, "eth_getTransactionReceipt", [transaction])) as {
        readonly blockHash: string;
      } | null,
  );
  return receipt.blockHash;
}

/** Resolves once a transaction is in the same block on every node. */
function oneBlockOf(providers: readonly DevnetProvider[], transaction: unknown): Promise<true> {
  return until("one block", async () => {
    const hashes = await Promise.all(
      providers.map((provider) => blockHashOf(provider, transaction)),
    );
    return new Set(hashes).size === 1 ? true : null;
  });
}

async function headHashes(providers: readonly DevnetProvider[]): Promise<readonly string[]> {
  const heads = await Promise.all(
    providers.map((provider) => ask(provider, "eth_getBlockByNumber", ["latest", false])),
  );
  return heads.map((head) => (head as { readonly hash: string }).hash);
}

async function agree(providers: readonly DevnetProvider[]): Promise<string> {
  return until("one head", async () => {
    const [first, ...others] = await headHashes(providers);
    return first !== undefined && others.every((hash) => hash === first) ? first : null;
  });
}

async function gone(providers: readonly DevnetProvider[]): Promise<void> {
  for (const provider of providers) {
    await until(`end of ${provider.id}`, () =>
      ask(provider, "eth_chainId").then(
        () => null,
        () => true,
      ),
    );
  }
}

async function withDevnet(
  nodes: number,
  run: (devnet: Devnet, lines: readonly string[], problems: readonly string[]) => Promise<void>,
): Promise<void> {
  const lines: string[] = [];
  const problems: string[] = [];
  const devnet = await startDevnet({
    nodes,
    onProgress: (line) => lines.push(line),
    onProblem: (line) => problems.push(line),
  });
  try {
    await run(devnet, lines, problems);
  } finally {
    await devnet.close();
  }
}

test(
  "three separate providers hold one chain, and a transaction sent to any one is found through " +
    "each",
  async () => {
    await withDevnet(3, async ({ chain, providers }, lines) => {
      assert.equal(new Set(providers.map(({ pid }) => pid)).size, 3);
      assert.deepEqual(
        providers.map(({ url, wsUrl }) => [new URL(url).hostname, new URL(wsUrl).hostname]),
        Array(3).fill(["127.0.0.1", "127.0.0.1"]),
      );
      for (const provider of providers)
        assert.equal(Number(await ask(provider, "eth_chainId")), chain.chainId);
      await agree(providers);
      for (const [nonce, provider] of providers.entries()) {
        const transaction = await ask(provider, "eth_sendRawTransaction", [
          await signed(ALICE, nonce),
        ]);
        await oneBlockOf(providers, transaction);
      }
      assert.equal(
        lines.length,
        4,
        `one line for the start and one for each node, not ${lines.join(" | ")}`,
      );
    });
  },
);

test(
  "transactions that reach different nodes at the same moment, nonces out of order, are all " +
    "mined and the nodes agree",
  async () => {
    await withDevnet(3, async ({ providers: [a, b, c] }) => {
      assert.ok(a && b && c);
      const nonces = [3, 1, 0, 2, 5, 4];
      const raw = await Promise.all(
        [ALICE, BOB].flatMap((account) => nonces.map((nonce) => signed(account, nonce))),
      );
      const targets = [a, b, c];
      const sent = await Promise.all(
        raw.map((one, at) => ask(targets[at % 3] ?? a, "eth_sendRawTransaction", [one])),
      );
      for (const transaction of sent)
        for (const node of targets) await blockHashOf(node, transaction);
      await agree(targets);
      assert.equal(
        Number(await ask(b, "eth_getTransactionCount", [ALICE.address, "latest"])),
        nonces.length,
      );
    });
  },
);

test("transactions of one sender that a node has at the same moment are all mined", async () => {
  await withDevnet(2, async ({ providers }) => {
    const [leader, follower] = providers;
    assert.ok(leader && follower);
    const raw = await Promise.all([0, 1, 2, 3].map((nonce) => signed(ALICE, nonce)));
    const batch = raw.map((one, id) => {
      return { jsonrpc: "2.0", id, method: "eth_sendRawTransaction", params: [one] };
    });
    const response = await fetch(follower.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(batch),
    });
    for (const { result } of z.array(z.object({ result: z.string() })).parse(await response.json()))
      await blockHashOf(leader, result);
    await agree(providers);
  });
});

test("a block that only one node has made is undone there, and its transactions are kept", async () => {
  await withDevnet(2, async ({ providers }) => {
    const [leader, stray] = providers;
    assert.ok(leader && stray);
    await ask(stray, "evm_mine");
    const transaction = await ask(stray, "eth_sendRawTransaction", [await signed(ALICE, 0)]);
    await blockHashOf(leader, transaction);
    await oneBlockOf(providers, transaction);
    await agree(providers);
  });
});

test(
  "when the node that makes the blocks is killed this is said, it stays away, and the others " +
    "go on",
  async () => {
    await withDevnet(3, async ({ providers: [first, ...rest] }, _, problems) => {
      assert.ok(first);
      process.kill(first.pid, "SIGKILL");
      await gone([first]);
      for (const [at, provider] of rest.entries()) {
        const transaction = await ask(provider, "eth_sendRawTransaction", [await signed(BOB, at)]);
        for (const other of rest) await blockHashOf(other, transaction);
      }
      await agree(rest);
      assert.match(problems.at(-1) ?? "", /^anvil-1 ended \(SIGKILL\)\. It is not restarted/);
    });
  },
);

test("a node that makes the blocks but hangs is replaced, and follows when it answers again", async () => {
  await withDevnet(2, async ({ providers }) => {
    const [first, second] = providers;
    assert.ok(first && second);
    process.kill(first.pid, "SIGSTOP");
    const transaction = await ask(second, "eth_sendRawTransaction", [await signed(ALICE, 0)]);
    await blockHashOf(second, transaction);
    process.kill(first.pid, "SIGCONT");
    await oneBlockOf(providers, transaction);
    await agree(providers);
  });
});

test("a node whose state was changed behind the others' back is left alone, and this is said", async () => {
  await withDevnet(2, async ({ providers: [first, second] }, _, problems) => {
    assert.ok(first && second);
    await ask(second, "anvil_setBalance", [BOB.address, "0x5"]);
    const transaction = await ask(first, "eth_sendRawTransaction", [await signed(ALICE, 0)]);
    await blockHashOf(first, transaction);
    await until(
      "the line",
      async () =>
        problems.find((line) => /^anvil-2 no longer follows the local chain/.test(line)) ?? null,
    );
  });
});

test("after a transaction comes a block without any, long before the block time, to confirm it", async () => {
  await withDevnet(2, async ({ chain, providers: [node] }) => {
    assert.ok(node);
    const transaction = await ask(node, "eth_sendRawTransaction", [await signed(ALICE, 0)]);
    await blockHashOf(node, transaction);
    const blockAt = async (number: number) =>
      BLOCK.nullable().parse(
        await ask(node, "eth_getBlockByNumber", [`0x${number.toString(16)}`, false]),
      );
    const mined = await blockAt(Number(await ask(node, "eth_blockNumber")));
    assert.equal(mined?.transactions.length, 1);
    const next = await until("the confirmation", () => blockAt(Number(mined.number) + 1));
    assert.deepEqual(next.transactions, []);
    const seconds = Number(next.timestamp) - Number(mined.timestamp);
    assert.ok(seconds < chain.blockTimeMs / 2_000, `after ${seconds} s`);
  });
});

const BLOCK = z.object({
  number: z.string(),
  timestamp: z.string(),
  transactions: z.array(z.string()),
});

test("a node that copies blocks later lacks the newest, two at most, and gets them in order", async () => {
  const copyDelaysMs = [0, 3_600_000];
  const devnet = await startDevnet({ nodes: 2, copyDelaysMs, onProgress: () => {} });
  try {
    const [leader, late] = devnet.providers;
    assert.ok(leader && late);
    const sent: unknown[] = [];
    for (const [n, account] of [ALICE, BOB, ALICE].entries()) {
      // Whichever node takes it, the block is made at once.
      const raw = await signed(account, n === 2 ? 1 : 0);
      const transaction = await ask(n === 1 ? late : leader, "eth_sendRawTransaction", [raw]);
      await blockHashOf(leader, transaction);
      sent.push(transaction);
    }
    const [first] = sent;
    assert.equal(await blockHashOf(late, first), await blockHashOf(leader, first));
    const heightOf = async (provider: DevnetProvider): Promise<number> =>
      Number(await ask(provider, "eth_blockNumber"));
    const lateHeight = await heightOf(late);
    const missing = (await heightOf(leader)) - lateHeight;
    assert.ok(missing >= 1, `it lacks ${missing}`);
    const height = await heightOf(leader);
    await until("all but two", async () => ((await heightOf(late)) >= height - 2 ? true : null));
  } finally {
    await devnet.close();
  }
});

test("one node alone makes a block for each transaction, and no other", async () => {
  await withDevnet(1, async ({ providers: [only] }) => {
    assert.ok(only);
    assert.equal(await ask(only, "anvil_getAutomine"), true);
    const before = Number(await ask(only, "eth_blockNumber"));
    for (const nonce of [0, 1, 2]) {
      const sent = await ask(only, "eth_sendRawTransaction", [await signed(ALICE, nonce)]);
      await blockHashOf(only, sent);
      assert.equal(Number(await ask(only, "eth_blockNumber")), before + nonce + 1);
    }
  });
});

test("close leaves no node behind", async () => {
  const devnet = await startDevnet({ nodes: 2, onProgress: () => {} });
  await devnet.close();
  await gone(devnet.providers);
});

test("a service killed with SIGKILL leaves no node behind", async () => {
  const source = `import { startDevnet } from ${JSON.stringify(new URL("../../src/devnet/devnet.ts", import.meta.url).href)};
    console.log(JSON.stringify((await startDevnet({ nodes: 2, onProgress: () => {} })).providers));
    setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", source], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(parent.stdout, "data");
  const providers = JSON.parse(String(line)) as readonly DevnetProvider[];
  await agree(providers);
  parent.kill("SIGKILL");
  await gone(providers);
});

test("a number of nodes that makes no chain is refused before anything starts", async () => {
  for (const nodes of [0, -1, 1.5, 9, Number.NaN])
    await assert.rejects(startDevnet({ nodes, onProgress: () => {} }), RangeError);
});
