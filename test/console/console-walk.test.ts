// The pages of accounts and of the operator in a real browser, before a real service: what is done
// on a page takes effect. A key that was created there makes a call, shows up in usage, is rotated
// and deleted; a payment of a wallet arrives in the ledger; a session that ended says so.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";
import { PAYER } from "../../src/devnet/payments/wallets.ts";
import {
  heading,
  newVisitor,
  signIn,
  startChromium,
  type Visitor,
  WITHOUT_CHROMIUM,
} from "./console-browser.ts";
import {
  type ConsoleService,
  HOSTILE,
  OPERATOR_TOKEN,
  startConsoleService,
} from "./console-service.ts";
import { injectWallet } from "./injected-wallet.ts";

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

test("a wrong token is refused, and no token stays on the page", OPTIONS, async () => {
  const visitor = await newVisitor(browser, fixture.service.url);
  const { page } = visitor;
  await signIn(page, "svc_mt_mistyped");
  await page.getByRole("alert").waitFor();
  assert.equal(await page.getByLabel("Token").inputValue(), "");
  await visitor.accessible();
  await visitor.shots("sign-in");
  await signIn(page, fixture.account.token);
  await heading(page, "Account");
  const kept = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])");
  assert.ok(!String(kept).includes("svc_mt_"), "a token is kept by script");
  assert.equal(await page.evaluate("document.cookie"), "");
  visitor.clean();
  await visitor.close();
});

test("a key is created, called with, seen in usage, rotated and deleted", OPTIONS, async () => {
  const visitor = await newVisitor(browser, fixture.service.url);
  const { page } = visitor;
  await signIn(page, fixture.account.token);
  await heading(page, "Account");
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByLabel("Name", { exact: true }).fill("made on the page");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const key = await shownSecret(page);
  assert.equal(await fixture.call(key), 200);
  await visitor.accessible();
  await page.getByRole("button", { name: "I have saved it" }).click();
  assert.ok(!(await page.content()).includes(key), "the secret stays on the page");
  await usageShows(page, "made on the page");
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("button", { name: "Rotate made on the page" }).click();
  await page.getByLabel("The old secret ends").selectOption("At once");
  await page.getByRole("button", { name: "Rotate", exact: true }).click();
  const rotated = await shownSecret(page);
  assert.notEqual(rotated, key);
  assert.deepEqual([await fixture.call(key), await fixture.call(rotated)], [401, 200]);
  await page.getByRole("button", { name: "I have saved it" }).click();
  await page.getByRole("button", { name: "Delete made on the page" }).click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("The key was deleted.").waitFor();
  assert.equal(await fixture.call(rotated), 401);
  visitor.clean();
  await visitor.close();
});

async function shownSecret(page: Page): Promise<string> {
  const text = page.getByRole("dialog").getByText(/^svc_ak_\w+$/);
  return (await text.textContent()) ?? "";
}

/** Usage is written some moments after the call: the page reads it again by itself. */
async function usageShows(page: Page, name: string): Promise<void> {
  await page.getByRole("link", { name: "Account", exact: true }).click();
  const table = page.getByRole("table", { name: "Usage by key" });
  await table.getByText(name).waitFor();
}

