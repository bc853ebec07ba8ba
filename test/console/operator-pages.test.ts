// The pages that tell how the service does, in a real browser: overview, chain, requests with their
// decisions, streams, errors. One of two providers fails, and its name is markup; actions are
// carried out to their effect.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { buildConsole, isConsoleBuilt } from "../../bin/build-console.ts";
import { configText, type Service, startService } from "../fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";
import { newVisitor, startChromium, type Visitor, WITHOUT_CHROMIUM } from "./console-browser.ts";

const OPERATOR = "operator-of-the-page-tests-0123456789";
const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;
const CHAIN = "/dashboard/chain/team/ethereum";
const options = { skip: WITHOUT_CHROMIUM };

let good: ScriptedUpstream;
let failing: ScriptedUpstream;
let service: Service;
let browser: Browser;
let visitor: Visitor;
let page: Page;

before(async () => {
  if (WITHOUT_CHROMIUM !== false) return;
  if (!isConsoleBuilt()) await buildConsole();
  good = await scriptedUpstream();
  failing = await scriptedUpstream((_, reply) =>
    reply.error('{"code":-32055,"message":"the flux condenser is warm"}', 500),
  );
  const providers = [
    { id: "good", name: "Good", url: good.url },
    { id: "failing", name: HOSTILE, url: failing.url },
  ];
  const server = { port: 0, operator_token: OPERATOR };
  service = await startService(configText(providers, { server, log_level: "error" }));
  await service.probed();
  browser = await startChromium();
  visitor = await newVisitor(browser, service.url);
  page = visitor.page;
});

after(async () => {
  if (WITHOUT_CHROMIUM !== false) return;
  await browser.close();
  await service.close();
  await Promise.all([good.close(), failing.close()]);
});

test("anybody sees how the service is, and names that are markup stay text", options, async () => {
  await page.goto("/dashboard");
  await page.getByText(/^The chain is served/).waitFor();
  await visitor.accessible();
  await page.getByRole("link", { name: "Ethereum Mainnet" }).click();
  await page.waitForURL(`**${CHAIN}`);
  const rows = page.getByRole("table", { name: "Providers" }).getByRole("row");
  await rows.nth(2).waitFor();
  assert.equal(await page.getByRole("button", { name: "Cordon" }).count(), 0);
  await page.goto("/dashboard/provider/good");
  await page.getByRole("table", { name: "Where it is used" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /Cordon|Test/ }).count(), 0);
  await page.goto("/dashboard/requests");
  await page.getByText("Sign in to see this").waitFor();
  await visitor.shots("requests-forbidden");
  visitor.clean();
});

