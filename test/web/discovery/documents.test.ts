// The documents for agents and people: live values, every error, no secret, no unbounded memory;
// and the committed reference is the rendered one.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { RANGE_RULE } from "../../../src/core/billing/price.ts";
import { API_FAULTS } from "../../../src/core/faults/api-fault.ts";
import { FAULTS } from "../../../src/core/faults/rpc-fault.ts";
import { OPERATIONS } from "../../../src/web/contract/contract.ts";
import { Documents } from "../../../src/web/discovery/documents.ts";
import type { DocumentFacts } from "../../../src/web/discovery/facts.ts";
import { apiReference } from "../../../src/web/discovery/reference.ts";
import { facts, HOSTED, ROUTER, SECRET, SITE } from "./facts-fixture.ts";

const PATHS = [
  "/openapi.json",
  "/agent.json",
  "/llms.txt",
  "/SKILL.md",
  "/docs",
  "/docs/errors",
  "/docs/api",
];

const textsOf = (some: DocumentFacts): ReadonlyMap<string, string> => {
  const documents = new Documents(() => some);
  return new Map(
    PATHS.map((path) => [path, documents.get(path, SITE.baseUrl)?.body.toString() ?? ""]),
  );
};

const textOf = (some: DocumentFacts, path: string): string => textsOf(some).get(path) ?? "";

test("every document is there, under its type, and nothing else is", () => {
  const documents = new Documents(() => HOSTED);
  assert.deepEqual(
    PATHS.map((path) => documents.get(path, SITE.baseUrl)?.contentType),
    [
      "application/json",
      "application/json",
      "text/plain; charset=utf-8",
      ...Array.from({ length: 4 }, () => "text/markdown; charset=utf-8"),
    ],
  );
  for (const path of ["/", "/agent", "/docs/nothing", "/__proto__", "/SKILL.md/"])
    assert.equal(documents.get(path, SITE.baseUrl), undefined);
});

test(
  "live values: another tariff, grant, allowance, limit and chain show in every document that " +
    "tells of them",
  () => {
    const other = facts(
      {
        enabled: true,
        starting_grant_cu: 7_777,
        free_cu_per_month: 123_456,
        keys_per_hour: 17,
        tariff: { cu_per_usd: 100_000, methods: { eth_getLogs: 19 } },
        buckets: { managed: { per_second: 41, burst: 83 } },
      },
      {
        chains: { gnosis: { chain_id: 100, name: "Gnosis Chain" } },
        profiles: {
          public: { chains: { gnosis: { providers: [{ id: "g", url: "https://g.example" }] } } },
        },
        limits: { max_body_bytes: 54_321, max_batch_items: 37 },
      },
    );
    const shows: Readonly<Record<string, readonly RegExp[]>> = {
      "/openapi.json": [/"gnosis"/],
      "/agent.json": [
        /"gnosis"/,
        /"chain_id":100,/,
        /7777/,
        /123456/,
        /"cu_per_usd":100000/,
        /"cu":19,"usd":"0.00019"/,
        /"per_second":41,"burst":83/,
        /"body_bytes":54321,"batch_items":37/,
        /hour_per_address":17/,
      ],
      "/llms.txt": [
        /gnosis \(100\)/,
        /7777 CU \(0.07777 USD\)/,
        /123456 CU/,
        /41 requests a second \(83 at once\)/,
        /17 keys an hour/,
        /load-balanced\/gnosis/,
      ],
      "/SKILL.md": [
        /`gnosis` \| 100 \| Gnosis Chain/,
        /7777 CU/,
        /123456 CU/,
        /100000 CU cost 1 USD/,
        /19 CU, 0.00019 USD/,
        /up to 37, in at most 54321 bytes/,
      ],
    };
    const texts = textsOf(other);
    for (const [path, patterns] of Object.entries(shows))
      for (const it of patterns) assert.match(texts.get(path) ?? "", it, path);
    for (const [path, text] of texts)
      assert.doesNotMatch(text, /ethereum[^-]|8453|\b200000\b/, path);
  },
);

test("every code of both tables has one anchor of its own, with what it means and what to do", () => {
  const text = textOf(HOSTED, "/docs/errors");
  for (const [code, { nextAction }] of [...Object.entries(FAULTS), ...Object.entries(API_FAULTS)]) {
    assert.equal(text.split(`<a id="${code}"></a>\n\n## ${code}\n`).length, 2, code);
    assert.ok(text.includes(`- Next action: ${nextAction.replace("<", "\\<")}\n`), code);
  }
});

test("every document that names prices says what a range of blocks costs, with an example", () => {
  for (const path of ["/agent.json", "/SKILL.md", "/openapi.json"]) {
    const text = textOf(HOSTED, path);
    assert.ok(text.includes(RANGE_RULE), path);
    assert.match(text, /10 parts and costs 150 CU|"parts":10,"cu":150|costs ten times its price/);
  }
});

test("an instance without keys tells of no key, no price and no operation that it does not serve", () => {
  for (const [path, text] of textsOf(ROUTER))
    assert.doesNotMatch(
      text,
      /api\/v1\/(?!console|history|incidents)|svc_ak_|svc_mt_|balance(?!d)|\b402\b|\bCU\b|price/i,
      path,
    );
  const agent = JSON.parse(textOf(ROUTER, "/agent.json"));
  assert.deepEqual(Object.keys(agent.endpoints), ["instance", "operator", "console"]);
  assert.deepEqual(
    [agent.payments, agent.features.keys, agent.authentication],
    [{ enabled: false, rails: [] }, false, { rpc: "none" }],
  );
});

