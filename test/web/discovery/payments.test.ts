// What documents tell of payments: live rails, ranges and prices, in the form that stock payers
// read; worthless chains say so, and no secret is told.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { PaymentInfo, validate } from "mppx/discovery";
import { MPPX_COMMAND } from "../../../src/core/billing/payment.ts";
import { Documents } from "../../../src/web/discovery/documents.ts";
import { type DocumentFacts, factsOf } from "../../../src/web/discovery/facts.ts";
import { openApiDocument } from "../../../src/web/discovery/openapi.ts";
import { configOf } from "../../fakes/service.ts";
import {
  configuration,
  HOSTED,
  RAILS,
  RECIPIENT,
  ROUTER,
  SECRET,
  SITE,
  selling,
  TOKEN,
  WALLET_KEY,
} from "./facts-fixture.ts";

const { tempo: TEMPO, evm: EVM, session: SESSION } = RAILS;
const ALL = selling([TEMPO, EVM, SESSION]);

// biome-ignore lint/suspicious/noExplicitAny: tests look into documents of any shape
type Document = any;
const openapi = (some: DocumentFacts): Document =>
  JSON.parse(JSON.stringify(openApiDocument(some, SITE)));
const text = (some: DocumentFacts, path: string): string =>
  new Documents(() => some).get(path, SITE.baseUrl)?.body.toString() ?? "";
const infoOf = (document: Document, path: string): Document =>
  document.paths[path]?.post["x-payment-info"];

const FUND = "/api/v1/agent/keys/{key}/fund";
const SESSION_PATH = "/rpc/session/{strategy}/{chain}";

test("every paid operation declares what it costs, in the form that stock payers validate", async () => {
  const document = openapi(ALL);
  assert.deepEqual(validate(document), []);
  const result = await new Validator().validate(structuredClone(document));
  assert.deepEqual(result.errors ?? [], []);
  const paid = Object.entries<Document>(document.paths).filter(
    ([, it]) => it.post?.["x-payment-info"] !== undefined,
  );
  assert.deepEqual(paid.map(([, it]) => it.post.operationId).toSorted(), [
    "buyCredit",
    "buyCustomAccess",
    "createAgentKey",
    "fundAgentKey",
    "rpcKeyed",
    "rpcSession",
  ]);
  for (const [path, it] of paid)
    assert.ok(PaymentInfo.safeParse(it.post["x-payment-info"]).success, path);
});

test(
  "funding costs 100000 base units at least, a call of a session 100, a day of Custom access " +
    "1300000",
  () => {
    const document = openapi(selling([TEMPO, SESSION]));
    const offer = { method: "tempo", currency: TOKEN };
    const { description, ...fund } = infoOf(document, FUND);
    assert.deepEqual(fund, { ...offer, intent: "charge", amount: "100000" });
    assert.match(description, /least/);
    const { description: each, ...call } = infoOf(document, SESSION_PATH);
    assert.deepEqual(call, { ...offer, intent: "session", amount: "100" });
    assert.match(each, /challenge says/);
    assert.equal(infoOf(document, "/api/v1/accounts/{id}/custom-access").amount, "1300000");
    const both = infoOf(openapi(ALL), FUND);
    assert.deepEqual(
      both.offers.map((it: Document) => [it.method, it.intent, it.amount]),
      [
        ["tempo", "charge", "100000"],
        ["evm", "charge", "100000"],
      ],
    );
  },
);

test(
  "without rails nothing is declared as paid, and there is no session route; without a session " +
    "rail there is none either",
  () => {
    for (const some of [HOSTED, selling([TEMPO])])
      assert.equal(openapi(some).paths[SESSION_PATH], undefined);
    assert.equal(JSON.stringify(openapi(HOSTED)).includes("x-payment-info"), false);
    assert.equal(
      JSON.stringify(openapi(selling([SESSION])).paths[FUND]).includes("x-payment-info"),
      false,
    );
  },
);

