// Keys of vendors, in addresses and headers: whatever their endpoints answer, no key reaches a
// caller, a log line, a metric, or a page or document of the service.
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFaults } from "../../src/config/config-fault.ts";
import { OPERATIONS } from "../../src/web/contract/contract.ts";
import { refused } from "../config/config-fixture.ts";
import { configText, startService } from "../fakes/service.ts";
import { type Asked, type Script, scriptedUpstream } from "../fakes/upstream.ts";

const OPERATOR = "operator-token-of-this-test-0001";
const PATH_KEY = "c4naryPathKey7b1e93d2";
const HEADER_KEY = "c4naryHeaderKey51f0aa";
const TOKEN = "c4naryTokenOfEndpoint9";
const SECRETS = [PATH_KEY, HEADER_KEY, TOKEN];

/** Everything that an endpoint can repeat of what it was sent. */
const echo = ({ path, headers }: Asked): string =>
  JSON.stringify(`no access for ${path} with ${headers["authorization"]}`);

const TROUBLES: readonly Script[] = [
  (asked, reply) => reply.error(`{"code":-32000,"message":${echo(asked)}}`),
  (asked, reply) => reply.error(`{"code":-32000,"message":${echo(asked)}}`, 401),
  (asked, reply) => reply.error(`{"code":3,"message":"reverted","data":${echo(asked)}}`),
  (asked, reply) => reply.body(`<html>${echo(asked)}</html>`, 502),
  (_, reply) => reply.reset(),
];

test("no key of a vendor is seen anywhere", async (t) => {
  const upstream = await scriptedUpstream();
  const service = await startService(
    configText([], {
      server: { port: 0, operator_token: OPERATOR },
      log_level: "trace",
      profiles: {
        public: {
          providers: [
            { vendor: "conduit", key: PATH_KEY, endpoints: { mainnet: upstream.url } },
            { vendor: "blockdaemon", key: HEADER_KEY, url: upstream.url, chains: ["ethereum"] },
            { vendor: "getblock", endpoints: { 1: `${upstream.url}/${TOKEN}/` } },
          ],
        },
      },
      deadlines: { cheap_ms: 2_000, standard_ms: 2_000, default_ms: 2_000 },
    }),
  );
  t.after(() => Promise.all([service.close(), upstream.close()]));
  const seen: string[] = [];
  const read = async (path: string, headers: Readonly<Record<string, string>>): Promise<void> => {
    const answer = await fetch(service.url + path, { headers, signal: AbortSignal.timeout(5_000) });
    // The live feed does not end by itself.
    if (answer.headers.get("content-type")?.includes("event-stream")) await answer.body?.cancel();
    else seen.push(await answer.text(), [...answer.headers].join("\n"));
  };
  for (const script of TROUBLES) {
    upstream.script(script);
    for (const method of ["eth_gasPrice", "eth_call", "eth_sendRawTransaction"])
      for (const meta of ["body", "headers"]) {
        const call = {
          jsonrpc: "2.0",
          id: 1,
          method,
          params: method === "eth_gasPrice" ? [] : [{}],
        };
        const answer = await fetch(`${service.url}/rpc/ethereum?include_meta=${meta}`, {
          method: "POST",
          body: JSON.stringify(call),
        });
        const evidence = answer.headers.get("x-svc-meta") ?? "";
        seen.push(await answer.text(), Buffer.from(evidence, "base64url").toString());
      }
    assert.equal(service.app.reload({ ...service.config, profiles: [] }), null);
    assert.equal(service.app.reload(service.config), null);
  }
  const pages = [
    "/metrics",
    "/dashboard",
    "/agent.json",
    "/llms.txt",
    "/SKILL.md",
    "/openapi.json",
  ];
  const documents = OPERATIONS.filter(
    ({ method, path }) => method === "GET" && !path.includes("{"),
  );
  for (const path of [...pages, "/api/metrics/1", ...documents.map((each) => each.path)])
    for (const headers of [{}, { authorization: `Bearer ${OPERATOR}` }]) await read(path, headers);
  const sent = upstream.asked.map(({ path, headers }) => `${path} ${headers["authorization"]}`);
  for (const secret of SECRETS)
    assert.ok(
      sent.some((text) => text.includes(secret)),
      "each key did go upstream",
    );
  for (const text of [...seen, service.log()])
    for (const secret of SECRETS)
      assert.ok(
        !text.toLowerCase().includes(secret.toLowerCase()),
        `${secret} in ${text.slice(0, 300)}`,
      );
});

test("no fault of a file shows a key", () => {
  const entries = [
    `{ vendor: alchemi, key: "${PATH_KEY}" }`,
    `{ vendor: infura, key: ["${PATH_KEY}"] }`,
    `{ vendor: infura, key: "${PATH_KEY} x" }`,
    `{ vendor: quicknode, endpoints: { ethereum: "ftp://${PATH_KEY}" } }`,
    `{ vendor: infura, id: b, key: "${PATH_KEY}", plan: "${TOKEN}", chains: [nowhere] }`,
  ];
  const text = [
    "chains: { ethereum: { chain_id: 1 } }",
    "profiles: { public: { providers: [",
    ...entries.map((entry) => `  ${entry},`),
    "]}}",
  ].join("\n");
  const said = formatFaults(refused(text));
  for (const secret of SECRETS) assert.ok(!said.includes(secret), said);
});