test("agent.json tells of chains as callers with a key can reach them, and where each endpoint is", () => {
  const agent = JSON.parse(textOf(HOSTED, "/agent.json"));
  assert.deepEqual(
    agent.chains.map((it: Record<string, unknown>) => [
      it["name"],
      it["chain_id"],
      it["subscriptions"],
      it["subscription_kinds"],
    ]),
    [
      ["ethereum", 1, true, ["newHeads", "logs", "newPendingTransactions", "syncing"]],
      ["base", 8453, true, ["newHeads", "logs"]],
    ],
    "without a socket heads and logs are polled",
  );
  assert.deepEqual(
    agent.profiles.map((it: Record<string, unknown>) => it["slug"]),
    ["premium", "public"],
  );
  assert.deepEqual(agent.endpoints.account_resources.rotateKey, {
    method: "POST",
    url: `${SITE.baseUrl}/api/v1/keys/{id}/rotate`,
  });
  const listed = Object.values<Record<string, unknown>>(agent.endpoints).flatMap((it) =>
    Object.keys(it),
  );
  assert.deepEqual(listed.toSorted(), OPERATIONS.map((it) => it.id).toSorted());
  for (const url of Object.values<string>(agent.documents))
    assert.ok(PATHS.includes(url.slice(SITE.baseUrl.length)), url);
});

test("llms.txt has the form of llmstxt.org, and SKILL.md a name and a description in front", () => {
  for (const some of [HOSTED, ROUTER]) {
    const lines = textOf(some, "/llms.txt").split("\n");
    assert.match(lines[0] ?? "", /^# \S/);
    assert.match(lines[2] ?? "", /^> \S/);
    assert.equal(lines.filter((it) => it.startsWith("# ")).length, 1);
    const links = lines.slice(lines.indexOf("## Documents")).filter((it) => it.startsWith("- "));
    assert.ok(
      links.length >= 8 &&
        links.every((it) => /^- \[[^\]]+\]\(http:\/\/rpc\.example:4000\/\S+\): \S/.test(it)),
      links.join("\n"),
    );
    assert.match(textOf(some, "/SKILL.md"), /^---\nname: svc\ndescription: [^\n:]+\n---\n/);
  }
});

test("no secret and no address of a provider is in any document", () => {
  for (const some of [HOSTED, ROUTER])
    for (const [path, text] of textsOf(some))
      assert.doesNotMatch(text, new RegExp(`${SECRET}|vendor-|db\\.example|user:`), path);
});

test("documents carry the address they were requested at, in both schemes", () => {
  const documents = new Documents(() => HOSTED);
  for (const baseUrl of ["https://a.example", "http://[::1]:4000", 'https://b.example/x"y$&']) {
    const agent = JSON.parse(documents.get("/agent.json", baseUrl)?.body.toString() ?? "");
    const openapi = JSON.parse(documents.get("/openapi.json", baseUrl)?.body.toString() ?? "");
    assert.deepEqual([agent.base_url, openapi.servers], [baseUrl, [{ url: baseUrl }]]);
    assert.ok(
      agent.url_forms.websocket.every((it: string) =>
        it.startsWith(`${baseUrl.replace("http", "ws")}/ws/`),
      ),
    );
    for (const path of PATHS)
      assert.equal(documents.get(path, baseUrl)?.body.includes("base-url.invalid"), false, path);
  }
});

test(
  "the same document has the same tag; another address, and other facts from one moment to the " +
    "next, give another one",
  () => {
    let now = HOSTED;
    const documents = new Documents(() => now);
    const tag = (baseUrl: string) => documents.get("/agent.json", baseUrl)?.etag;
    const first = tag("http://a.example");
    assert.match(first ?? "", /^"[\w-]{22}"$/);
    assert.equal(tag("http://a.example"), first);
    assert.notEqual(tag("http://b.example"), first);
    now = ROUTER;
    assert.notEqual(tag("http://a.example"), first);
    now = HOSTED;
    assert.equal(tag("http://a.example"), first);
  },
);

test("bounded: ten thousand addresses leave no document in memory, and each costs little", () => {
  const documents = new Documents(() => HOSTED);
  const before = process.memoryUsage().arrayBuffers;
  for (let i = 0; i < 10_000; i++) documents.get("/agent.json", `http://h${i}.example`);
  assert.ok(process.memoryUsage().arrayBuffers - before < 150_000_000);
});

test("docs/api.md is what the contract says", () => {
  const committed = readFileSync(new URL("../../../docs/api.md", import.meta.url), "utf8");
  assert.equal(
    committed,
    apiReference(OPERATIONS, "{base_url}"),
    "docs/api.md is out of date: npm run docs",
  );
  const anchors = new Set(
    Array.from(committed.matchAll(/^#+ (.+)$/gm), ([, it = ""]) => it.toLowerCase()),
  );
  for (const [, anchor = ""] of committed.matchAll(/\]\(#([\w-]+)\)/g))
    assert.ok(anchors.has(anchor), `#${anchor} leads nowhere`);
});
