// Money in a real browser, before a real service: what the operator gives to an account is in its
// balance and in the list of actions; an account that is created on the page sees its own calls.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { heading, newVisitor, signIn, startChromium, WITHOUT_CHROMIUM } from "./console-browser.ts";
import {
  type ConsoleService,
  HOSTILE,
  OPERATOR_TOKEN,
  startConsoleService,
} from "./console-service.ts";

const OPTIONS = { skip: WITHOUT_CHROMIUM };

let browser: Browser;
let fixture: ConsoleService;

before(async () => {
  if (WITHOUT_CHROMIUM !== false) return;
  [browser, fixture] = await Promise.all([startChromium(), startConsoleService()]);
});

after(async () => {
  if (WITHOUT_CHROMIUM !== false) return;
  await Promise.all([browser.close(), fixture.close()]);
});

test("the operator credits an account and grants days, and both have a line", OPTIONS, async () => {
  const { account, manage, service } = fixture;
  const balance = async (): Promise<number> =>
    Number((await manage(account.token, "GET", "/api/v1/accounts/current")).json.balance_usd);
  const had = await balance();
  const visitor = await newVisitor(browser, service.url);
  const { page } = visitor;
  await signIn(page, OPERATOR_TOKEN);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await page.goto("/dashboard/money?range=7d");
  await page.getByRole("button", { name: "7 days", pressed: true }).waitFor();
  await page.getByRole("table", { name: "Accounts" }).getByText(account.id).click();
  await page.getByRole("button", { name: "Credit", exact: true }).click();
  await page.getByLabel("Amount in US dollars").fill("12.5");
  await page.getByRole("button", { name: "Given for nothing" }).click();
  await page.getByLabel("Why").fill(HOSTILE);
  await visitor.accessible();
  await visitor.shots("credit");
  assert.equal(await balance(), had, "nothing happens before the operator says so");
  await page.getByRole("button", { name: "Credit $12.50" }).click();
  await page.getByText("The account was credited.", { exact: false }).waitFor();
  assert.equal(await balance(), had + 12.5);
  await page.getByRole("button", { name: "Grant Custom days" }).click();
  await page.getByLabel("Days", { exact: true }).fill("3");
  await page.getByLabel("Why").fill("a trial");
  await page.getByRole("button", { name: "Grant 3 days" }).click();
  await page.getByText("The account has Custom access until", { exact: false }).waitFor();
  const given = page.getByRole("table", { name: "Given by operators" });
  await given.getByText(/^days: 3, .*reason: a trial$/).waitFor();
  await given.getByText(`Credited ${account.id}`).waitFor();
  await visitor.shots("money-given");
  await given.getByText(`kind: grant, reason: ${HOSTILE}`, { exact: false }).waitFor();
  assert.equal(await page.evaluate("window.hacked"), undefined);
  await page.getByRole("button", { name: "From – to" }).click();
  await page.getByLabel("First day").fill("2026-01-01");
  await page.getByLabel("Last day").fill("2026-01-31");
  await page.getByText("2026-01-01 to 2026-01-31, UTC", { exact: false }).waitFor();
  assert.match(page.url(), /from=2026-01-01&to=2026-01-31|to=2026-01-31&from=2026-01-01/);
  await page.getByText("No key was used").waitFor();
  await visitor.shots("money-range");
  await visitor.accessible();
  visitor.clean();
  await visitor.close();
});

test("an account is created on the page, and sees its own calls alone", OPTIONS, async () => {
  const visitor = await newVisitor(browser, fixture.service.url);
  const { page } = visitor;
  await page.goto("/dashboard/sign-in");
  await visitor.shots("new-account");
  await page.getByLabel("Name of its first key").fill("the first one");
  await page.getByRole("button", { name: "Create an account" }).click();
  const key = (await page.getByText(/^svc_ak_\w+$/).textContent()) ?? "";
  const token = (await page.getByText(/^svc_mt_\w+$/).textContent()) ?? "";
  await visitor.accessible();
  await visitor.shots("account-ready");
  await page.getByRole("button", { name: "I have saved both", exact: true }).click();
  await heading(page, "Account");
  for (const secret of [key, token])
    assert.ok(!(await page.content()).includes(secret), "a secret stays on the page");
  assert.equal(await fixture.call(key, "eth_maxPriorityFeePerGas"), 200);
  assert.equal(await fixture.call(fixture.account.key, "eth_blobBaseFee"), 200);
  await page.getByRole("link", { name: "Calls", exact: true }).click();
  await heading(page, "Calls");
  const log = page.getByRole("table", { name: "Calls of the account" });
  await log.getByText("eth_maxPriorityFeePerGas").waitFor();
  assert.equal(await log.getByText("eth_blobBaseFee").count(), 0, "a call of another account");
  await log.getByText("the first one").waitFor();
  await visitor.accessible();
  await visitor.shots("calls");
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  const row = page.getByRole("table", { name: "Keys of the account" }).getByRole("row").nth(1);
  await row.locator('[data-label="Calls today"]').getByText("1", { exact: true }).waitFor();
  await row.locator('[data-label="Last used"]', { hasText: /hour|ago/ }).waitFor();
  await visitor.accessible();
  visitor.clean();
  await visitor.close();
});