test("a wallet pays on the page, and the money arrives in the ledger", OPTIONS, async () => {
  const { evm, recipient } = fixture.chains;
  const had = await evm.balanceOf(recipient.address);
  let wallet: Awaited<ReturnType<typeof injectWallet>> | null = null;
  const visitor = await newVisitor(browser, fixture.service.url, async (context) => {
    wallet = await injectWallet(context, { wallet: PAYER, chainId: evm.chainId });
  });
  assert.ok(wallet !== null);
  const injected: { refuses: boolean } = wallet;
  const { page } = visitor;
  await signIn(page, fixture.account.token);
  await heading(page, "Account");
  await page.getByRole("link", { name: "Payments" }).click();
  await page.getByLabel("Amount in US dollars").fill("2.5");
  await page.getByRole("button", { name: "Continue with a wallet" }).click();
  const shown = page.getByText(recipient.address);
  await shown.waitFor();
  await page.getByText(`2.5 ${evm.token.name}`).waitFor();
  await page.getByText(evm.token.address, { exact: false }).waitFor();
  await visitor.accessible();
  injected.refuses = true;
  await page.getByRole("button", { name: "Pay with Test wallet" }).click();
  await page.getByText("You did not sign. Nothing was paid.").waitFor();
  injected.refuses = false;
  await page.getByRole("button", { name: "Pay with Test wallet" }).click();
  await page.getByText("The payment has arrived and is credited.").waitFor();
  assert.equal((await evm.balanceOf(recipient.address)) - had, 2_500_000n);
  const { json } = await fixture.manage(fixture.account.token, "GET", "/api/v1/accounts/current");
  assert.equal(json.balance_usd, "2.5");
  await page
    .getByRole("table", { name: "Purchases of the account" })
    .getByText("settled")
    .waitFor();
  await visitor.shots("payments");
  visitor.clean();
  await visitor.close();
});

test(
  "a wallet that is only `window.ethereum` buys Custom access; a profile is written, tested live, " +
    "and serves calls",
  OPTIONS,
  async () => {
    const { account, manage, good, failing, chains, service } = fixture;
    const visitor = await newVisitor(browser, service.url, async (context) => {
      const wallet = { wallet: PAYER, chainId: chains.evm.chainId };
      await injectWallet(context, wallet, "window.ethereum");
    });
    const { page } = visitor;
    await signIn(page, account.token);
    await heading(page, "Account");
    await page.getByRole("link", { name: "Custom profiles" }).click();
    await page.getByText("The account has no Custom access").waitFor();
    await page.getByRole("link", { name: "Buy days" }).click();
    await page.getByRole("button", { name: "Custom access" }).click();
    await page.getByLabel(/^Days, /).fill("2");
    await page.getByRole("button", { name: "Continue with a wallet" }).click();
    await page.getByRole("button", { name: "Pay with Browser wallet" }).click();
    await page.getByText("The payment has arrived and is credited.").waitFor();
    await page.getByRole("link", { name: "Custom profiles" }).click();
    await page.getByText(/^Custom access ends/).waitFor();
    await page.getByLabel("Name in URLs").fill("mine");
    await page.getByRole("button", { name: "Write the profile" }).click();
    await heading(page, "mine");
    const editor = page.getByLabel("Document of the profile");
    const write = (url: string, name = "own"): Promise<void> =>
      editor.fill(JSON.stringify({ chains: { ethereum: { providers: [{ name, url }] } } }));
    await write(good.url, "no spaces here");
    await page.getByText("has characters that are not allowed").waitFor();
    await page.getByRole("button", { name: "Line 1" }).click();
    await write(failing.url);
    await page.getByRole("button", { name: "Test the providers" }).click();
    await page
      .getByRole("list", { name: "Providers that were tested" })
      .getByText("failed")
      .waitFor();
    await visitor.accessible();
    await write(`${good.url}/very-secret-path`);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "Revision 1" }).waitFor();
    await page
      .getByRole("table", { name: "Providers of the profile" })
      .getByText("verified")
      .waitFor();
    assert.ok(!(await page.content()).includes("very-secret-path"), "an address stays on the page");
    assert.ok(!(await editor.inputValue()).includes("very-secret-path"));
    const body = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice" };
    const served = await service.post(`/rpc/profile/mine/ethereum?key=${account.key}`, body);
    assert.deepEqual([served.status, served.headers.get("x-svc-access")], [200, "custom"]);
    assert.equal(good.asked.at(-1)?.path, "/very-secret-path");
    assert.equal((await manage(account.token, "GET", "/api/v1/profiles/mine")).json.revision, 1);
    visitor.clean();
    await visitor.close();
  },
);

