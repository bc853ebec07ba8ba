// The console before a large service with hostile names, in a real browser: nothing in a name runs
// or breaks a page, on a phone neither. And what ends or changes while a page is open: sessions,
// tokens, the feed, the clock.
import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { until } from "../fakes/service-fixture.ts";
import {
  enterToken,
  heading,
  newVisitor,
  signIn,
  startChromium,
  type Visitor,
  WITHOUT_CHROMIUM,
} from "./console-browser.ts";
import { HOSTILE } from "./console-service.ts";
import {
  CUSTOM,
  type LargeService,
  LONG_ID,
  OPERATOR_TOKEN,
  startLargeService,
  UNSHOWN,
} from "./large-service.ts";

const OPTIONS = { skip: WITHOUT_CHROMIUM };
const SESSION_MS = 43_200_000;

let browser: Browser;
let fixture: LargeService;
/** Sessions that tests share: signing in is limited to ten tries a minute. */
const cookies = new Map<string, Awaited<ReturnType<BrowserContext["cookies"]>>>();

before(async () => {
  if (WITHOUT_CHROMIUM !== false) return;
  [browser, fixture] = await Promise.all([startChromium(), startLargeService()]);
});

after(async () => {
  await Promise.all([browser?.close(), fixture?.close()]);
});

const signOut = (page: Page) => page.getByRole("button", { name: "Sign out" });

/** A visitor who is signed in. */
async function visitAs(
  token: string,
  prepare: (context: BrowserContext) => Promise<void> = async () => {},
): Promise<Visitor> {
  const kept = cookies.get(token);
  const visitor = await newVisitor(browser, fixture.service.url, async (context) => {
    if (kept !== undefined) await context.addCookies(kept);
    await prepare(context);
  });
  if (kept !== undefined) return visitor;
  await signIn(visitor.page, token);
  await signOut(visitor.page).waitFor();
  cookies.set(token, await visitor.page.context().cookies());
  return visitor;
}

/** Elements that reach beyond the screen, and that nothing around them cuts off or scrolls. */
const OVERFLOWING = `[...document.body.querySelectorAll("*")].filter((element) => {
  const { right, width } = element.getBoundingClientRect();
  if (width === 0 || right <= innerWidth + 1) return false;
  for (let outer = element; outer !== null; outer = outer.parentElement)
    if (getComputedStyle(outer).overflowX !== "visible" && outer !== document.documentElement)
      return false;
  return true;
}).map((element) => element.outerHTML.slice(0, 200))`;

/**
 * Texts that may run from right to left and that stand in one line with other texts, which they
 * would turn around: nothing between the two isolates them.
 */
const TURNING = `(() => {
  const isApart = (element) => {
    const { display, unicodeBidi } = getComputedStyle(element);
    return display !== "inline" || /isolate|plaintext/.test(unicodeBidi);
  };
  const inlineText = (element) => [...element.childNodes].map((node) =>
    node.nodeType === Node.TEXT_NODE ? node.data
      : node.nodeType !== Node.ELEMENT_NODE || isApart(node) ? "" : inlineText(node)).join("");
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode;
    if (!/[\\u202a-\\u202e\\u2066-\\u2069]/.test(data)) continue;
    let box = parentElement;
    while (!isApart(box)) box = box.parentElement;
    if (inlineText(box).trim() !== data.trim()) found.push(box.outerHTML.slice(0, 300));
  }
  return found;
})()`;

