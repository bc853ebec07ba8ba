// What an operator asks the console on a bad day, in a real browser: each fault is named on the
// first page with its place, its cause and since when, and the questions of the day are answered
// within three clicks.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { type BadDay, FAULTS, OPERATOR_TOKEN, startBadDay } from "./bad-day.ts";
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
  await page.getByText("All 4 chains are served normally").waitFor();
  const faultMs = day.runtime.wallMs();
  await day.begin();
  const card = page.locator("section.card", {
    has: page.getByRole("heading", { name: "Wrong now" }),
  });
  for (const [place, state, cause] of FAULTS) {
    const item = card.getByRole("listitem").filter({ hasText: place });
    await item.filter({ hasText: cause }).waitFor({ timeout: NAMED_MS });
    await item.getByText(state, { exact: true }).waitFor({ timeout: NAMED_MS });
    console.log(place, Math.round((day.runtime.wallMs() - faultMs) / 1000), await item.innerText());
  }
  assert.equal(await card.getByText("good-").count(), 0, "none that is good is named");
  await page.getByText("balance exhausted 24", { exact: false }).waitFor();
  await visitor.accessible();
  await visitor.shots("bad-day");
  visitor.clean();
});
