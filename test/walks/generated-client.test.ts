// A stock client, generated from the document that a running service serves, walks through every
// group of operations; and the shell lines of llms.txt are run as they stand.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import type { AxiosRequestConfig, AxiosResponse } from "openapi-client-axios";
import { OpenAPIClientAxios } from "openapi-client-axios";
import { configText, type Service, startService } from "../fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const OPERATOR_TOKEN = "operator-token-for-tests-only";
const CALL = {
  jsonrpc: "2.0",
  id: 7,
  method: "eth_getBalance",
  params: ["0x00000000000000000000000000000000000b0b01", "latest"],
};

// biome-ignore lint/suspicious/noExplicitAny: answers of any shape
type Answer = AxiosResponse<any>;
type Operation = (
  parameters: Readonly<Record<string, string | number>> | null,
  body?: unknown,
  config?: AxiosRequestConfig,
) => Promise<Answer>;

/**
 * Calls operations by id, as a client generated from the document at `url`. Every status is an
 * answer.
 */
async function generatedClient(url: string): Promise<(id: string) => Operation> {
  const source = new OpenAPIClientAxios({
    definition: `${url}/openapi.json`,
    axiosConfigDefaults: { validateStatus: () => true },
  });
  const client = await source.init<Record<string, Operation>>();
  return (id) => client[id] ?? assert.fail(`the client has no operation ${id}`);
}

const bearer = (secret: string): AxiosRequestConfig => ({
  headers: { authorization: `Bearer ${secret}` },
});

