// A browser that opens pages of the console: collects what must never happen on them (errors on the
// page's console, violations of the content security policy, requests to other hosts, answers that
// the page did not expect), asks axe-core about accessibility, and takes screenshots.
import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const BINARY = "/usr/bin/chromium";
/** Long enough for a machine that does much else: nothing here is about speed. */
const WAIT_MS = 60_000;

/** Why no browser can be started here, as `skip` of a test takes it; false = one can. */
export const WITHOUT_CHROMIUM: string | false = existsSync(BINARY)
  ? false
  : `${BINARY} is not installed`;

/** Environment variable that names a folder for screenshots; unset = none are taken. */
const SHOTS = "SVC_SCREENSHOTS";

/** How a page is shown. */
interface Look {
  readonly width: 1400 | 390;
  readonly scheme: "light" | "dark";
}

const WIDE: Look = { width: 1400, scheme: "light" };

/** Every look that a page is judged by. */
const LOOKS: readonly Look[] = [
  WIDE,
  { width: 1400, scheme: "dark" },
  { width: 390, scheme: "light" },
  { width: 390, scheme: "dark" },
];

/** Pages that share their cookies: one visitor. */
export interface Visitor {
  readonly page: Page;
  /** What went wrong on the page so far; empty = nothing. */
  readonly problems: () => readonly string[];
  /** Fails if anything went wrong, and forgets it. */
  clean(): void;
  /** Fails if axe-core finds a violation on what is shown now. */
  accessible(): Promise<void>;
  /** Screenshots of what is shown now in every look, where a folder for them is named. */
  shots(name: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts the browser that all pages of a test file share. */
export async function startChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: BINARY,
    headless: true,
    timeout: WAIT_MS,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
}

/** Runs in every page: the test hears of each violation of the page's policy. */
const REPORT_VIOLATIONS = `addEventListener("securitypolicyviolation", (event) =>
  reportViolation(
    "policy: " + event.violatedDirective + " " + event.blockedURI + " " + event.sourceFile,
  ));`;

/** A visitor of a service, with cookies of its own. `prepare` runs before the first page. */
export async function newVisitor(
  browser: Browser,
  baseUrl: string,
  prepare: (context: BrowserContext) => Promise<void> = async () => {},
): Promise<Visitor> {
  const context = await browser.newContext({
    baseURL: baseUrl,
    viewport: { width: WIDE.width, height: 900 },
    colorScheme: WIDE.scheme,
    reducedMotion: "reduce",
  });
  context.setDefaultTimeout(WAIT_MS);
  const problems: string[] = [];
  await context.exposeFunction("reportViolation", (text: string) => void problems.push(text));
  await context.addInitScript(REPORT_VIOLATIONS);
  await prepare(context);
  const page = await context.newPage();
  watch(page, baseUrl, problems);
  return {
    page,
    problems: () => problems,
    clean: () => assert.deepEqual(problems.splice(0), []),
    accessible: () => assertAccessible(page),
    shots: (name) => takeShots(page, name),
    close: () => context.close(),
  };
}

const FADE_MS = 500;

/** A refusal is an answer that pages are made for: the browser says so on its console, too. */
const REFUSAL = /the server responded with a status of (401|402|403|404|409|422|429|503)/;

function watch(page: Page, baseUrl: string, problems: string[]): void {
  page.on("console", (message) => {
    const isProblem = message.type() === "error" || message.type() === "warning";
    if (isProblem && !REFUSAL.test(message.text()))
      problems.push(`${message.type()}: ${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => void problems.push(`exception: ${error.stack ?? error}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(baseUrl))
      problems.push(`request to another host: ${request.url()}`);
  });
}

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const violations = await page.evaluate(
    `axe.run(document, { runOnly: { type: "tag", values: ${JSON.stringify(RULES)} } }).then(
      ({ violations }) => violations.map(({ id, nodes }) => ({
        id,
        where: nodes.slice(0, 5).map(({ html, failureSummary }) => html + " " + failureSummary),
      })),
    )`,
  );
  assert.deepEqual(violations, [], page.url());
}

async function takeShots(page: Page, name: string): Promise<void> {
  const folder = process.env[SHOTS];
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  for (const { width, scheme } of LOOKS) {
    await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
    await page.emulateMedia({ colorScheme: scheme });
    // Colours fade from one scheme to the other.
    await page.waitForTimeout(FADE_MS);
    await page.evaluate("scrollTo(0, 0)");
    await page.screenshot({ path: join(folder, `${name}-${width}-${scheme}.png`), fullPage: true });
  }
  await page.setViewportSize({ width: WIDE.width, height: 900 });
  await page.emulateMedia({ colorScheme: WIDE.scheme });
}

/** Opens the page to sign in, and does. */
export async function signIn(page: Page, token: string): Promise<void> {
  await page.goto("/dashboard/sign-in");
  await enterToken(page, token);
}

/** Signs in on a page that asks for it. */
export async function enterToken(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Waits until the page of this title is shown. */
export async function heading(page: Page, name: string): Promise<void> {
  await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
}
