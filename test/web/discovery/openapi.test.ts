// The OpenAPI document: valid to a real validator, complete, of stable names, and true to the
// tables it is rendered from.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { API_FAULTS } from "../../../src/core/faults/api-fault.ts";
import { FAULTS } from "../../../src/core/faults/rpc-fault.ts";
import { OPERATIONS } from "../../../src/web/contract/contract.ts";
import { openApiDocument } from "../../../src/web/discovery/openapi.ts";
import { facts, HOSTED, RAILS, ROUTER, SECRET, SITE, selling } from "./facts-fixture.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into documents of any shape
type Document = any;
type Entry = readonly [operation: string, Document];

const INSTANCE_IDS = [
  "getChainMetrics",
  "getHealth",
  "getHistory",
  "getReadiness",
  "getSession",
  "listChains",
  "listIncidents",
  "signIn",
  "signOut",
];
const RPC_IDS = ["rpc", "rpcProfile", "rpcProvider", "rpcStrategy"];
const HOSTED_IDS = [
  "buyCredit",
  "buyCustomAccess",
  "getPurchase",
  "claimAgentKey",
  "createAccountClaimLink",
  "createAgentClaimLink",
  "createConnection",
  "deleteConnection",
  "getConnection",
  "listConnections",
  "createAgentKey",
  "createKey",
  "deleteKey",
  "fundAgentKey",
  "getAccount",
  "getAgentKey",
  "getCurrentAccount",
  "getCurrentAgent",
  "getCurrentKey",
  "getKey",
  "getPricing",
  "getUsage",
  "listAgentChains",
  "listKeys",
  "listOwnCalls",
  "listPurchases",
  "rotateKey",
  "rpcKeyed",
  "submitFeedback",
  "deleteProfile",
  "getConfigurationSchema",
  "getProfile",
  "getProfileRevision",
  "listProfileRevisions",
  "listProfiles",
  "putProfile",
  "updateKey",
];
const OPERATOR_IDS = [
  "compareProviders",
  "cordonEverywhere",
  "cordonProvider",
  "endProviderWait",
  "getDecision",
  "getWhatIf",
  "listActions",
  "listCordons",
  "listDecisions",
  "listProviderErrors",
  "listStreams",
  "purgeCache",
  "reloadConfiguration",
  "testProvider",
  "uncordonEverywhere",
  "uncordonProvider",
  "watchEvents",
  "listChanges",
  "listNodes",
];
const HOSTED_OPERATOR_IDS = [
  "creditAccount",
  "getLastAudit",
  "getOperatorAudit",
  "getOperatorUsage",
  "getRevenue",
  "grantCustomAccess",
  "listAccountKeys",
  "listAccounts",
  "listAllPurchases",
  "listChainCalls",
  "listFeedback",
  "listWallets",
];

const VARIANTS = [
  ["a plain router", ROUTER, [...INSTANCE_IDS, ...RPC_IDS]],
  [
    "a plain router with operator token",
    facts({ enabled: false }, { server: { operator_token: SECRET } }),
    [...INSTANCE_IDS, ...RPC_IDS, ...OPERATOR_IDS],
  ],
  [
    "a hosted instance",
    HOSTED,
    [...INSTANCE_IDS, ...RPC_IDS, ...HOSTED_IDS, ...OPERATOR_IDS, ...HOSTED_OPERATOR_IDS],
  ],
  [
    "a hosted instance without operator token",
    facts({ enabled: true }),
    [...INSTANCE_IDS, ...RPC_IDS, ...HOSTED_IDS],
  ],
  [
    "a hosted instance that also serves without keys",
    facts({ enabled: true, keyless: true }),
    [...INSTANCE_IDS, ...RPC_IDS, ...HOSTED_IDS],
  ],
] as const;

for (const [name, some, ids] of VARIANTS) {
  const document: Document = JSON.parse(JSON.stringify(openApiDocument(some, SITE)));

  test(`${name}: the document is valid OpenAPI 3.1`, async () => {
    const validator = new Validator();
    const result = await validator.validate(structuredClone(document));
    assert.deepEqual(result.errors ?? [], []);
    assert.equal(result.valid, true);
    assert.equal(validator.version, "3.1");
    assert.deepEqual([document.openapi, document.info.version], ["3.1.0", "1.0.0"]);
  });

  test(`${name}: operation ids are unique and never change`, () => {
    const found = operations(document).map(([, it]) => it.operationId);
    assert.deepEqual(found.toSorted(), [...ids].toSorted());
  });

  test(
    `${name}: every reference leads somewhere, every named part is used, and every path ` +
      "parameter is declared",
    () => {
      const text = JSON.stringify(document);
      const references = new Set(
        Array.from(text.matchAll(/"\$ref":"#\/components\/(\w+\/\w+)"/g), ([, it]) => it),
      );
      assert.equal(references.size > 10, true);
      assert.equal(text.includes("$defs"), false);
      const parts = ["schemas", "responses", "headers"].flatMap((kind) =>
        Object.keys(document.components[kind]).map((it) => `${kind}/${it}`),
      );
      assert.deepEqual([...references].toSorted(), parts.toSorted());
      for (const [path, it] of operations(document)) {
        const inPath = (it.parameters ?? [])
          .filter((parameter: Document) => parameter.in === "path")
          .map((parameter: Document) => `{${parameter.name}}`);
        assert.deepEqual(inPath.toSorted(), (path.match(/\{\w+\}/g) ?? []).toSorted(), path);
        for (const scheme of it.security.flatMap((way: object) => Object.keys(way)))
          assert.ok(document.components.securitySchemes[scheme], `${path} ${scheme}`);
      }
    },
  );
}