describe("a client generated from /openapi.json", () => {
  let dataDir: string;
  let upstream: ScriptedUpstream;
  let service: Service;
  let operation: (id: string) => Operation;

  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "svc-client-"));
    upstream = await scriptedUpstream();
    const hosted = { enabled: true, operator_token: OPERATOR_TOKEN };
    service = await startService(
      configText([{ id: "one", url: upstream.url }], { hosted, data_dir: dataDir }, {}, "public"),
    );
    await service.probed();
    operation = await generatedClient(service.url);
  });
  after(async () => {
    await service?.close();
    await upstream?.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it("asks the instance", async () => {
    const [chains, health, ready, metrics] = await Promise.all([
      operation("listChains")(null),
      operation("getHealth")(null),
      operation("getReadiness")(null),
      operation("getChainMetrics")({ chain: "ethereum" }),
    ]);
    assert.equal(chains.data.chains[0].chain_name, "ethereum");
    assert.deepEqual(
      [health.data.status, ready.data.ready, metrics.data.chain_id],
      ["healthy", true, "1"],
    );
  });

  it("creates an anonymous key, calls with it, and reads what it cost", async () => {
    const made = await operation("createAgentKey")(null, { name: "walk" });
    assert.equal(made.status, 201);
    const { key, balance_cu } = made.data;
    const answer = await operation("rpcKeyed")(
      { key, strategy: "load-balanced", chain: "ethereum", include_meta: "body" },
      CALL,
    );
    assert.deepEqual(
      [answer.status, answer.data.id, answer.data.result, answer.data.svc_meta.strategy],
      [200, 7, "0x1", "load-balanced"],
    );
    assert.deepEqual(
      [answer.headers["x-svc-access"], answer.headers["x-svc-cu"], answer.headers["x-svc-usd"]],
      ["premium", "3", "0.000015"],
    );
    assert.match(answer.headers["ratelimit"], /^"managed";r=\d+;t=\d+$/);
    for (const id of ["rpc", "rpcStrategy", "rpcProfile", "rpcProvider"]) {
      const where = { strategy: "fastest", chain: "1", slug: "public", provider_id: "p1" };
      const named = Object.fromEntries(
        Object.entries(where).filter(([name]) => NAMED[id]?.includes(name)),
      );
      const other = await operation(id)(named, CALL, bearer(key));
      assert.deepEqual([other.status, other.data.result], [200, "0x1"], id);
    }
    const read = await operation("getAgentKey")({ key });
    assert.deepEqual(
      [read.status, read.data.type, read.data.balance_cu <= balance_cu],
      [200, "anonymous", true],
    );
    assert.equal(
      (await operation("fundAgentKey")({ key }, { amount_usd: "1" })).data.error.code,
      "unavailable",
    );
  });

  it("makes an account, manages its keys, and is refused as the document says", async () => {
    const made = await operation("createKey")(null, { name: "first" });
    assert.equal(made.status, 201);
    const { id, key, management_token: token, account_id } = made.data;
    const second = await operation("createKey")(null, { name: "second" }, bearer(token));
    assert.deepEqual(
      [second.status, second.data.account_id, "management_token" in second.data],
      [201, account_id, false],
    );
    const listed = await operation("listKeys")({ limit: 10 }, null, bearer(token));
    assert.deepEqual(
      listed.data.keys.map((it: Record<string, unknown>) => it["name"]),
      ["first", "second"],
    );
    const changed = await operation("updateKey")({ id }, { name: "renamed" }, bearer(token));
    assert.deepEqual([changed.status, changed.data.name], [200, "renamed"]);
    assert.equal((await operation("getCurrentKey")(null, null, bearer(key))).data.id, id);
    const rotated = await operation("rotateKey")({ id }, { grace_seconds: 0 }, bearer(token));
    assert.equal(rotated.status, 200);
    assert.equal(
      (await operation("deleteKey")({ id: second.data.id }, null, bearer(token))).status,
      204,
    );
    assert.notEqual(
      (await operation("getKey")({ id: second.data.id }, null, bearer(token))).data.revoked_at,
      null,
    );
    for (const account of [
      await operation("getAccount")({ id: account_id }, null, bearer(token)),
      await operation("getCurrentAccount")(null, null, bearer(token)),
    ])
      assert.deepEqual([account.status, account.data.id, account.data.keys], [200, account_id, 1]);
    assert.equal(
      (await operation("getCurrentAgent")(null, null, bearer(token))).data.account_id,
      account_id,
    );
    const refused = await operation("updateKey")({ id }, { nmae: "x" }, bearer(token));
    assert.deepEqual([refused.status, refused.data.error.code], [422, "unknown_field"]);
    assert.ok(refused.data.error.docs_url.startsWith(`${service.url}/docs/errors#`));
    assert.equal((await operation("listKeys")(null)).status, 401);
  });

  it("reads chains and prices; the operator reads usage and books", async () => {
    const [chains, pricing] = await Promise.all([
      operation("listAgentChains")(null),
      operation("getPricing")(null),
    ]);
    assert.deepEqual([chains.data[0].name, pricing.data.cu_per_usd], ["ethereum", 200_000]);
    const usage = await operation("getOperatorUsage")({ hours: 1 }, null, bearer(OPERATOR_TOKEN));
    const audit = await operation("getOperatorAudit")(null, null, bearer(OPERATOR_TOKEN));
    assert.deepEqual([usage.status, audit.status], [200, 200]);
  });

  it("the shell lines of llms.txt and of SKILL.md work as they stand", async () => {
    for (const path of ["/llms.txt", "/SKILL.md"]) {
      const { text } = await service.get(path);
      const lines = Array.from(
        text.matchAll(/^```sh\n([\s\S]*?)\n```$/gm),
        ([, shell = ""]) => shell,
      );
      assert.ok(lines.length >= 3, path);
      const { stdout } = await promisify(execFile)("bash", [
        "-euo",
        "pipefail",
        "-c",
        lines.join("; echo;\n"),
      ]);
      const [key = "", call = "", balance = ""] = stdout.split("\n").filter((it) => it !== "");
      assert.match(key, /^svc_ak_\w+$/, path);
      assert.match(JSON.parse(call).result, /^0x/, path);
      assert.equal(typeof JSON.parse(balance).balance_cu, "number", path);
    }
  });

  it("the addresses that agent.json names answer", async () => {
    const { json } = await service.get("/agent.json");
    assert.equal(json.base_url, service.url);
    const open = [
      ...Object.values<string>(json.documents),
      ...Object.values<{ method: string; url: string }>(json.endpoints.instance).map(
        (it) => it.url,
      ),
    ];
    for (const url of open) {
      assert.ok(url.startsWith(service.url), url);
      const { status } = await service.get(
        url.slice(service.url.length).replace("{chain}", "ethereum"),
      );
      assert.equal(status, 200, url);
    }
  });
});

/** Which parameters each operation has in its path. */
const NAMED: Readonly<Record<string, readonly string[]>> = {
  rpc: ["chain"],
  rpcStrategy: ["strategy", "chain"],
  rpcProfile: ["slug", "strategy", "chain"],
  rpcProvider: ["provider_id", "chain"],
};