test(
  "a profile is changed with completions, without its address being typed again; revisions show " +
    "what changed, and an earlier one returns",
  OPTIONS,
  async () => {
    const { account, manage, good, service } = fixture;
    const visitor = await newVisitor(browser, service.url);
    const { page } = visitor;
    await signIn(page, account.token);
    await heading(page, "Account");
    await page.goto("/dashboard/account/profiles/mine");
    const editor = page.getByLabel("Document of the profile");
    const offers = page.getByRole("listbox", { name: "Completions" });
    const saved = await editor.inputValue();
    const brace = saved.indexOf('"max_lag_blocks": 5') + '"max_lag_blocks": 5'.length;
    await placeCursor(editor, brace);
    await page.keyboard.type(', "na');
    assert.equal(await offers.count(), 0, "the chain has no such field");
    await editor.fill(saved);
    await placeCursor(editor, 1);
    await page.keyboard.press("Control+Space");
    await offers.getByRole("option", { name: /^name/ }).waitFor();
    await visitor.accessible();
    await visitor.shots("completion");
    await placeCursor(editor, 1);
    await page.keyboard.type('"na');
    await page.keyboard.press("Enter");
    await page.keyboard.type("my nodes");
    await placeCursor(editor, '{"name": "my nodes"'.length);
    await page.keyboard.type(",");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "Revision 2" }).waitFor();
    const revisions = page.getByRole("table", { name: "Revisions of the profile" });
    await revisions.getByRole("row").nth(2).click();
    const difference = page.getByRole("region", { name: "What changed from revision 1 to 2" });
    await difference.getByText('"name": "my nodes"').waitFor();
    assert.ok(!(await page.content()).includes("very-secret-path"));
    await visitor.accessible();
    await visitor.shots("profile");
    await page.getByRole("button", { name: "Restore revision 1" }).click();
    await page.getByText("Revision 1 stands in the editor.", { exact: false }).waitFor();
    assert.equal(await editor.inputValue(), saved);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "Revision 3" }).waitFor();
    const { json } = await manage(account.token, "GET", "/api/v1/profiles/mine");
    assert.deepEqual([json.revision, json.name], [3, null]);
    const body = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice" };
    await service.post(`/rpc/profile/mine/ethereum?key=${account.key}`, body);
    assert.equal(good.asked.at(-1)?.path, "/very-secret-path");
    visitor.clean();
    await visitor.close();
  },
);

/** Clicks leave the cursor somewhere: this says where. */
async function placeCursor(editor: Locator, offset: number): Promise<void> {
  await editor.focus();
  await editor.page().evaluate(`document.activeElement.setSelectionRange(${offset}, ${offset})`);
}

test(
  "a session whose token is revoked in mid-use ends, and the page says so",
  OPTIONS,
  async () => {
    const visitor = await newVisitor(browser, fixture.service.url);
    const { page } = visitor;
    const token = await grantToken();
    await signIn(page, token.secret);
    await heading(page, "Account");
    const { manage, account } = fixture;
    const gone = await manage(account.token, "DELETE", `/api/v1/connections/${token.connection}`);
    assert.equal(gone.status, 204);
    await page.getByRole("link", { name: "Tester" }).click();
    await heading(page, "Tester");
    await page.goBack();
    await page.getByText("Your session has ended.").waitFor();
    await page.getByText("Sign in to see this").first().waitFor();
    await visitor.accessible();
    visitor.clean();
    await visitor.close();
  },
);

/** A management token that was given to a program, by the pages and operations that do so. */
async function grantToken(): Promise<{ readonly secret: string; readonly connection: string }> {
  const { manage, account } = fixture;
  const { json: asked } = await manage("", "POST", "/api/v1/connections", { name: "a program" });
  const approved = await fetch(asked.approval_url, {
    method: "POST",
    body: new URLSearchParams({ decision: "approve", secret: account.token, days: "1" }),
  });
  assert.equal(approved.status, 200);
  const { json } = await manage(asked.token, "GET", `/api/v1/connections/${asked.id}`);
  return { secret: json.management_token, connection: asked.id };
}

