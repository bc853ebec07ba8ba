// What an operator asks the console on a bad day, in a real browser: each fault is named on the
// first page with its place, its cause and since when, and the questions of the day are answered
// within three clicks.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { type BadDay, FAULTS, OPERATOR_TOKEN, startBadDay, UNKNOWN_WORDS } from "./bad-day.ts";
import {
  newVisitor,
  signIn,
  startChromium,
  type Visitor,
  WITHOUT_CHROMIUM,
} from "./console-browser.ts";

const OPTIONS = { skip: WITHOUT_CHROMIUM, timeout: 180_000 };
/** Of the machine: the service says so within 30 s of its own time, and a step. */
const NAMED_MS = 60_000;

let browser: Browser;
let day: BadDay;
let visitor: Visitor;
let page: Page;

before(async () => {
  if (WITHOUT_CHROMIUM !== false) return;
  [browser, day] = await Promise.all([startChromium(), startBadDay()]);
  visitor = await newVisitor(browser, day.service.url);
  page = visitor.page;
  await signIn(page, OPERATOR_TOKEN);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
});

after(async () => {
  await visitor?.close();
  await Promise.all([browser?.close(), day?.close()]);
});

test("the first page names every fault, its cause and since when", OPTIONS, async () => {
  await page.goto("/dashboard");
  await rows("Chains").nth(8).waitFor();
  await day.begin();
  const card = cardOf("Wrong now");
  const showAll = card.getByRole("button", { name: /^Show all/ });
  for (const [place, state, cause] of FAULTS) {
    const item = card.getByRole("listitem").filter({ hasText: place });
    const named = item.filter({ hasText: cause }).filter({ hasText: state });
    // Where the machine is busy, others may be slow as well, and the list is longer.
    await named.or(showAll).first().waitFor({ timeout: NAMED_MS });
    if ((await showAll.count()) > 0) await showAll.click();
    await named.waitFor({ timeout: NAMED_MS });
  }
  // Where the machine is busy, one that is good may be slow.
  const wrong = card.getByRole("listitem").filter({ hasText: "good-" });
  assert.equal(await wrong.filter({ hasNotText: "Slow" }).count(), 0);
  await rows("Chains").filter({ hasText: "gnosis" }).first().getByText("No new block").waitFor();
  await page.getByText("balance exhausted 24", { exact: false }).waitFor();
  await visitor.accessible();
  await visitor.shots("bad-day");
  visitor.clean();
});

const cardOf = (title: string) =>
  page.locator("section.card", { has: page.getByRole("heading", { name: title, exact: true }) });
const rows = (table: string) =>
  page.getByRole("table", { name: table, exact: true }).getByRole("row");
const open = (name: string) =>
  page.getByRole("navigation").getByRole("link", { name, exact: true }).click();

test("who spent most today: one click", OPTIONS, async () => {
  await page.goto("/dashboard");
  await open("Money");
  await rows("Top keys").nth(1).getByText("the spender").waitFor();
});

test("how all providers of a chain compare: one click", OPTIONS, async () => {
  await page.goto("/dashboard");
  await rows("Chains").getByRole("link", { name: "ethereum" }).first().click();
  await rows("Providers").nth(4).waitFor();
  for (const [provider, word] of [
    ["good-1", "100 %"],
    ["good-2", "100 %"],
    ["bad-gateway", "Failing"],
    ["limited", "Limited"],
  ] as const)
    await rows("Providers").filter({ hasText: provider }).getByText(word).first().waitFor();
});

test("what happened at that minute: one click on a graph", OPTIONS, async () => {
  await page.goto("/dashboard");
  const graph = page.getByRole("img", { name: "Calls a second" }).locator(".u-over");
  await graph.waitFor();
  const { width = 0, height = 0 } = (await graph.boundingBox()) ?? {};
  await graph.click({ position: { x: width * 0.9, y: height / 2 } });
  await page.waitForURL("**/dashboard/requests?from=*&to=*");
  await page.getByText(/\d+ calls? shown, 200 at most; [\d,]+ were counted/).waitFor();
  await rows("Calls").nth(1).waitFor();
  await cardOf("Incidents").getByRole("listitem").first().waitFor();
  visitor.clean();
});

test("which error users see most: one click", OPTIONS, async () => {
  await page.goto("/dashboard");
  await open("Errors");
  await rows("Errors that users saw").nth(1).getByText(UNKNOWN_WORDS).waitFor();
});

test("why a call went where it went: two clicks", OPTIONS, async () => {
  await page.goto("/dashboard");
  await open("Requests");
  await rows("Calls").nth(1).click();
  await page.waitForURL("**/dashboard/requests/*");
  await page
    .getByText(/was tried first|answered in/)
    .first()
    .waitFor();
});

test("which provider is bad, and why: one click", OPTIONS, async () => {
  await page.goto("/dashboard");
  await page.getByRole("link", { name: "bad-gateway" }).first().click();
  await page.getByRole("heading", { level: 1, name: "bad-gateway" }).waitFor();
  await page
    .getByText(/HTTP 502/)
    .first()
    .waitFor();
});