test("the operator tests a provider, cordons it, and it gets no calls", options, async () => {
  await signIn();
  await page.goto(CHAIN);
  const table = page.getByRole("table", { name: "Providers" });
  await table.getByRole("row").nth(2).click();
  await page.getByRole("button", { name: "Test now" }).click();
  await page
    .getByText(/Answered|Failed/)
    .first()
    .waitFor();
  await page.getByRole("button", { name: "Cordon" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/Reason/).fill("it fails");
  await visitor.accessible();
  await dialog.getByRole("button", { name: "Cordon" }).click();
  await table.getByText("Cordoned by the operator: it fails").waitFor();
  await visitor.accessible();
  await visitor.shots("chain");
  const before = failing.asked.length;
  for (let n = 0; n < 4; n++) assert.equal(await call(), 200);
  assert.equal(failing.asked.length, before);
  await page.getByRole("button", { name: "Uncordon" }).click();
  await page.getByRole("button", { name: "Cordon", exact: true }).waitFor();
  await service.post("/rpc/nowhere", { jsonrpc: "2.0", id: 1, method: "eth_gasPrice" });
  await page.goto("/dashboard");
  await page.getByText("unknown chain, profile or path 1").waitFor();
  const actions = page.getByRole("table", { name: "Operator actions" });
  await actions.getByText(/^Uncordoned/).waitFor();
  // The service remembers what happened before this page was opened.
  await page.getByText("failing is no longer cordoned").waitFor();
  await visitor.accessible();
  await visitor.shots("overview");
  visitor.clean();
});

test("what is wrong now stands first, in the headline and behind graphs", options, async () => {
  const startedMs = Date.now() - 45_000;
  const incident = {
    ...{ id: `inc_${"0".repeat(20)}`, profile: "team", chain: "ethereum", provider: "failing" },
    ...{ cause: "failing", state: "failing", words: "70 % HTTP 502", duration_s: 45 },
    ...{ started_at: new Date(startedMs).toISOString(), ended_at: null, good_since: null },
    ...{ attempts: 17, failed: 12, failed_calls: 4, users: 3 },
  };
  const ended = {
    ...{ ...incident, id: `inc_${"1".repeat(20)}`, cause: "slow", state: "slow" },
    ...{ words: "812 ms, its peers 95 ms", failed: 0, failed_calls: 0, users: 0 },
    ended_at: new Date(startedMs).toISOString(),
    started_at: new Date(startedMs - 600_000).toISOString(),
  };
  await page.route("**/api/v1/incidents*", (route) =>
    route.fulfill({ json: { incidents: [incident, ended], next: null } }),
  );
  await page.goto("/dashboard");
  await page.getByText("The chain is served; failing on ethereum: 70 % HTTP 502").waitFor();
  const first = page.locator("main h2").first();
  assert.equal(await first.textContent(), "Wrong now");
  await page.getByText("12 failed attempts, 3 users noticed (4 failed calls)").waitFor();
  await page
    .getByRole("img", { name: /Wrong: .*70 % HTTP 502/ })
    .first()
    .waitFor();
  await visitor.accessible();
  await visitor.shots("wrong-now");
  await page.getByRole("link", { name: "failing", exact: true }).first().click();
  await page.getByText("Latency by method").waitFor();
  await page.getByText("12 failed attempts").waitFor();
  await page.getByRole("img", { name: /^State of failing: .*Failing/ }).waitFor();
  await visitor.accessible();
  await visitor.shots("provider");
  await page.getByRole("link", { name: "ethereum", exact: true }).first().click();
  await page.getByRole("heading", { name: "Incidents" }).waitFor();
  await page.getByText("812 ms, its peers 95 ms").first().waitFor();
  await page.getByRole("img", { name: /^State of failing: .*Failing/ }).waitFor();
  await visitor.accessible();
  await visitor.shots("chain-incidents");
  await page.unroute("**/api/v1/incidents*");
  visitor.clean();
});

test("a provider is out for maintenance and back in three clicks", options, async () => {
  const now = new Date().toISOString();
  const incident = {
    ...{ id: `inc_${"2".repeat(20)}`, profile: "team", chain: "ethereum", provider: "failing" },
    ...{ cause: "failing", state: "failing", words: "70 % HTTP 502", duration_s: 1 },
    ...{ started_at: now, ended_at: null, good_since: null },
    ...{ attempts: 17, failed: 12, failed_calls: 4, users: 3 },
  };
  await page.route("**/api/v1/incidents*", (route) =>
    route.fulfill({ json: { incidents: [incident], next: null } }),
  );
  await page.goto("/dashboard");
  await page.getByRole("button", { name: "Cordon" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Where").selectOption("Every profile and chain");
  await dialog.getByLabel("How long").selectOption("1 hour");
  await dialog.getByLabel(/Reason/).fill("new disk");
  await visitor.accessible();
  await visitor.shots("cordon-dialog");
  await dialog.getByRole("button", { name: "Cordon" }).click();
  await page.getByText("failing gets no more calls.").waitFor();
  await page.unroute("**/api/v1/incidents*");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).fill("go to provider failing");
  await page.getByRole("option", { name: /failing/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/dashboard/provider/failing");
  const until = /Maintenance on ethereum since [\d:]+ until .*: cordoned by the operator, new disk/;
  await page.getByText(until).waitFor();
  await visitor.accessible();
  await visitor.shots("provider-maintenance");
  await page.getByRole("button", { name: "Uncordon everywhere" }).click();
  await page.getByRole("button", { name: "Cordon everywhere" }).waitFor();
  await page.getByText("new disk").first().waitFor({ state: "detached" });
  await page.goto("/dashboard/provider/good");
  const classes = page.getByRole("img", { name: /^Latency p95 by class of methods/ });
  await classes.waitFor();
  await visitor.shots("provider-good");
  visitor.clean();
});

test(
  "what stands below a graph is its last point, also after the page read again",
  options,
  async () => {
    let calls = 0;
    await page.route("**/api/v1/history*", async (route) => {
      const answer = await route.fetch();
      const json = await answer.json();
      calls += 10 * json.step_s;
      for (const series of json.series) series.calls = series.calls.map(() => calls);
      await route.fulfill({ response: answer, json });
    });
    await page.goto("/dashboard");
    const legend = page.getByRole("img", { name: /^Calls a second/ }).locator(".u-legend");
    await legend.getByText("10", { exact: true }).waitFor();
    await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`);
    await legend.getByText("20", { exact: true }).waitFor();
    await page.unroute("**/api/v1/history*");
    visitor.clean();
  },
);

test("a call appears in the feed, opens to its reasons, and to what if", options, async () => {
  await page.goto("/dashboard/requests?failovers=true");
  await page.getByText("Live", { exact: true }).waitFor();
  const table = page.getByRole("table", { name: "Calls" });
  // The order of providers is random: until one call had to fail over.
  for (let n = 0; n < 200 && (await table.count()) === 0; n++) {
    assert.equal(await call(), 200);
    await page.waitForTimeout(20);
  }
  await visitor.accessible();
  await visitor.shots("requests");
  await table.getByRole("row").nth(1).click();
  await page.waitForURL("**/dashboard/requests/*");
  await page.getByText("the flux condenser is warm").first().waitFor();
  await page
    .getByText(/^failing was tried first.* and answered .*; .* answered in .* ms\.$/)
    .waitFor();
  await page.getByRole("table", { name: "Candidates" }).first().waitFor();
  assert.equal(await page.getByRole("columnheader", { name: "Price" }).count(), 0);
  await page.getByLabel("Without").selectOption("failing");
  await page.getByText("Another provider comes first").waitFor();
  await visitor.accessible();
  await visitor.shots("decision");
  visitor.clean();
});

test("rows stand still under the pointer and out of view; new calls wait", options, async () => {
  await page.goto("/dashboard/requests?method=eth_gasPrice");
  await page.getByText("Live", { exact: true }).waitFor();
  const rows = page.getByRole("table", { name: "Calls" }).getByRole("row");
  // Those of the tests before.
  await rows.nth(2).waitFor();
  const before = await rows.count();
  for (let n = 0; n < 40; n++) assert.equal(await call(), 200);
  await rows.nth(before + 39).waitFor();
  const first = rows.nth(1);
  const cells = (await first.getByRole("cell").allTextContents()).slice(1, 4);
  assert.deepEqual(cells, ["ethereum", "eth_gasPrice", "no key"]);
  const { height = 0, y = 0 } = (await first.boundingBox()) ?? {};
  assert.ok(height >= 32 && height <= 36, `a row is ${height} px high`);
  await first.hover();
  const ended = await first.getByRole("time").textContent();
  const isStill = async (): Promise<void> =>
    assert.deepEqual(
      [await first.getByRole("time").textContent(), (await first.boundingBox())?.y],
      [ended, y],
    );
  assert.equal(await call(), 200);
  await page.getByRole("button", { name: "1 new call – show" }).waitFor();
  await isStill();
  await visitor.accessible();
  assert.equal(await call(), 200);
  await page.getByRole("button", { name: "2 new calls – show" }).waitFor();
  await isStill();
  await page.mouse.move(0, 0);
  await page.getByRole("button", { name: /new call/ }).waitFor({ state: "detached" });
  assert.notEqual(await first.getByRole("time").textContent(), ended);
  // The top is out of view: they come at a click.
  await page.evaluate("scrollTo(0, 900)");
  assert.equal(await call(), 200);
  await page.getByRole("button", { name: "1 new call – show" }).click();
  await page.getByRole("button", { name: /new call/ }).waitFor({ state: "detached" });
  await visitor.shots("requests-live");
  visitor.clean();
});

test("filters are chips, and a request id finds its call", options, async () => {
  await page.goto("/dashboard/requests");
  await page.getByText("Live", { exact: true }).waitFor();
  const field = page.getByLabel("Filter or request id");
  const chips = page.getByRole("button", { name: /^Remove the filter/ });
  const add = async (text: string): Promise<void> => {
    await field.fill(text);
    await field.press("Enter");
  };
  await add("colour: red");
  await page.getByText(/^This is no filter/).waitFor();
  await visitor.accessible();
  await add("provider: failing");
  await page.waitForURL(/provider=failing/);
  await add("failed");
  await page.waitForURL(/outcome=failed/);
  await page.getByText("Outcome: Failed").waitFor();
  await visitor.accessible();
  await visitor.shots("requests-chips");
  await chips.last().click();
  await chips.last().click();
  await page.waitForURL("**/dashboard/requests");
  assert.equal(await chips.count(), 0);
  const rpc = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
  const { headers } = await service.post("/rpc/profile/team/ethereum", rpc);
  await add(`X-Svc-Request-Id: ${headers.get("x-svc-request-id")}`);
  const rows = page.getByRole("table", { name: "Calls" }).getByRole("row");
  await page.getByText("Calls of one request id.").waitFor();
  await rows.nth(1).waitFor();
  assert.equal(await rows.count(), 2);
  await add("req-0-0");
  await page.getByText("No call of this request id and these filters is kept").waitFor();
  await page.getByText(/at most 10 a second, and 200 of each filter/).waitFor();
  await visitor.accessible();
  await visitor.shots("requests-id");
  visitor.clean();
});

test(
  "errors open to a sample and lead to their calls; streams have an empty state",
  options,
  async () => {
    await page.goto("/dashboard/errors");
    const hidden = page.getByRole("table", { name: "Errors hidden by failover" });
    await hidden.getByText("the flux condenser is warm").first().click();
    await page.getByRole("button", { name: "Copy the sample" }).waitFor();
    await hidden.getByRole("img", { name: /^Last hour: \d+, of which \d+ in the last/ }).waitFor();
    await visitor.accessible();
    await visitor.shots("errors");
    await hidden.getByRole("link", { name: "failing on ethereum, team" }).click();
    await page.waitForURL(/requests\?.*provider=failing/);
    await page.getByRole("table", { name: "Calls" }).getByRole("row").nth(1).waitFor();
    await page.goto("/dashboard/streams");
    await page.getByText("Nobody subscribes to anything").waitFor();
    await visitor.accessible();
    await visitor.shots("streams");
    visitor.clean();
  },
);

test(
  "a feed that is cut says so and comes back; a session that ended is told",
  options,
  async () => {
    const events = "**/api/v1/operator/events*";
    await page.route(events, (route) => route.abort());
    await page.goto("/dashboard/requests");
    await page.getByText(/^Cut off, connecting in/).waitFor();
    await page.unroute(events);
    await page.getByText("Live", { exact: true }).waitFor();
    // Another tab of this browser signs out: this page says so by itself, and how to come back.
    const tab = await page.context().newPage();
    await tab.goto("/dashboard");
    await tab.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("Your session has ended.").waitFor();
    await page.getByRole("link", { name: "Sign in again" }).waitFor();
    await tab.close();
    await page.goto("/dashboard");
    await page.getByText(/^The chain is served/).waitFor();
    await page.route("**/api/**", (route) => route.abort());
    await page.locator("h1").getByText("The service cannot be reached.").waitFor();
    await page.getByRole("alert").getByText("The service cannot be reached.").waitFor();
    await visitor.accessible();
    await visitor.shots("away");
    await page.unroute("**/api/**");
    await page.getByText(/^The chain is served/).waitFor();
    await page.goto("/dashboard/chain/team/nowhere");
    await page.getByRole("heading", { level: 1, name: "nowhere" }).waitFor();
    assert.equal(await page.title(), "Chain nowhere, team – svc");
    await visitor.accessible();
    await page.goto("/dashboard/streams");
    await page.getByText("Sign in to see this").waitFor();
    assert.equal(await page.evaluate("window.hacked === undefined"), true);
  },
);

/** A call without a key, to whichever provider comes first. */
async function call(): Promise<number> {
  const body = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
  return (await service.post("/rpc/profile/team/ethereum", body)).status;
}

async function signIn(): Promise<void> {
  const status = await page.evaluate(async (token) => {
    const response = await fetch("/api/v1/console/session", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token }),
    });
    return response.status;
  }, OPERATOR);
  assert.equal(status, 201);
}
