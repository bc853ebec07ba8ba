// The recorded provider errors as walks use them: what a provider says for each row, and what that
// must mean for the caller and for the provider's health.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { keccak256 } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Verdict } from "../../src/core/provider/attempt.ts";
import type { Transport } from "../../src/core/provider/profile.ts";
import { classifyCall } from "../../src/core/provider-errors/classify-call.ts";
import { NO_BLOCK } from "../../src/core/rpc/call.ts";
import type { Failure } from "../../src/core/rpc/failure.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import type { Service } from "../fakes/service.ts";

/** One recorded error. */
export interface Row {
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

const RECORDED: readonly Row[] = JSON.parse(
  readFileSync(new URL("../data/provider-errors.json", import.meta.url), "utf8"),
);

/** A shape of answers to batches: the service sends none. */
const SHAPE_ONLY = 214;
/**
 * A node's answer to a transaction is an answer, not a broken provider (completions 10), whatever
 * the corpus holds against it.
 */
const ANSWERED = 189;

/** Filters are the service's own: no provider is asked for one. */
const isServedHere = ({ method }: Row): boolean =>
  method !== null && methodOf(method).handling === "filter";

/** All that are recorded and that a provider may say. */
export const CORPUS: readonly Row[] = RECORDED.filter(
  (row) => row.id !== SHAPE_ONLY && !isServedHere(row),
).map((row) => (row.id === ANSWERED ? { ...row, health: "none" } : row));

/** Rows that share a service: a page that shows all of its profiles is read after each row. */
const GROUP_ROWS = 25;

/** Rows in groups, each of which has a service of its own; with a name for each group. */
export function groupsOf(
  rows: readonly Row[],
): readonly { readonly name: string; readonly rows: readonly Row[] }[] {
  return Array.from({ length: Math.ceil(rows.length / GROUP_ROWS) }, (_, index) => {
    const group = rows.slice(index * GROUP_ROWS, (index + 1) * GROUP_ROWS);
    return { name: `rows ${group.at(0)?.id} to ${group.at(-1)?.id}`, rows: group };
  });
}

const ALICE = privateKeyToAccount(
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
);

/** A signed transaction and its hash. */
export const RAW = await ALICE.signTransaction({
  chainId: 1,
  nonce: 0,
  to: ALICE.address,
  value: 1n,
  type: "eip1559",
  gas: 21_000n,
  maxFeePerGas: 9n,
});
export const HASH = keccak256(RAW);

export const methodNameOf = (row: Row): string => row.method ?? "eth_getBalance";
export const slugOf = (row: Row): string => `row-${row.id}`;

/** Parameters that fit a method. */
export function paramsOf(name: string): readonly unknown[] {
  if (name === "eth_sendRawTransaction") return [RAW];
  if (name === "eth_getLogs") return [{ fromBlock: "0x1", toBlock: "0x40" }];
  return name === "eth_subscribe"
    ? ["newPendingTransactions"]
    : ["0x0000000000000000000000000000000000000001", "latest"];
}

/** What provider `b` says: of the form that answers to the method have. */
export function soundResult(name: string): string {
  switch (methodOf(name).naming) {
    case null:
    case "hex":
      return '"0xb"';
    case "logs":
    case "receipts":
      return '[{"b":"0xb"}]';
    default:
      return '{"b":"0xb"}';
  }
}

/** The error member as the provider writes it: in an order and spacing of its own. */
export function errorText(row: Row): string {
  const data = row.data === null ? "" : `"data": ${JSON.stringify(row.data)}, `;
  return `{ ${data}"code":${row.code}, "message":${JSON.stringify(row.message)} }`;
}

/** What the classifier makes of a row; on a socket there is no HTTP status. */
export function verdictOf(row: Row, transport: Transport): Verdict {
  const kind = row.http === 0 ? "network" : row.code === null ? "body" : "error";
  const httpStatus = transport === "http" ? row.http : 0;
  const failure: Failure = {
    kind,
    httpStatus,
    retryAfter: null,
    code: row.code,
    message: row.message,
    data: row.data,
  };
  const methodName = methodNameOf(row);
  const method = methodOf(methodName);
  const request = writeRequest(methodName, Buffer.from(JSON.stringify(paramsOf(methodName))));
  return classifyCall(
    failure,
    { ...request, method, methodName, block: NO_BLOCK },
    { rules: [], wallMs: 0 },
  );
}

/** Checks the answer that provider `b` stands behind. */
export function checkAnswer(row: Row, { step }: Verdict, text: string): void {
  const json = JSON.parse(text);
  switch (step) {
    case "next":
    case "next_once":
    case "range":
      assert.equal(text, `{"jsonrpc":"2.0","id":77,"result":${soundResult(methodNameOf(row))}}`);
      break;
    case "return":
      assert.equal(text, `{"jsonrpc":"2.0","id":77,"error":${errorText(row)}}`);
      break;
    case "stop":
      assert.equal(json.error.data.code, "outcome_unknown");
      break;
    case "known":
    case "verify":
      assert.equal(text, `{"jsonrpc":"2.0","id":77,"result":"${HASH}"}`);
      break;
  }
  if (row.elsewhere === "success") assert.equal(json.result, HASH);
  if (row.elsewhere === "no")
    assert.ok(step === "return" || step === "stop", `the corpus says no, the decision is ${step}`);
}

/** Whether another provider is asked after it. */
export function goesOn({ step }: Verdict): boolean {
  return ["next", "next_once", "range"].includes(step);
}

/**
 * Checks what provider `a` is held to since it was asked: not before `sinceMs` on the clock of this
 * process.
 */
export async function checkHealth(
  row: Row,
  { effect, step }: Verdict,
  service: Service,
  sinceMs: number,
): Promise<void> {
  const { json } = await service.get("/api/metrics/1");
  const { providers } = json.profiles.find((it: { profile: string }) => it.profile === slugOf(row));
  const [health] = providers.find((it: { id: string }) => it.id === "a").transports;
  const isRefused = effect.kind === "cordon";
  const isAvoided = isRefused || effect.kind === "avoid";
  const ofMethod = isAvoided || (effect.kind === "cooldown" && effect.scope === "method");
  const longest = effect.kind === "cooldown" && !ofMethod ? effect.ms : 0;
  assert.deepEqual(health.rate_limited_methods, ofMethod ? [methodNameOf(row)] : []);
  const passedMs = performance.now() - sinceMs;
  assert.ok(
    health.rate_limited_for_ms <= longest && health.rate_limited_for_ms >= longest - passedMs - 1,
    `limited for ${health.rate_limited_for_ms} of ${longest} ms, ${passedMs} ms later`,
  );
  assert.equal(effect.kind === "cooldown", row.health.startsWith("cooldown"));
  // The probe that follows is answered well, so that nobody is excluded for one call.
  assert.equal(health.cordoned, null);
  assert.equal(isRefused, row.health.startsWith("cordon"));
  assert.equal(health.outcomes.failed, effect.kind === "failure" ? 1 : 0);
  assert.equal(effect.kind === "failure" || effect.kind === "avoid", row.health === "breaker");
  assert.equal(
    health.outcomes.delivered,
    (step === "return" && effect.kind === "ignored") || step === "verify" ? 1 : 0,
  );
}