test("a payment comes beside the management token, and keys are created without one too", () => {
  const { paths } = openapi(ALL);
  assert.deepEqual(paths[FUND].post.security, [{ mpp: [] }, { paymentSignature: [] }]);
  assert.deepEqual(paths["/api/v1/accounts/{id}/credit"].post.security, [
    { managementToken: [], mpp: [] },
    { managementToken: [], paymentSignature: [] },
  ]);
  assert.deepEqual(paths["/api/v1/agent/keys"].post.security, [
    {},
    { mpp: [] },
    { paymentSignature: [] },
  ]);
});

test("agent.json tells rails, networks, tokens, recipient, ranges and days in live values", () => {
  const agent = JSON.parse(
    text(
      selling([TEMPO, EVM, SESSION], {
        min_usd: "0.25",
        max_usd: "40",
        custom_day_usd: "2.5",
        max_custom_days: 7,
      }),
      "/agent.json",
    ),
  );
  assert.equal(agent.features.payments, true);
  const { rails, purchase_usd, custom_access, calls, enabled } = agent.payments;
  const rail = { token: TOKEN, recipient: RECIPIENT, local: false };
  const tempo = { ...rail, network: "eip155:4217", chain_id: 4217 };
  assert.deepEqual(rails, [
    { ...tempo, kind: "tempo", offers: ["mpp:tempo/charge"] },
    {
      ...rail,
      kind: "evm",
      offers: ["mpp:evm/charge", "x402:exact"],
      network: "eip155:8453",
      chain_id: 8453,
      token_name: "USD Coin",
      token_version: "2",
    },
    { ...tempo, kind: "session", offers: ["mpp:tempo/session"], suggested_deposit_usd: "1" },
  ]);
  assert.deepEqual(
    [enabled, purchase_usd, custom_access],
    [true, { min: "0.25", max: "40" }, { usd_per_day: "2.5", days: { min: 1, max: 7 } }],
  );
  assert.equal(calls.session, `${SITE.baseUrl}${SESSION_PATH}`);
  assert.deepEqual(JSON.parse(text(HOSTED, "/agent.json")).payments, { enabled: false, rails: [] });
});

test(
  "a development chain says that its money is worth nothing, a stand-in that it is one, and " +
    "only there a node is named",
  () => {
    const config = configOf(
      configuration({ enabled: true, payments: { rails: [TEMPO, SESSION] } }),
    );
    const payments = config.hosted?.payments;
    assert.ok(config.hosted !== null && payments != null);
    const rails = payments.rails.map((it) => ({
      ...it,
      local: true,
      rpcUrl: "http://127.0.0.1:8547",
    }));
    const local = factsOf(
      { ...config, hosted: { ...config.hosted, payments: { ...payments, rails } } },
      "1.2.3",
    );
    const [tempo, session] = JSON.parse(text(local, "/agent.json")).payments.rails;
    for (const it of [tempo, session])
      assert.deepEqual([it.local, it.rpc_url], [true, "http://127.0.0.1:8547"]);
    assert.match(tempo.note, /worth nothing/);
    assert.match(session.note, /worth nothing.*stand-in for development/);
    assert.deepEqual([tempo.stand_in, session.stand_in], [undefined, true]);
    assert.match(text(local, "/SKILL.md"), /--rpc-url http:\/\/127\.0\.0\.1:8547/);
    assert.match(text(local, "/SKILL.md"), /worthless money/);
  },
);

