// A node as a process of its own: spends as fast as it may, and says what the store has
// acknowledged. The crash tests kill it.
// `node spender.ts '{"url":…,"dataDir":…,"nodeId":…,"accountIds":[…]}'`; ends on SIGTERM.
import { writeSync } from "node:fs";
import { realRuntime } from "../../../src/runtime.ts";
import { openStore } from "../../../src/shared/store/store.ts";
import { openCredit } from "../../fakes/credit.ts";
import { waitLongFor } from "../../fakes/postgres.ts";

/** What the process is told. */
export interface SpenderInput {
  readonly url: string;
  readonly dataDir: string;
  readonly nodeId: string;
  readonly accountIds: readonly string[];
}

const CU = 5_000;
const CALLS_A_TURN = 50;
const SETTINGS = { flushIntervalMs: 50, nodeTimeoutMs: 120_000, minSliceN: 100 * CU } as const;

const input = parseInput(process.argv[2] ?? "");
waitLongFor(input.url);
const store = await openStore(input);
const failures: unknown[] = [];
const credit = await openCredit({
  store,
  runtime: realRuntime,
  node: { id: input.nodeId, region: "" },
  settings: SETTINGS,
  onError: (error) => failures.push(error),
});
let servedN = 0;
let isEnding = false;
process.once("SIGTERM", () => {
  isEnding = true;
});
say({ kind: "ready" });
for (let turn = 0; !isEnding; turn++) {
  for (let call = 0; call < CALLS_A_TURN; call++)
    serve(input.accountIds[(turn + call) % input.accountIds.length] ?? "");
  await new Promise((resolve) => setTimeout(resolve, 1));
  if (turn % 10 === 0) await acknowledge();
}
await credit.close();
await store.close();
say({ kind: "ended", servedN, failures: failures.map(String) });

function serve(accountId: string): void {
  const wallet = credit.wallet(accountId);
  const amountN = 3 * CU;
  if (!credit.hold(wallet, amountN)) return;
  credit.settle(wallet, {
    keyId: `key_${accountId}`,
    method: "eth_call",
    cu: 3,
    heldN: amountN,
    chargeN: amountN,
    freeCu: 0,
  });
  servedN += amountN;
}

async function acknowledge(): Promise<void> {
  const beforeN = servedN;
  await credit.flush();
  say({ kind: "written", servedN: beforeN });
}

/** Written at once: what was said before the process is killed is heard. */
function say(what: object): void {
  writeSync(1, `${JSON.stringify(what)}\n`);
}

function parseInput(text: string): SpenderInput {
  return JSON.parse(text) as SpenderInput;
}