test(
  "every operation declares what its row declares: answers, and each of its refusals with the " +
    "envelope, its codes and an example",
  () => {
    const document: Document = openApiDocument(HOSTED, SITE);
    for (const row of OPERATIONS) {
      const { responses } = document.paths[row.path][row.method.toLowerCase()];
      const statuses = new Set([
        ...Object.keys(row.answers),
        ...row.faults.map((it) => String(API_FAULTS[it].status)),
      ]);
      assert.deepEqual(Object.keys(responses).toSorted(), [...statuses].toSorted(), row.id);
      for (const code of row.faults) {
        const answer = resolved(document, responses[API_FAULTS[code].status]);
        const { schema, examples } = answer.content["application/json"];
        assert.deepEqual(schema.allOf[0], { $ref: "#/components/schemas/Error" });
        assert.ok(
          schema.allOf[1].properties.error.properties.code.enum.includes(code),
          `${row.id} ${code}`,
        );
        assert.deepEqual(Object.keys(examples[code].value.error), [
          "code",
          "message",
          "next_action",
          "docs_url",
        ]);
        assert.equal(
          "Retry-After" in answer.headers,
          API_FAULTS[code].retryable,
          `${row.id} ${code}`,
        );
      }
    }
  },
);

test("the catalogue has every code of both tables, as the tables say", () => {
  const document: Document = openApiDocument(HOSTED, SITE);
  const catalog: readonly Document[] = document["x-error-catalog"];
  const told = (it: Document) => [
    it.surface,
    it.code,
    it.http_status,
    it.json_rpc_code,
    it.retryable,
    it.next_action,
    it.docs_url,
  ];
  const url = (code: string): string => `${SITE.baseUrl}/docs/errors#${code}`;
  assert.deepEqual(catalog.map(told), [
    ...Object.entries(FAULTS).map(([code, it]) => [
      "json_rpc",
      code,
      it.status,
      it.rpcCode,
      it.retryable,
      it.nextAction,
      url(code),
    ]),
    ...Object.entries(API_FAULTS).map(([code, it]) => [
      "management",
      code,
      it.status,
      null,
      it.retryable,
      it.nextAction,
      url(code),
    ]),
  ]);
  assert.ok(catalog.every((it) => it.meaning.length > 10));
});

test(
  "calls tell how they are refused: with a key 401, 402, 403, 409, 410 and 429; without keys " +
    "none of these",
  () => {
    const keyed: Document = openApiDocument(HOSTED, SITE);
    const plain: Document = openApiDocument(ROUTER, SITE);
    const statuses = (document: Document, path: string) =>
      Object.keys(document.paths[path].post.responses).join(" ");
    assert.equal(
      statuses(keyed, "/rpc/k/{key}/{strategy}/{chain}"),
      "200 204 400 401 402 403 404 408 409 410 413 415 429 500 503",
    );
    assert.equal(statuses(plain, "/rpc/{strategy}/{chain}"), "200 204 400 404 408 413 415 500 503");
    assert.deepEqual(keyed.paths["/rpc/{chain}"].post.security, [
      { rpcKey: [] },
      { dashboardKey: [] },
      { apiKey: [] },
    ]);
    assert.deepEqual(plain.paths["/rpc/{chain}"].post.security, []);
    assert.deepEqual(keyed.paths["/api/v1/keys"].post.security, [{}, { managementToken: [] }]);
    assert.deepEqual(
      Object.keys(plain.paths).filter((path) => path.startsWith("/api/v1")),
      ["/api/v1/console/session", "/api/v1/history", "/api/v1/incidents"],
    );
  },
);

test("the document holds no secret", () => {
  assert.equal(JSON.stringify(openApiDocument(HOSTED, SITE)).includes(SECRET), false);
});

function operations(document: Document): readonly Entry[] {
  return Object.entries<Document>(document.paths).flatMap(([path, item]) =>
    Object.values<Document>(item).map((it): Entry => [path, it]),
  );
}

function resolved(document: Document, answer: Document): Document {
  return answer.$ref === undefined
    ? answer
    : document.components.responses[answer.$ref.split("/").at(-1)];
}

test(
  "every example of the document fits the schema that it stands beside, and every pattern is " +
    "one that generators understand",
  () => {
    const document: Document = JSON.parse(
      JSON.stringify(openApiDocument(selling(Object.values(RAILS)), SITE)),
    );
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(ajv);
    ajv.addSchema({ $id: "doc", components: document.components });
    let checked = 0;
    const check = (schema: Document, example: unknown, where: string): void => {
      const absolute = JSON.parse(
        JSON.stringify(schema).replaceAll('"#/components/', '"doc#/components/'),
      );
      checked++;
      if (!ajv.validate(absolute, example))
        assert.fail(`${where}: ${JSON.stringify(example)} ${ajv.errorsText()}`);
    };
    walk(document, "#", (node, where) => {
      if (node.schema !== undefined && node.example !== undefined)
        check(node.schema, node.example, where);
      if (node.schema !== undefined && node.examples !== undefined && !Array.isArray(node.examples))
        for (const [name, { value }] of Object.entries<Document>(node.examples))
          check(node.schema, value, `${where}/${name}`);
      if (Array.isArray(node.examples))
        for (const example of node.examples)
          check({ ...node, examples: undefined }, example, where);
      if (typeof node.pattern === "string")
        assert.doesNotMatch(node.pattern, /\\[pP]\{|\(\?[<!=]|\(\?i/, `${where}: ${node.pattern}`);
    });
    assert.ok(checked > 50, `${checked} examples`);
  },
);

function walk(node: Document, where: string, visit: (node: Document, where: string) => void): void {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) visit(node, where);
  for (const [key, child] of Object.entries(node)) walk(child, `${where}/${key}`, visit);
}
