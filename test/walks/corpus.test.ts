// Every recorded provider error once through real sockets: provider `a` answers with it, `b` is well. What the caller gets and what `a` is held to
// follow from the recorded columns and from the classifier's decision.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { keccak256 } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Failure, Verdict } from "../../src/core/attempt.ts";
import { classify } from "../../src/core/classify.ts";
import { methodOf } from "../../src/core/method.ts";
import { type Answer, configText, type Service, startService } from "../fakes/service.ts";
import { healthOf, metaOf, until, walked } from "../fakes/stage.ts";
import { type Asked, type Replier, type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

interface Row {
  readonly id: number;
  readonly http: number;
  readonly code: number | null;
  readonly method: string | null;
  readonly message: string;
  readonly data: unknown;
  readonly class: string;
  readonly elsewhere: string;
  readonly health: string;
}

const ALL: readonly Row[] = JSON.parse(readFileSync(new URL("../data/provider-errors.json", import.meta.url), "utf8"));
/** Subscriptions have no HTTP form, and a GOAWAY has none over HTTP/1.1: other walks meet those. */
const ROWS = ALL.filter((row) => row.method !== "eth_subscribe" && !row.message.includes("ENHANCE_YOUR_CALM"));

const ALICE = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
const RAW = await ALICE.signTransaction({ chainId: 1, nonce: 0, to: ALICE.address, value: 1n, type: "eip1559", gas: 21_000n, maxFeePerGas: 9n });
const HASH = keccak256(RAW);

const methodNameOf = (row: Row): string => row.method ?? "eth_getBalance";
const slugOf = (row: Row): string => `row-${row.id}`;

function paramsOf(name: string): readonly unknown[] {
  if (name === "eth_sendRawTransaction") return [RAW];
  if (name === "eth_getLogs") return [{ fromBlock: "0x1", toBlock: "0x40" }];
  return ["0x0000000000000000000000000000000000000001", "latest"];
}

/** The error member as the provider writes it: in an order and spacing of its own. */
function errorText(row: Row): string {
  const data = row.data === null ? "" : `"data": ${JSON.stringify(row.data)}, `;
  return `{ ${data}"code":${row.code}, "message":${JSON.stringify(row.message)} }`;
}

function answerAs(row: Row, { method }: Asked, reply: Replier): void {
  if (method === "eth_getTransactionByHash" && row.elsewhere === "verify") reply.result(`{"hash":"${HASH}"}`);
  else if (row.http === 0) reply.reset();
  else if (row.code === null) reply.body(row.message, row.http);
  else reply.error(errorText(row), row.http);
}

function verdictOf(row: Row): Verdict {
  const kind = row.http === 0 ? "network" : row.code === null ? "body" : "error";
  const failure: Failure = { kind, httpStatus: row.http, retryAfter: null, code: row.code, message: row.message, data: row.data };
  const methodName = methodNameOf(row);
  return classify(failure, methodOf(methodName), { methodName, rules: [], wallMs: 0 });
}

describe("every recorded provider error, served over HTTP by the first provider", { timeout: 30_000 }, () => {
  let failing: ScriptedUpstream;
  let sound: ScriptedUpstream;
  let service: Service;

  before(async () => {
    failing = await scriptedUpstream((asked, reply) => {
      const row = ROWS.find((it) => asked.path === `/${it.id}`);
      if (row !== undefined) answerAs(row, asked, reply);
    });
    sound = await scriptedUpstream((_, reply) => reply.result('"0xb"'));
    const profileOf = (row: Row) => {
      const providers = [
        { id: "a", url: `${failing.url}/${row.id}`, priority: 1, archival: true },
        { id: "b", url: `${sound.url}/${row.id}`, priority: 2, archival: true },
      ];
      return { chains: { ethereum: { providers } } };
    };
    service = await startService(configText([], { profiles: Object.fromEntries(ROWS.map((row) => [slugOf(row), profileOf(row)])) }));
    // A probe that succeeds ends a cordon: the first round has to be over.
    await until("the first probes", () => failing.probes() >= 2 * ROWS.length, 10_000);
  });
  after(() => Promise.all([service.close(), failing.close(), sound.close()]));

  it("is all of the corpus but what HTTP cannot carry", () => assert.ok(ROWS.length >= ALL.length - 12 && ROWS.length > 140, `${ROWS.length}`));

  for (const row of ROWS) {
    it(`row ${row.id} ${row.class}: ${row.message.slice(0, 50)}`, async () => {
      const method = methodNameOf(row);
      const path = `/rpc/profile/${slugOf(row)}/priority/1?include_meta=headers`;
      const answer = await service.post(path, { jsonrpc: "2.0", id: 77, method, params: paramsOf(method) });
      const verdict = verdictOf(row);
      assert.equal(metaOf(answer).attempts[0]?.category, verdict.category);
      checkAnswer(row, verdict, answer);
      const askedOf = (upstream: ScriptedUpstream): number => upstream.asked.filter((it) => it.path === `/${row.id}` && it.method === method).length;
      const goesOn = ["next", "next_once", "range"].includes(verdict.step);
      assert.deepEqual([askedOf(failing), askedOf(sound)], [1, goesOn ? 1 : 0]);
      await checkHealth(row, verdict, service);
    });
  }

  it("and no provider's circuit was opened by one error", async () => {
    const { json } = await service.get("/api/metrics/1");
    for (const { profile, providers } of json.profiles) assert.equal(providers[0].transports[0].circuit_breaker_state, "closed", profile);
  });
});

function checkAnswer(row: Row, { step, category }: Verdict, answer: Answer): void {
  assert.equal(answer.status, 200);
  switch (step) {
    case "next":
    case "next_once":
    case "range":
      assert.equal(answer.text, '{"jsonrpc":"2.0","id":77,"result":"0xb"}');
      assert.equal(walked(answer), `a:${category} b:ok`);
      break;
    case "return":
      assert.equal(answer.text, `{"jsonrpc":"2.0","id":77,"error":${errorText(row)}}`);
      break;
    case "stop":
      assert.equal(answer.json.error.data.code, "outcome_unknown");
      break;
    case "known":
    case "verify":
      assert.equal(answer.text, `{"jsonrpc":"2.0","id":77,"result":"${HASH}"}`);
      break;
  }
  if (row.elsewhere === "success") assert.equal(answer.json.result, HASH);
  if (row.elsewhere === "no") assert.ok(step === "return" || step === "stop", `the corpus says no, the decision is ${step}`);
}

async function checkHealth(row: Row, { effect, step }: Verdict, service: Service): Promise<void> {
  const health = await healthOf(service, "a", slugOf(row));
  const longest = effect.kind === "cooldown" ? effect.ms : 0;
  assert.ok(health.rate_limited_for_ms <= longest && health.rate_limited_for_ms >= longest - 3_000, `limited for ${health.rate_limited_for_ms} ms`);
  assert.equal(health.rate_limited_for_ms > 0, row.health.startsWith("cooldown"));
  assert.equal(health.cordoned, effect.kind === "cordon" ? effect.reason : null);
  assert.equal(health.cordoned !== null, row.health.startsWith("cordon"));
  const { text } = await service.get("/metrics");
  const counted = (outcome: string): number =>
    Number(new RegExp(`^svc_upstream_attempts_total\\{profile="${slugOf(row)}",.*provider="a".*outcome="${outcome}"\\} (\\d+)`, "m").exec(text)?.[1]);
  const auth = effect.kind === "cordon" && effect.reason === "auth";
  assert.equal(counted("failed"), effect.kind === "failure" || auth ? 1 : 0);
  assert.equal(counted("failed") === 1, row.health === "breaker" || auth);
  assert.equal(counted("delivered"), (step === "return" && effect.kind === "ignored") || step === "verify" ? 1 : 0);
}