async function isWhole(page: Page, path: string): Promise<void> {
  for (const width of [390, 1400]) {
    await page.setViewportSize({ width, height: 900 });
    // Graphs follow the width of the page a moment later. The page itself may evaluate no text.
    await until(`${path} at ${width} px does not scroll sideways`, async () =>
      Boolean(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")),
    );
    assert.deepEqual(await page.evaluate(OVERFLOWING), [], `${path} at ${width} px`);
  }
  assert.equal(await page.evaluate("window.hacked"), undefined, path);
  assert.deepEqual(await page.evaluate(TURNING), [], `${path}: texts that turn others around`);
  const shown = await page.evaluate("document.documentElement.outerHTML");
  assert.ok(!String(shown).includes(UNSHOWN), `${path} shows a header or a parameter`);
}

const rowsOf = (page: Page, table: string) =>
  page.getByRole("table", { name: table, exact: true }).getByRole("row");

for (const [path, shown] of [
  ["/dashboard", (page) => rowsOf(page, "Chains").nth(20)],
  ["/dashboard/chain/premium/chain-1", (page) => rowsOf(page, "Providers").nth(3)],
  ["/dashboard/chain/premium/chain-2", (page) => rowsOf(page, "Providers").nth(3)],
  ["/dashboard/chain/premium/chain-3", (page) => cordonOf(page)],
  ["/dashboard/provider/p3-0", (page) => rowsOf(page, "Where it is used").nth(1)],
  ["/dashboard/requests", (page) => rowsOf(page, "Calls").nth(2)],
  ["/dashboard/streams", (page) => rowsOf(page, "Open streams").getByText(LONG_ID).nth(1)],
  ["/dashboard/errors", (page) => rowsOf(page, "Errors hidden by failover").nth(1)],
  ["/dashboard/tester", (page) => page.getByRole("heading", { level: 1, name: "Tester" })],
  ["/dashboard/money", (page) => rowsOf(page, "Accounts").getByText(fixture.account.id)],
  ["/dashboard/cluster", (page) => rowsOf(page, "Operator actions").nth(1)],
] satisfies readonly (readonly [string, (page: Page) => Locator])[])
  test(`names of any kind run nowhere and break nothing at ${path}`, OPTIONS, async () => {
    const visitor = await visitAs(OPERATOR_TOKEN);
    await visitor.page.goto(path);
    await shown(visitor.page).waitFor();
    await isWhole(visitor.page, path);
    await visitor.shots(`large${path.replaceAll("/", "-")}`);
    visitor.clean();
    await visitor.close();
  });

test("a method of any name runs nowhere and breaks no page of its call", OPTIONS, async () => {
  const visitor = await visitAs(OPERATOR_TOKEN);
  const { page } = visitor;
  for (const [profile, call] of [
    ["", () => fixture.call(1, HOSTILE)],
    ["?profile=custom", () => fixture.callCustom(HOSTILE)],
  ] as const) {
    await page.goto(`/dashboard/requests${profile}`);
    await page.getByText("Live", { exact: true }).waitFor();
    await call();
    await rowsOf(page, "Calls").locator("code").getByText("<img src=x").first().click();
    await page.waitForURL("**/dashboard/requests/*");
    await page.getByRole("heading", { level: 1, name: "<img src=x" }).waitFor();
    await isWhole(page, `a request${profile}`);
  }
  await page.goto("/dashboard/errors");
  await rowsOf(page, "Errors hidden by failover").getByText("<img src=x").first().click();
  await page.getByRole("button", { name: "Copy the sample" }).waitFor();
  await isWhole(page, "an error");
  visitor.clean();
  await visitor.close();
});

test("names of any kind run nowhere where providers are compared", OPTIONS, async () => {
  const visitor = await visitAs(OPERATOR_TOKEN);
  const { page } = visitor;
  await page.goto("/dashboard/tester?chain=chain-1&method=eth_gasPrice");
  await page.getByRole("button", { name: "Compare" }).click();
  await rowsOf(page, "Providers compared").getByText("failed").first().waitFor();
  await isWhole(page, "a comparison");
  visitor.clean();
  await visitor.close();
});

// The answer of one node, told of twenty: what is looked at is the page.
test("twenty nodes stand in one table", OPTIONS, async () => {
  const visitor = await visitAs(OPERATOR_TOKEN);
  const { page } = visitor;
  await page.route("**/api/v1/operator/nodes", async (route) => {
    const response = await route.fetch();
    const { nodes, providers, ...rest } = await response.json();
    const names = Array.from({ length: 20 }, (_, n) => `node-${n + 1}.eu-west`);
    const copies = (list: object[], field: string) =>
      names.map((name, n) => ({ ...list[0], this: n === 0, [field]: name }));
    const seen = (provider: { readonly seen: object[] }) => copies(provider.seen, "node");
    const json = {
      ...{ ...rest, clustered: true, nodes: copies(nodes, "id") },
      providers: providers.map((each: { seen: object[] }) => ({ ...each, seen: seen(each) })),
    };
    await route.fulfill({ response, json });
  });
  await page.goto("/dashboard/cluster");
  await rowsOf(page, "Nodes").nth(20).waitFor();
  await isWhole(page, "a cluster of twenty");
  await visitor.accessible();
  await visitor.shots("twenty-nodes");
  visitor.clean();
  await visitor.close();
});

/** The reason of the cordon at `chain-3`, which is markup. */
const cordonOf = (page: Page) => page.getByText(`Cordoned by the operator: ${HOSTILE}`);

test("names of any kind run nowhere and break no page of an account", OPTIONS, async () => {
  const visitor = await visitAs(fixture.account.token);
  const { page } = visitor;
  for (const [path, title] of [
    ["/dashboard/account", "Account"],
    ["/dashboard/account/keys", "Keys"],
    ["/dashboard/account/profiles", "Custom profiles"],
    ["/dashboard/account/profiles/new-one", "new-one"],
    [`/dashboard/account/profiles/${CUSTOM}`, CUSTOM],
    ["/dashboard/account/payments", "Payments"],
    ["/dashboard/account/tokens", "Management tokens"],
  ] as const) {
    await page.goto(path);
    await heading(page, title);
    if (title === "Keys") await page.getByText(HOSTILE).nth(1).waitFor();
    await isWhole(page, path);
    await visitor.shots(`large${path.replaceAll("/", "-")}`);
  }
  await page.goto(`/dashboard/account/profiles/${CUSTOM}`);
  const providers = [{ name: "own", url: `${fixture.upstreamUrl}/1/fails` }];
  const editor = page.getByLabel("Document of the profile");
  await editor.fill(JSON.stringify({ name: HOSTILE, chains: { "chain-1": { providers } } }));
  await page.getByRole("button", { name: "Test the providers" }).click();
  const tested = page.getByRole("list", { name: "Providers that were tested" });
  await tested.getByText("failed").waitFor();
  await isWhole(page, "a test of providers");
  for (const path of ["/requests", "/streams", "/errors", "/money"]) {
    await page.goto(`/dashboard${path}`);
    await page.getByText("This page is for the operator").waitFor();
    await isWhole(page, path);
  }
  visitor.clean();
  await visitor.close();
});

test(
  "ten thousand keys are read once, found by a word, sorted, changed, and read page by page by " +
    "the operator",
  OPTIONS,
  async () => {
    const { manyKeys, manage } = fixture;
    const visitor = await visitAs(manyKeys.token);
    const { page } = visitor;
    let lists = 0;
    page.on("request", (request) => {
      if (request.method() === "GET" && request.url().includes("/api/v1/keys")) lists++;
    });
    await page.goto("/dashboard/account/keys");
    const table = page.getByRole("table", { name: "Keys of the account" });
    const first = table.getByRole("row").nth(1);
    await page.getByText("1–20 of 10,000").waitFor();
    assert.equal(await table.getByRole("row").count(), 21);
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("21–40 of 10,000").waitFor();
    for (const name of ["key number 0", "key number 9999"]) {
      await table.getByRole("button", { name: "Name" }).click();
      await first.getByText(name, { exact: true }).waitFor();
    }
    const filter = page.getByLabel("Filter: Keys of the account");
    await filter.fill("9876");
    await table.getByText("key number 9876").waitFor();
    assert.equal(await table.getByRole("row").count(), 2);
    await isWhole(page, "ten thousand keys");
    await page.getByRole("button", { name: "Change key number 9876" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(lists, 10, "each key is read once, and a cancelled dialog reads nothing");
    await page.getByRole("button", { name: "Delete key number 9876" }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("No row matches the filter").waitFor();
    await filter.fill("");
    await page.getByText("1–20 of 9,999").waitFor();
    const { json } = await manage(manyKeys.token, "GET", "/api/v1/accounts/current");
    assert.equal(json.keys, 9_999);
    visitor.clean();
    await visitor.close();
    await operatorReadsKeys(manyKeys.accountId);
  },
);

/** Keys of an account on the operator's page: the next twenty stand on the next page. */
async function operatorReadsKeys(accountId: string): Promise<void> {
  const visitor = await visitAs(OPERATOR_TOKEN);
  const { page } = visitor;
  await page.goto(`/dashboard/money?account=${accountId}`);
  await page.getByRole("table", { name: "Accounts", exact: true }).getByText(accountId).click();
  const keys = page.getByRole("table", { name: `Keys of ${accountId}` });
  const first = keys.getByRole("row").nth(1);
  await keys.getByRole("row").nth(20).waitFor();
  const [name] = /key number \d+/.exec(String(await first.textContent())) ?? [];
  assert.ok(name !== undefined);
  const before = new RegExp(`${name}\\b`);
  const pages = page.getByRole("navigation", { name: `Pages of keys of ${accountId}` });
  await pages.getByRole("button", { name: "Next" }).click();
  await first.filter({ hasNotText: before }).waitFor();
  assert.equal(await keys.getByRole("row").count(), 21);
  await pages.getByRole("button", { name: "Back" }).click();
  await first.filter({ hasText: before }).waitFor();
  await isWhole(page, "keys of an account");
  visitor.clean();
  await visitor.close();
}

test(
  "a key gets another name; an approved program reads the account until it is revoked",
  OPTIONS,
  async () => {
    const visitor = await visitAs(fixture.account.token);
    const { page } = visitor;
    const { account, manage } = fixture;
    await page.goto("/dashboard/account/keys");
    await page.getByRole("button", { name: /^Change W+$/ }).click();
    await page.getByLabel("Name", { exact: true }).fill("of the indexer");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The key was changed.").waitFor();
    const { json } = await manage(account.token, "GET", "/api/v1/keys");
    const names = json.keys.map(({ name }: { readonly name: string }) => name);
    assert.ok(names.includes("of the indexer"));
    await page.getByRole("link", { name: "Management tokens" }).click();
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("Program that gets it").fill(HOSTILE);
    await page.getByRole("button", { name: "Continue" }).click();
    const opened = page.context().waitForEvent("page");
    await page.getByRole("link", { name: "Open the approval page" }).click();
    const approval = await opened;
    await approval.getByLabel("Your management token").fill(account.token);
    await approval.getByLabel("Only read, change nothing").check();
    await approval.getByRole("button", { name: "Approve" }).click();
    await approval.getByRole("heading", { name: "Approved" }).waitFor();
    assert.equal(await approval.evaluate("window.hacked"), undefined);
    await approval.close();
    const secret = await page
      .getByRole("dialog")
      .getByText(/^svc_mt_\w+$/)
      .textContent();
    const mayRead = async () =>
      (await manage(String(secret), "GET", "/api/v1/accounts/current")).status;
    assert.equal(await mayRead(), 200);
    assert.equal((await manage(String(secret), "POST", "/api/v1/keys", {})).status, 403);
    await page.getByRole("button", { name: "I have saved it" }).click();
    await page.getByRole("button", { name: /^Revoke/ }).click();
    await page.getByText("The token was revoked.").waitFor();
    assert.equal(await mayRead(), 401);
    visitor.clean();
    await visitor.close();
  },
);

test("a claim link hands the keys to another account, once", OPTIONS, async () => {
  const { manage } = fixture;
  const made = (await manage("", "POST", "/api/v1/keys", { name: HOSTILE })).json;
  const other = (await manage("", "POST", "/api/v1/keys", { name: "theirs" })).json;
  const visitor = await visitAs(made.management_token);
  const { page } = visitor;
  await page.goto("/dashboard/account/tokens");
  await page.getByRole("button", { name: "Make a claim link" }).click();
  const link = await page.getByText(/^http.*claim/).textContent();
  await page.goto(String(link));
  assert.equal(await page.evaluate("window.hacked"), undefined);
  await page.getByLabel("Management token or key of your account").fill(other.management_token);
  await page.getByRole("button", { name: "Add to my account" }).click();
  await page.getByRole("heading", { name: /yours/ }).waitFor();
  const { json } = await manage(other.management_token, "GET", "/api/v1/keys");
  assert.deepEqual(
    json.keys.map(({ name }: { readonly name: string }) => name).sort(),
    [HOSTILE, "theirs"].sort(),
  );
  assert.equal((await fetch(String(link))).status, 410);
  visitor.clean();
  await visitor.close();
});

test("signing out by click takes what was shown off the page", OPTIONS, async () => {
  const visitor = await newVisitor(browser, fixture.service.url);
  const { page } = visitor;
  await page.goto("/dashboard/errors?errors.find=chain-3");
  await page.getByRole("link", { name: "Sign in" }).last().click();
  await enterToken(page, OPERATOR_TOKEN);
  await page.waitForURL("**/dashboard/errors?errors.find=chain-3");
  await page.getByRole("table", { name: "Errors hidden by failover" }).waitFor();
  await signOut(page).click();
  await page.getByText("You are signed out.").waitFor();
  await page.getByText("Sign in to see this").waitFor();
  assert.equal(await page.getByRole("table").count(), 0);
  assert.equal(await page.getByText("Your session has ended.").count(), 0);
  visitor.clean();
  await visitor.close();
});

test(
  "a token that is revoked while its page is open ends what the page shows",
  OPTIONS,
  async () => {
    const { manage } = fixture;
    const made = (await manage("", "POST", "/api/v1/keys", { name: "short" })).json;
    const asked = (await manage("", "POST", "/api/v1/connections", { name: "a program" })).json;
    const approved = await fetch(asked.approval_url, {
      method: "POST",
      body: new URLSearchParams({ decision: "approve", secret: made.management_token, days: "1" }),
    });
    assert.equal(approved.status, 200);
    const path = `/api/v1/connections/${asked.id}`;
    const granted = (await manage(asked.token, "GET", path)).json.management_token;
    const visitor = await newVisitor(browser, fixture.service.url);
    const { page } = visitor;
    await page.goto("/dashboard/sign-in?next=%2Faccount%2Fkeys");
    await enterToken(page, granted);
    const table = page.getByRole("table", { name: "Keys of the account" });
    await table.getByText("short").waitFor();
    assert.equal((await manage(made.management_token, "DELETE", path)).status, 204);
    await lookAgain(page);
    await page.getByText("Your session has ended.").waitFor();
    await page.getByText("Sign in to see this").waitFor();
    assert.equal(await table.count(), 0);
    visitor.clean();
    await visitor.close();
  },
);

/** Pages ask again when they are seen again. */
async function lookAgain(page: Page): Promise<void> {
  await page.evaluate('document.dispatchEvent(new Event("visibilitychange"))');
}

test("a clock of the browser that is hours off is told, and ages stay right", OPTIONS, async () => {
  const offMs = 5 * 3_600_000;
  const visitor = await visitAs(OPERATOR_TOKEN, async (context) => {
    await context.addInitScript(`{
      const Real = Date;
      globalThis.Date = class extends Real {
        constructor(...given) { given.length === 0 ? super(Real.now() - ${offMs}) : super(...given); }
        static now() { return Real.now() - ${offMs}; }
      };
    }`);
  });
  const { page } = visitor;
  await fixture.call(3);
  await page.goto("/dashboard/requests");
  await page.getByText(/^The clock of this computer is (5 h 0 min|4 h 59 min) behind/).waitFor();
  const ended = rowsOf(page, "Calls").nth(1).getByRole("time");
  assert.match(String(await ended.textContent()), /^\d\d:\d\d:\d\d\.\d{3}$/);
  const at = Date.parse(String(await ended.getAttribute("datetime")));
  assert.ok(Math.abs(Date.now() - at) < offMs / 2, "by the clock of the service");
  await visitor.accessible();
  await page.goto("/dashboard/cluster");
  const age = rowsOf(page, "Operator actions").nth(1).getByRole("time").first();
  await age.waitFor();
  assert.match(String(await age.textContent()), /^(just now|\d+ (s|min) ago)$/);
  visitor.clean();
  await visitor.close();
});

test("a feed that is cut in the middle says so, comes back, and goes on", OPTIONS, async (t) => {
  const line = await cuttableLine(fixture.service.port);
  t.after(line.close);
  const visitor = await newVisitor(browser, line.url, async (context) => {
    const kept = cookies.get(OPERATOR_TOKEN) ?? [];
    await context.addCookies(kept);
  });
  const { page } = visitor;
  await page.goto(`${line.url}/dashboard/requests?method=eth_chainId`);
  await page.getByText("Live", { exact: true }).waitFor();
  line.cut(true);
  await page.getByText(/^Cut off, connecting in/).waitFor();
  line.cut(false);
  await page.getByText("Live", { exact: true }).waitFor();
  await fixture.call(4, "eth_syncing");
  await page.goto(`${line.url}/dashboard/requests?method=eth_syncing`);
  await page.getByRole("table", { name: "Calls" }).getByText("eth_syncing").waitFor();
  await visitor.close();
});

interface CuttableLine {
  readonly url: string;
  /** True = every connection ends, and none is taken. */
  cut(isCut: boolean): void;
  close(): Promise<void>;
}

/** Between the browser and the service. */
async function cuttableLine(port: number): Promise<CuttableLine> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((socket) => {
    if (isCut) return void socket.destroy();
    const far = connect(port, "127.0.0.1");
    for (const end of [socket, far]) {
      sockets.add(end);
      end.on("error", () => {});
      end.on("close", () => {
        sockets.delete(end);
        socket.destroy();
        far.destroy();
      });
    }
    socket.pipe(far).pipe(socket);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  const end = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${address.port}`,
    cut(next) {
      isCut = next;
      if (next) end();
    },
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        end();
      }),
  };
}

test(
  "a session that ends after twelve hours while a page is open says so, and signing in leads back",
  OPTIONS,
  async () => {
    const { manage } = fixture;
    const made = (await manage("", "POST", "/api/v1/keys", { name: "short" })).json;
    const visitor = await newVisitor(browser, fixture.service.url);
    const { page } = visitor;
    await page.goto("/dashboard/account/keys?keys.find=short");
    await page.getByRole("link", { name: "Sign in" }).last().click();
    await enterToken(page, made.management_token);
    await page.waitForURL("**/dashboard/account/keys?keys.find=short");
    const table = page.getByRole("table", { name: "Keys of the account" });
    await table.getByText("short").waitFor();
    fixture.later(SESSION_MS + 1);
    await lookAgain(page);
    await page.getByText("Your session has ended.").waitFor();
    await page.getByText("Sign in to see this").waitFor();
    assert.equal(await table.count(), 0);
    await visitor.accessible();
    await page.getByRole("link", { name: "Sign in again" }).click();
    await enterToken(page, made.management_token);
    await page.waitForURL("**/dashboard/account/keys?keys.find=short");
    await table.getByText("short").waitFor();
    assert.equal(await page.getByText("Your session has ended.").count(), 0);
    visitor.clean();
    await visitor.close();
  },
);

// The last one: it uses up what an address may try.
test("who tries too often is told when the next try counts", OPTIONS, async () => {
  const visitor = await newVisitor(browser, fixture.service.url);
  const { page } = visitor;
  await page.goto("/dashboard/sign-in");
  const path = "/api/v1/console/session";
  const tryOnce = () =>
    fixture.service.post(path, { token: "svc_mt_wrong" }, { "sec-fetch-site": "same-origin" });
  while ((await tryOnce()).status !== 429);
  // Takes each further try that is due, however long the page needs for its own.
  let isOver = false;
  const others = (async () => {
    for (; !isOver; await sleep(20)) await tryOnce();
  })();
  const refused = page.getByText("too many tries to sign in came from this address");
  for (let more = 0; more < 10 && (await refused.count()) === 0; more++) {
    await enterToken(page, `svc_mt_wrong${more}`);
    await page.getByRole("alert").waitFor();
    await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  }
  isOver = true;
  await others;
  await page.getByText(/The next try counts (in \d+ s|now)\./).waitFor();
  await visitor.accessible();
  await visitor.shots("sign-in-limited");
  visitor.clean();
  await visitor.close();
});