test("whatever is to be installed for paying has the version that is installed here", () => {
  const root = new URL("../../../", import.meta.url);
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(new URL("package.json", root), "utf8"),
  );
  const named = (name: string): string =>
    `${name}@${dependencies[name] ?? devDependencies[name] ?? "missing"}`;
  const clients = `${named("mppx")} ${named("viem")}`;
  assert.equal(MPPX_COMMAND, `npx -y -p ${clients.replace(" ", " -p ")} mppx`);
  const skill = text(ALL, "/SKILL.md");
  assert.deepEqual(
    new Set(Array.from(skill.matchAll(/npm install ([^`\n]+)/g), ([, it]) => it)),
    new Set([clients, `${named("@x402/fetch")} ${named("@x402/evm")} ${named("viem")}`]),
  );
  const page = readFileSync(new URL("docs/payments.md", root), "utf8");
  for (const printed of [skill, text(ALL, "/llms.txt"), page])
    for (const [line] of printed.matchAll(/^.*\bnpx .*$/gm))
      assert.ok(line.includes(`${MPPX_COMMAND} `), line);
});

test("SKILL.md shows code for the rails of the instance and for no other", () => {
  const codeOf = (rails: readonly object[]): string =>
    (
      text(selling(rails, { min_usd: "0.75" }), "/SKILL.md").match(/^```ts[\s\S]*?^```$/gm) ?? []
    ).join("\n");
  const [tempo, evm, session] = [[TEMPO], [EVM], [SESSION]].map(codeOf);
  assert.match(tempo ?? "", /tempo\.charge/);
  assert.doesNotMatch(tempo ?? "", /x402|evm|session/);
  assert.match(evm ?? "", /allowedAssets: \[\{ network, asset: "0x20/);
  assert.match(evm ?? "", /name: "USD Coin", version: "2"/);
  assert.doesNotMatch(evm ?? "", /tempo/);
  assert.match(session ?? "", /tempo\.session\.manager/);
  for (const code of [tempo, evm]) assert.match(code ?? "", /initial_fund_usd: "0\.75"/);
});

test(
  "SKILL.md and llms.txt walk through paying where anything is sold, and say that nothing is " +
    "where it is not",
  () => {
    for (const path of ["/SKILL.md", "/llms.txt"]) {
      const told = text(ALL, path);
      assert.match(
        told,
        /npx -y -p mppx@[\d.]+ -p viem@[\d.]+ mppx "http:\/\/rpc\.example:4000\/api\/v1\/agent\/keys\/\$KEY\/fund" --json-body '\{"amount_usd":"0\.1"\}'/,
        path,
      );
      assert.match(told, /PAYMENT-SIGNATURE: \$SIGNED/, path);
      assert.match(told, /0\.1 to 100 USD/, path);
      assert.doesNotMatch(told, /--rpc-url/, path);
      assert.doesNotMatch(text(HOSTED, path), /mppx/, path);
      assert.doesNotMatch(text(ROUTER, path), /mppx|payment/i, path);
    }
    for (const code of [
      "payment_required",
      "payment_invalid",
      "payment_pending",
      "payment_conflict",
      "payment_failed",
      "beneficiary_conflict",
    ])
      assert.ok(text(ALL, "/SKILL.md").includes(`\`${code}\`**`), code);
    assert.match(text(HOSTED, "/SKILL.md"), /Payments are not open/);
    for (const path of ["/SKILL.md", "/llms.txt"])
      assert.doesNotMatch(
        text(ALL, path).replace(/^```[\s\S]*?^```$/gm, ""),
        /npx|curl -/,
        `a command of ${path} that no walk types: put it into a block`,
      );
    assert.match(text(selling([EVM]), "/SKILL.md"), /--protocol x402/);
  },
);

test("no document tells a node's address, a wallet's key or a path to either", () => {
  for (const path of [
    "/openapi.json",
    "/agent.json",
    "/llms.txt",
    "/SKILL.md",
    "/docs/errors",
    "/docs/api",
  ])
    assert.doesNotMatch(
      text(ALL, path),
      new RegExp(`${SECRET}|node\\.example|${WALLET_KEY.slice(2)}`),
      path,
    );
});

test(
  "SKILL.md tells how to pay from code and for an account, and where a wallet with local money " +
    "comes from",
  () => {
    const skill = text(ALL, "/SKILL.md");
    for (const it of [
      "mppx/client",
      "spendControls",
      "/credit",
      "/custom-access",
      "/api/v1/purchases/{id}",
      "/rpc/session/{strategy}/{chain}",
    ]) {
      assert.ok(skill.includes(it), it);
    }
    assert.equal(
      skill.includes("prints at its start"),
      false,
      "no local wallet where money is real",
    );
    assert.equal(text(HOSTED, "/SKILL.md").includes("## Pay from code"), false);
  },
);
