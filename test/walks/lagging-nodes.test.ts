// The local demonstration, as `npm start` serves it, over nodes that copy blocks later than others:
// viem and ethers send, wait, read and send again, and every value is what one node would say.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { parse, stringify } from "yaml";
import { type Devnet, startDevnet, withDevnet } from "../../src/devnet/devnet.ts";
import { COUNTER_BYTECODE } from "../clients/counter.ts";
import { ethersRounds } from "../clients/ethers-rounds.ts";
import type { RoundsTask } from "../clients/protocol.ts";
import { type RoundsClient, runRounds } from "../clients/rounds.ts";
import { LAGGING } from "../clients/rounds-fixture.ts";
import { viemRounds } from "../clients/viem-rounds.ts";
import { sameHeight } from "../fakes/real-nodes.ts";
import { type Service, startService } from "../fakes/service.ts";

const ROUNDS = 15;
const DEMONSTRATION = new URL("../../svc.yml", import.meta.url);
/** Ways of a client, each with an account that has money on every local node. */
const WAYS: readonly (readonly [
  name: string,
  wire: RoundsTask["wire"],
  clientOf: (task: RoundsTask) => RoundsClient,
  key: string,
])[] = [
  ["viem", "http", viemRounds, "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"],
  ["viem", "ws", viemRounds, "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"],
  [
    "ethers",
    "http",
    ethersRounds,
    "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  ],
  [
    "ethers",
    "ws",
    ethersRounds,
    "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
  ],
];

/** svc.yml without the chains that need a network; YAML, so that routing stays as it comes. */
function demonstrationText(): string {
  const {
    server: _,
    chains: __,
    profiles: ___,
    ...rest
  } = parse(readFileSync(DEMONSTRATION, "utf8"));
  return stringify({ ...rest, server: { port: 0 } });
}

// All at once, so that blocks come in quick succession.
describe("over three nodes that lag", { concurrency: WAYS.length }, () => {
  let devnet: Devnet;
  let service: Service;

  before(async () => {
    devnet = await startDevnet({ nodes: 3, ...LAGGING, onProgress: () => {} });
    service = await startService(demonstrationText(), undefined, (it) => withDevnet(it, devnet));
    await sameHeight(devnet, service);
  });
  after(() => Promise.all([service.close(), devnet.close()]));

  for (const [name, wire, clientOf, key] of WAYS)
    it(`${name} over ${wire} is told what one node would say`, async () => {
      const base = wire === "http" ? service.url : `${service.url.replace("http", "ws")}/ws`;
      const task: RoundsTask = {
        feature: "rounds",
        wire,
        url: `${base}/rpc/local`,
        key: `0x${key}`,
        count: ROUNDS,
        bytecode: COUNTER_BYTECODE,
      };
      assert.deepEqual(await runRounds(clientOf(task), task), {
        rounds: ROUNDS,
        wrong: {},
        firstError: null,
      });
    });
});
