// Usage on the dashboard, in a real browser before a real hosted service: who sees it, where the
// token stays, and that the figures are the endpoint's.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { type Browser, type Page, startBrowser, WITHOUT_BROWSER } from "../fakes/browser.ts";
import { type HostedFixture, hostedFixture, OPERATOR_TOKEN } from "../fakes/hosted-fixture.ts";
import { configText, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const OPTIONS = { skip: WITHOUT_BROWSER };
const WRONG = "not-the-token-of-the-operator-0123456789";
const MARKUP = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;
const ENDPOINT = "/api/v1/operator/usage";
const LOCKED = `!document.getElementById("unlock").hidden && !document.getElementById("usage").hidden`;
const SHOWN = `!document.getElementById("usage-panel").hidden`;

interface Used {
  readonly calls: number;
  readonly cu: number;
  readonly usd: string;
}

let browser: Browser;

before(async () => {
  if (WITHOUT_BROWSER === false) browser = await startBrowser();
});

after(async () => {
  if (WITHOUT_BROWSER === false) await browser.close();
});

const textOf = (page: Page, selector: string): Promise<string> =>
  page.run(`document.querySelector(${JSON.stringify(selector)}).innerText`);
const click = (page: Page, selector: string): Promise<void> =>
  page.run(`document.querySelector(${JSON.stringify(selector)}).click()`);
const stored = (page: Page): Promise<string> =>
  page.run(`JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])`);
const asks = (page: Page) => page.sent.filter((it) => it.url.includes(ENDPOINT));

/** Cells of the rows of the table with this title. */
function rowsOf(page: Page, title: string): Promise<string[][]> {
  const sections =
    `[...document.querySelectorAll(".pair section")].find((it) => ` +
    `it.querySelector("h3").textContent === ${JSON.stringify(title)})`;
  return page.run(
    `[...${sections}.querySelectorAll("tbody tr")].map((row) => [...row.children].map((it) => ` +
      "it.textContent))",
  );
}

const totalsOf = (page: Page): Promise<string[]> =>
  page.run(`[...document.querySelectorAll(".totals b")].map((it) => it.textContent)`);

async function enter(page: Page, token: string): Promise<void> {
  await page.until(LOCKED);
  await page.run(`document.getElementById("token").focus()`);
  await page.type(token);
  await click(page, "#unlock button");
}

async function usageOf({ manage }: HostedFixture, query = "") {
  return (await manage(OPERATOR_TOKEN, "GET", `${ENDPOINT}${query}`)).json;
}

/**
 * A fixture on which two accounts have called, and all of it is written down: three keys, one of
 * them with markup for a name.
 */
async function usedFixture(t: TestContext) {
  const fixture = await hostedFixture(t, { flush_interval_ms: 1_000 });
  const anonymous = await fixture.anonymousKey();
  const account = await fixture.account();
  const named = (await fixture.manage(account.token, "POST", "/api/v1/keys", { name: MARKUP })).json
    .key;
  for (const method of ["eth_gasPrice", "eth_getLogs", "eth_getLogs"])
    assert.equal((await fixture.call(anonymous, method)).status, 200);
  for (const [key, method] of [
    [account.key, "eth_gasPrice"],
    [named, "eth_getBalance"],
  ]) {
    const { status, text } = await fixture.call(key, method);
    assert.equal(status, 200, text);
  }
  await until(
    "what was used is written down",
    async () => (await usageOf(fixture)).totals.calls === 5,
  );
  return { fixture, account };
}

test(
  "locked, the page shows nothing and asks once, without a token; a wrong one is refused in " +
    "words and forgotten",
  OPTIONS,
  async (t) => {
    const { fixture } = await usedFixture(t);
    const page = await browser.open(`${fixture.service.url}/dashboard`);
    await page.until(LOCKED);
    assert.equal(await textOf(page, "#usage-title"), "Usage is for the operator");
    assert.equal(await textOf(page, "#usage-panel"), "");
    await enter(page, WRONG);
    await page.until(
      `document.getElementById("usage-note").textContent.startsWith("The token was refused and ` +
        `is forgotten")`,
    );
    assert.ok(await page.run(LOCKED));
    assert.equal(
      await page.run(
        `document.getElementById("token").value + ` +
          `document.documentElement.outerHTML.includes(${JSON.stringify(WRONG)})`,
      ),
      "false",
    );
    assert.doesNotMatch(await stored(page), /not-the-token/);
    assert.deepEqual(
      asks(page).map((it) => it.headers["authorization"]),
      [undefined, `Bearer ${WRONG}`],
    );
    await enter(page, "тайна");
    await page.until(
      `document.getElementById("usage-note").textContent.startsWith("The token was refused")`,
    );
    assert.equal(asks(page).length, 2);
    assert.deepEqual(
      page.said.map((it) => it.text).filter((it) => !it.includes("401 (Unauthorized)")),
      [],
    );
  },
);

test(
  "unlocked, the figures are those of the endpoint, amounts to the letter, and the token goes " +
    "to its own instance only",
  OPTIONS,
  async (t) => {
    const { fixture } = await usedFixture(t);
    const page = await browser.open(`${fixture.service.url}/dashboard`);
    await enter(page, OPERATOR_TOKEN);
    await page.until(SHOWN);
    const told = await usageOf(fixture);
    assert.deepEqual(await totalsOf(page), [
      String(told.totals.calls),
      String(told.totals.cu),
      told.totals.usd,
    ]);
    const used = (it: Used) => [String(it.calls), String(it.cu), it.usd];
    assert.deepEqual(
      await rowsOf(page, "By method"),
      told.by_method.map((it: Used & { method: string }) => [it.method, ...used(it)]),
    );
    const keys = (await rowsOf(page, "By key")).map(([key, , ...rest]) => [key, ...rest]);
    assert.deepEqual(
      keys,
      told.by_key.map((it: Used & { name: string; key_prefix: string }) => [
        `${it.name || "(no name)"}${it.key_prefix}…`,
        ...used(it),
      ]),
    );
    assert.equal(told.by_key.length, 3);
    const titles: string[] = await page.run(
      `[...document.querySelectorAll(".bars i")].map((it) => it.title)`,
    );
    assert.equal(titles.length, 24);
    assert.equal(
      titles.reduce((sum, it) => sum + Number(/: (\d+) call/.exec(it)?.[1]), 0),
      5,
    );
    for (const [at, bars] of [
      [1, 168],
      [2, 120],
    ]) {
      await click(page, `#hours button:nth-child(${Number(at) + 1})`);
      await page.until(`document.querySelectorAll(".bars i").length === ${bars}`);
      assert.equal((await totalsOf(page))[0], "5");
    }
    assert.ok(
      asks(page).some((it) => it.url.endsWith("hours=168")) &&
        asks(page).some((it) => it.url.endsWith("hours=720")),
    );
    const carried = page.sent.filter((it) => JSON.stringify(it).includes(OPERATOR_TOKEN));
    for (const { url } of carried)
      assert.ok(url.startsWith(`${fixture.service.url}${ENDPOINT}?hours=`), url);
    assert.equal(
      await page.run(
        `document.documentElement.outerHTML.includes(${JSON.stringify(OPERATOR_TOKEN)})`,
      ),
      false,
    );
    assert.ok(!fixture.service.log().includes(OPERATOR_TOKEN));
  },
);

test("a key's name never becomes markup", OPTIONS, async (t) => {
  const { fixture } = await usedFixture(t);
  const page = await browser.open(`${fixture.service.url}/dashboard`);
  await enter(page, OPERATOR_TOKEN);
  await page.until(SHOWN);
  assert.ok((await rowsOf(page, "By key")).some(([key]) => key?.startsWith(MARKUP)));
  assert.equal(
    await page.run(
      `window.hacked === undefined && document.querySelectorAll("img, #usage script").length`,
    ),
    0,
  );
});

test(
  "a click on an account shows that one alone, and its chip shows all again",
  OPTIONS,
  async (t) => {
    const { fixture, account } = await usedFixture(t);
    const page = await browser.open(`${fixture.service.url}/dashboard`);
    await enter(page, OPERATOR_TOKEN);
    await page.until(SHOWN);
    await click(page, `.account button[title="${account.accountId}"]`);
    await page.until(
      `document.querySelectorAll(".account button").length === 2 && ` +
        `document.querySelectorAll(".dim").length === 0`,
    );
    const told = await usageOf(fixture, `?account=${account.accountId}`);
    assert.deepEqual(
      [(await totalsOf(page))[0], (await totalsOf(page))[2]],
      ["2", told.totals.usd],
    );
    assert.match(
      await page.run(`document.getElementById("filter").title`),
      new RegExp(account.accountId),
    );
    await click(page, "#filter");
    await page.until(`document.querySelectorAll(".account button").length === 3`);
    assert.equal(await page.run(`document.getElementById("filter").hidden`), true);
  },
);

test(
  "the token outlives a reload of its tab, and nothing else; locking forgets it and all that " +
    "was shown",
  OPTIONS,
  async (t) => {
    const { fixture } = await usedFixture(t);
    const page = await browser.open(`${fixture.service.url}/dashboard`);
    await enter(page, OPERATOR_TOKEN);
    await page.until(SHOWN);
    assert.deepEqual(JSON.parse(await stored(page)), [
      { "svc-operator-token": OPERATOR_TOKEN },
      {},
      "",
    ]);
    await page.run(`window.old = true`);
    await page.send("Page.reload");
    await page.until(
      `window.old === undefined && document.getElementById("usage-panel") !== null && ${SHOWN}`,
    );
    const other = await browser.open(`${fixture.service.url}/dashboard`);
    await other.until(LOCKED);
    await click(page, "#lock");
    await page.until(LOCKED);
    assert.deepEqual(JSON.parse(await stored(page)), [{}, {}, ""]);
    assert.equal(
      await page.run(`document.getElementById("usage").textContent.includes("svc_ak_")`),
      false,
    );
    assert.equal(await page.run(`document.getElementById("usage-panel").childElementCount`), 0);
  },
);

test(
  "an answer that stays away is told by the age of what is shown; a token that is refused " +
    "later is forgotten, and the figures with it",
  OPTIONS,
  async (t) => {
    const { fixture } = await usedFixture(t);
    const page = await browser.open(`${fixture.service.url}/dashboard`);
    await enter(page, OPERATOR_TOKEN);
    await page.until(SHOWN);
    const poll = `document.dispatchEvent(new Event("visibilitychange"))`;
    const answering = (how: string) =>
      page.run(
        `window.fetch = (url, options) => String(url).includes("${ENDPOINT}") ? ${how} : ` +
          "window.real(url, options)",
      );
    await page.run(`window.real = window.fetch; window.now = Date.now`);
    await answering(`Promise.reject(new TypeError("nobody there"))`);
    await page.run(`Date.now = () => window.now() + 30_000; ${poll}`);
    await page.until(
      `/^last update 3\\d s ago$/.test(document.getElementById("usage-age").textContent)`,
    );
    assert.equal((await totalsOf(page))[0], "5");
    await answering("window.real(url, options)");
    await page.run(poll);
    await page.until(`document.getElementById("usage-age").textContent === ""`);
    await answering(`Promise.resolve(new Response("{}", { status: 401 }))`);
    await page.run(poll);
    await page.until(LOCKED);
    assert.match(await textOf(page, "#usage-note"), /^The token was refused and is forgotten/);
    assert.deepEqual(JSON.parse(await stored(page)), [{}, {}, ""]);
    assert.equal(await page.run(`document.getElementById("usage-panel").childElementCount`), 0);
  },
);

test("where nothing was used the page says so", OPTIONS, async (t) => {
  const fixture = await hostedFixture(t);
  const page = await browser.open(`${fixture.service.url}/dashboard`);
  await enter(page, OPERATOR_TOKEN);
  await page.until(
    `document.getElementById("usage-note").innerText === "Nothing was used in this time."`,
  );
  assert.equal(await page.run(SHOWN), false);
});

test(
  "an instance that is not hosted shows no usage, and is asked for it once",
  OPTIONS,
  async (t) => {
    const upstream = await scriptedUpstream();
    const service = await startService(configText([{ id: "a", url: upstream.url }]));
    t.after(async () => {
      await service.close();
      await upstream.close();
    });
    const page = await browser.open(`${service.url}/dashboard`);
    await page.until(`document.querySelectorAll("details").length === 1`);
    await until("the answer", async () => page.said.some((it) => it.text.includes("404")));
    await page.run(`document.dispatchEvent(new Event("visibilitychange"))`);
    assert.equal(
      await page.run(
        `document.getElementById("usage").hidden && document.getElementById("usage-words").hidden`,
      ),
      true,
    );
    assert.equal(asks(page).length, 1);
  },
);