test(
  "the tester sends a call, and a raw transaction only after it was confirmed",
  OPTIONS,
  async () => {
    const visitor = await newVisitor(browser, fixture.service.url);
    const { page } = visitor;
    await page.goto("/dashboard/tester?method=eth_gasPrice&profile=premium&provider=good");
    await heading(page, "Tester");
    await page.getByLabel("Key", { exact: false }).first().fill(fixture.account.key);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("region", { name: "Answer" }).getByText('"0x1"').waitFor();
    await page.getByRole("region", { name: "Decoded" }).getByText("gwei").waitFor();
    await page.getByText(/^The call is pinned to /).waitFor();
    await visitor.accessible();
    await visitor.shots("tester-answer");
    assert.ok(!page.url().includes("svc_ak_"), "a key in the address would stay in the history");
    // The method was not left yet: its fields are those of the method all the same, and the first
    // click counts. A new call takes the old answer away.
    fixture.good.script((_, reply) => reply.error(REVERTED));
    await page.getByLabel("Method").fill("eth_estimateGas");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Reverted: not the owner", { exact: true }).waitFor();
    assert.equal(await page.getByRole("region", { name: "Answer" }).getByText('"0x1"').count(), 0);
    await visitor.shots("tester-revert");
    fixture.good.script((_, reply) => reply.result('"0x1"'));
    const held = Promise.withResolvers<void>();
    await page.route("**/rpc/**", async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Reverted: not the owner", { exact: true }).waitFor({ state: "detached" });
    held.resolve();
    await page.getByRole("region", { name: "Decoded" }).waitFor();
    await page.unroute("**/rpc/**");
    const asked = fixture.good.asked.length;
    await page.getByLabel("Method").fill("eth_sendRawTransaction");
    await page.getByLabel("Signed transaction").fill("0x02f8");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("dialog", { name: "This changes the chain" }).waitFor();
    await visitor.accessible();
    await page.getByRole("button", { name: "Cancel" }).click();
    assert.equal(fixture.good.asked.length, asked);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("button", { name: "Send the transaction" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    assert.equal(fixture.good.asked.at(-1)?.method, "eth_sendRawTransaction");
    visitor.clean();
    await visitor.close();
  },
);

/** As a node answers a call of a contract that reverts with a reason. */
const REVERTED = JSON.stringify({
  code: 3,
  message: "execution reverted: not the owner",
  data:
    `0x08c379a0${"20".padStart(64, "0")}${"d".padStart(64, "0")}` +
    Buffer.from("not the owner").toString("hex").padEnd(64, "0"),
});

test("the palette goes anywhere by keys alone, and gives the focus back", OPTIONS, async () => {
  const visitor = await newVisitor(browser, fixture.service.url);
  const { page } = visitor;
  await signIn(page, OPERATOR_TOKEN);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await page.goto("/dashboard/tester?method=eth_gasPrice");
  // The page is drawn again for whom it turns out to be read by.
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await page.getByLabel("Method").focus();
  const search = page.getByRole("combobox", { name: "Search" });
  const found = page.getByRole("listbox", { name: "Found" }).getByRole("option");
  const focused = (): Promise<string> => page.evaluate("document.activeElement.id");
  await page.keyboard.press("Control+k");
  await search.waitFor();
  await found.getByText("failing").first().waitFor();
  await visitor.accessible();
  await visitor.shots("palette");
  // The focus stays in the dialog, or with the frame of the browser.
  for (let presses = 0; presses < 5; presses++) {
    await page.keyboard.press("Tab");
    const isOutside = `document.activeElement.closest("dialog, body > *:not(dialog)")?.id === "app" &&
      document.activeElement.closest("dialog") === null`;
    assert.equal(await page.evaluate(isOutside), false);
  }
  await page.keyboard.press("Escape");
  await search.waitFor({ state: "detached" });
  assert.equal(await focused(), "method");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("ethereum premium");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/dashboard/chain/premium/ethereum");
  await page.keyboard.press("Control+k");
  const body = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
  const path = `/rpc/k/${fixture.account.key}/load-balanced/ethereum`;
  const { headers } = await fixture.service.post(path, body);
  const id = headers.get("x-svc-request-id");
  await page.keyboard.insertText(`x-svc-request-id: ${id}`);
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/dashboard/requests?id=${id}`);
  await page.getByRole("table", { name: "Calls" }).getByText(HOSTILE).waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole("button", { name: "Search and commands" }).click();
  await search.fill("sign out");
  await page.keyboard.press("Enter");
  await page.getByText("You are signed out.").waitFor();
  await page.getByText("Sign in to see this").waitFor();
  visitor.clean();
  await visitor.close();
});

test("the operator compares providers, and sees what operators did", OPTIONS, async () => {
  const visitor = await newVisitor(browser, fixture.service.url);
  const { page } = visitor;
  await signIn(page, OPERATOR_TOKEN);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await page.goto("/dashboard/tester?method=eth_gasPrice");
  const compare = page.getByRole("button", { name: "Compare" });
  const table = page.getByRole("table", { name: "Providers compared" });
  await compare.click();
  await page.getByText("1 answered, 1 failed.").waitFor();
  fixture.failing.script((_, reply) => reply.result('"0x1"'));
  await compare.click();
  await page.getByText("2 answered alike.").waitFor();
  await table.getByText("same as most").first().waitFor();
  fixture.failing.script((_, reply) => reply.result('"0x2"'));
  await compare.click();
  await page.getByText("2 answered, each differently.").waitFor();
  await table.getByText("differs").click();
  await page.getByRole("region", { name: /^How .* differs from/ }).waitFor();
  fixture.failing.script((_, reply) => reply.body("<html>bad gateway</html>", 502));
  await visitor.accessible();
  await visitor.shots("compare");
  await page.getByRole("link", { name: "Cluster" }).click();
  const acts = page.getByRole("table", { name: "Operator actions" });
  await acts.getByText("Compared providers").first().waitFor();
  await page.getByRole("table", { name: "Nodes" }).getByText("this one").waitFor();
  const seen = page.getByRole("table", { name: "Providers by node" });
  await seen.getByText("Closed").first().waitFor();
  await visitor.accessible();
  await visitor.shots("cluster");
  await page.getByRole("link", { name: "Overview" }).click();
  await showsOneRange(visitor);
  await page.getByRole("link", { name: "Money" }).click();
  const { account, chains } = fixture;
  const cells = (table: string) => page.getByRole("table", { name: table, exact: true });
  await cells("Accounts").getByText(account.id).click();
  await cells(`Keys of ${account.id}`).getByText(HOSTILE).waitFor();
  await cells("Purchases").getByText("settled").first().waitFor();
  await cells("Rails and wallets").getByText(chains.settlement.address).waitFor();
  await page.getByText("The books were not checked yet.").waitFor();
  await page.getByRole("button", { name: "Check the books" }).click();
  await page.getByText("Every amount is accounted for.").waitFor();
  await page.getByText("The books balance.").waitFor();
  await page.getByText("The payment chains agree with the books.").waitFor();
  await visitor.accessible();
  await visitor.shots("money");
  await showsLastAudit(page);
  await page.goto("/dashboard/chain/premium/ethereum");
  await page.getByText(HOSTILE).first().waitFor();
  assert.equal(await page.evaluate("window.hacked"), undefined);
  visitor.clean();
  await visitor.close();
});

/** A range is chosen, drawn on a graph, kept from page to page, and opens its calls. */
async function showsOneRange({ page, accessible, shots }: Visitor): Promise<void> {
  const range = page.getByLabel("Time range");
  await range.selectOption("90d");
  await page.waitForURL(/range=90d/);
  await range.selectOption("15m");
  await page.getByText("in the last 15 minutes").waitFor();
  const graph = page.getByRole("img", { name: /^Calls a second/ }).locator(".u-over");
  const { x, y, width, height } = (await graph.boundingBox()) ?? assert.fail("no graph");
  await page.mouse.move(x + width / 2, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width - 2, y + height / 2, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/from=.*to=/);
  await accessible();
  await shots("range");
  await page.getByRole("link", { name: "Requests" }).click();
  await page.waitForURL(/requests\?from=/);
  await page.getByText(/were counted in these steps/).waitFor();
  await accessible();
  await shots("requests-past");
  await page.getByRole("button", { name: "Until now" }).click();
  await page.getByText("Live", { exact: true }).waitFor();
}

/** What the last audit found stays on the page, also what is wrong. */
async function showsLastAudit(page: Page): Promise<void> {
  await page.reload();
  await page.getByText(/The books balance\. Checked .* by the operator\./).waitFor();
  const last = "**/api/v1/operator/audit/last";
  const books = {
    ...{ state: "unbalanced", checked_at: new Date().toISOString(), run_by: "service" },
    ...{
      node: HOSTILE,
      problem_count: 102,
      problems: ["balance acc_1: is 2 USD, should be 1 USD"],
    },
  };
  const json = { state: "unbalanced", books, chains: null };
  await page.route(last, (route) => route.fulfill({ json }));
  await page.reload();
  await page.getByText("The books do not balance.").waitFor();
  await page.getByText("balance acc_1: is 2 USD, should be 1 USD").waitFor();
  await page.getByText("and 101 more").waitFor();
  await page.unroute(last);
}

test("a key is made with the keyboard alone", OPTIONS, async () => {
  const visitor = await newVisitor(browser, fixture.service.url);
  const { page } = visitor;
  await page.goto("/dashboard/sign-in");
  await heading(page, "Sign in");
  await page.getByLabel("Token").waitFor();
  await tabTo(page, "Token");
  await page.keyboard.type(fixture.account.token);
  await page.keyboard.press("Enter");
  await heading(page, "Account");
  await tabTo(page, "Keys");
  await page.keyboard.press("Enter");
  await heading(page, "Keys");
  await tabTo(page, "Create a key");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await tabTo(page, "Name");
  await page.keyboard.type("by keyboard");
  await page.keyboard.press("Enter");
  const key = await shownSecret(page);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal(await fixture.call(key), 200);
  visitor.clean();
  await visitor.close();
});

/** Presses Tab until what has this name has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  const focused = `(() => {
    const it = document.activeElement;
    return it?.labels?.[0]?.textContent ?? it?.getAttribute("aria-label") ?? it?.textContent;
  })()`;
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab");
    if (String(await page.evaluate(focused)).trim() === name) return;
  }
  assert.fail(`Tab never reaches ${name}`);
}

test(
  "names that are markup are shown as they are, on every page of the account",
  OPTIONS,
  async () => {
    const visitor: Visitor = await newVisitor(browser, fixture.service.url);
    const { page } = visitor;
    await signIn(page, fixture.account.token);
    await heading(page, "Account");
    for (const [path, title] of [
      ["/dashboard/account", "Account"],
      ["/dashboard/account/keys", "Keys"],
      ["/dashboard/account/profiles", "Custom profiles"],
      ["/dashboard/account/payments", "Payments"],
      ["/dashboard/account/tokens", "Management tokens"],
      ["/dashboard/tester", "Tester"],
    ] as const) {
      await page.goto(path);
      await heading(page, title);
      if (title === "Keys" || title === "Account") await page.getByText(HOSTILE).first().waitFor();
      assert.equal(await page.evaluate("window.hacked"), undefined);
      await visitor.accessible();
      await visitor.shots(title.toLowerCase().replaceAll(" ", "-"));
    }
    visitor.clean();
    await visitor.close();
  },
);
