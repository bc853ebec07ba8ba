// The claim page in a real browser: from an agent's link to a person's account, on a whole service;
// and what a link shows when it has ended or is hostile.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { audit } from "../../src/hosted/audit/audit.ts";
import { newSecret } from "../../src/secrets/secret.ts";
import { type Browser, type Page, startBrowser, WITHOUT_BROWSER } from "../fakes/browser.ts";
import { failingStore, TARIFF } from "../fakes/hosted.ts";
import { hostedFixture } from "../fakes/hosted-fixture.ts";
import { servePeople } from "../fakes/people.ts";
import { until } from "../fakes/service-fixture.ts";

const OPTIONS = { skip: WITHOUT_BROWSER };
const MARKUP = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'"</dd>`;

let browser: Browser;

before(async () => {
  if (WITHOUT_BROWSER === false) browser = await startBrowser();
});

after(async () => {
  if (WITHOUT_BROWSER === false) await browser.close();
});

const heading = (page: Page, text: string) =>
  page.until(`document.querySelector("h1")?.textContent === ${JSON.stringify(text)}`);
const textOf = (page: Page): Promise<string> => page.run("document.body.innerText");

async function submit(page: Page, secret: string): Promise<void> {
  await page.run(`document.getElementById("secret").focus()`);
  await page.type(secret);
  await page.run(
    `[...document.querySelectorAll("button")].find((it) => it.textContent === "Add to my ` +
      `account").click()`,
  );
}

test(
  "a person claims an agent's key into their account: calls go on, and the balance is the account's",
  OPTIONS,
  async (t) => {
    const fixture = await hostedFixture(t, { flush_interval_ms: 1_000 });
    const [key, account] = [await fixture.anonymousKey(), await fixture.account()];
    assert.equal((await fixture.call(key)).status, 200);
    const link = await fixture.manage("", "POST", `/api/v1/agent/keys/${key}/claim-link`);
    assert.equal(link.status, 200);
    assert.deepEqual([link.json.key_prefix, link.json.expires_in], [key.slice(0, 12), 600]);
    const page = await browser.open(link.json.claim_url);
    await heading(page, "Claim this key");
    assert.match(await textOf(page), new RegExp(`${key.slice(0, 12)}…`));
    assert.match(await textOf(page), /\$0\.0\d+ \([\d,]+ CU\)/);
    await submit(page, "mistyped");
    await page.until(
      `document.querySelector(".wrong")?.textContent.includes("cut off or mistyped")`,
    );
    assert.equal(await page.run(`document.getElementById("secret").value`), "");
    await submit(page, account.token);
    await heading(page, "The key is yours");
    assert.match(await textOf(page), new RegExp(account.accountId));
    assert.ok(
      !(await page.run("document.documentElement.outerHTML")).includes(account.token),
      "the secret is not on the page",
    );
    const { json } = await fixture.manage(account.token, "GET", "/api/v1/accounts/current");
    assert.deepEqual([json.keys, json.managed_access], [2, "premium"]);
    assert.ok(json.balance_cu > 4_900 && json.balance_cu <= 5_000, `${json.balance_cu} CU`);
    assert.equal(
      (await fixture.manage(key, "GET", "/api/v1/keys/current")).json.account_id,
      account.accountId,
    );
    assert.equal(
      (await fixture.call(account.key)).headers.get("x-svc-access"),
      "premium",
      "the account's first key spends it too",
    );
    assert.equal((await fixture.call(key)).status, 200);
    await until("all that a node held has followed", async () => {
      const after = (await fixture.manage(account.token, "GET", "/api/v1/accounts/current")).json;
      return after.balance_cu === 5_000 - 3 * 3;
    });
    assert.equal(
      (
        await fixture.manage(
          "operator-of-the-test-fixture-0123456789",
          "GET",
          "/api/v1/operator/audit",
        )
      ).json.ok,
      true,
    );
    const again = await browser.open(link.json.claim_url);
    await heading(again, "This link has been used");
    assert.equal(
      (await fixture.manage("", "POST", `/api/v1/agent/keys/${key}/claim-link`)).json.error.code,
      "already_claimed",
    );
    for (const it of page.sent) {
      assert.ok(it.url.startsWith(fixture.service.url), `the page asked ${it.url}`);
      assert.equal(it.headers["Referer"], undefined);
    }
  },
);

test(
  "a person without an account gets one, with its management token shown once",
  OPTIONS,
  async (t) => {
    const fixture = await hostedFixture(t);
    const key = await fixture.anonymousKey();
    const { json } = await fixture.manage(key, "POST", "/api/v1/accounts/current/claim-link");
    const page = await browser.open(json.claim_url);
    await heading(page, "Claim this key");
    await page.run(
      `[...document.querySelectorAll("button")].find((it) => it.textContent === "Create an ` +
        `account").click()`,
    );
    await heading(page, "The key is yours");
    const token = await page.run(`document.querySelector(".secret").textContent`);
    const account = await fixture.manage(token, "GET", "/api/v1/accounts/current");
    assert.deepEqual([account.status, account.json.balance_cu, account.json.keys], [200, 5_000, 1]);
    assert.equal((await fixture.call(key)).status, 200);
    const again = await browser.open(json.claim_url);
    await heading(again, "This link has been used");
    assert.ok(!(await textOf(again)).includes("svc_mt_"));
  },
);

test(
  "names are shown as they are and are never markup, and the page can load and run nothing",
  OPTIONS,
  async (t) => {
    const people = await servePeople(t);
    const key = await people.anonymousKey(MARKUP);
    const page = await browser.open(
      `${people.url}/claim/${await people.claimToken(key.accountId)}`,
    );
    assert.equal(await page.run(`document.querySelector("bdi").textContent`), MARKUP);
    assert.equal(await page.run("window.hacked"), undefined);
    assert.equal(await page.run(`document.querySelectorAll("img, script").length`), 0);
    assert.deepEqual(page.said, []);
    await page.run(
      `{ const it = document.createElement("script"); it.textContent = "window.hacked = 2"; ` +
        "document.body.append(it); }",
    );
    assert.equal(await page.run("window.hacked"), undefined, "the policy stops a script");
    assert.match(
      await page.run(`getComputedStyle(document.querySelector("main")).maxWidth`),
      /560px/,
      "the style is let through",
    );
  },
);

test(
  "a link that has expired, was replaced, used or never made says so calmly, and changes nothing",
  OPTIONS,
  async (t) => {
    const people = await servePeople(t);
    const key = await people.anonymousKey();
    const old = await people.claimToken(key.accountId);
    const live = await people.claimToken(key.accountId);
    const cases: readonly (readonly [string, string, number])[] = [
      [old, "A newer link has replaced this one", 410],
      [newSecret("claim"), "This link leads nowhere", 404],
      ["../../etc", "This link leads nowhere", 404],
      ["%3Cscript%3E", "This link leads nowhere", 404],
    ];
    for (const [token, title, status] of cases) {
      assert.equal(
        (await fetch(`${people.url}/claim/${encodeURIComponent(token)}`)).status,
        status,
      );
      await heading(await browser.open(`${people.url}/claim/${encodeURIComponent(token)}`), title);
    }
    const page = await browser.open(`${people.url}/claim/${live}`);
    people.runtime.advance(600_000);
    await submit(page, (await people.account()).token ?? "");
    await heading(page, "This link has expired");
    assert.equal((await people.submit(`/claim/${live}`, { into: "new" })).status, 410);
    const row = await people.store.db
      .selectFrom("account")
      .select("merged_into")
      .where("id", "=", key.accountId)
      .executeTakeFirst();
    assert.equal(row?.merged_into, null);
  },
);

test(
  "a form is taken only from the page itself, as a form, and within bounds; every answer is " +
    "locked down",
  async (t) => {
    const people = await servePeople(t);
    const key = await people.anonymousKey();
    const path = `/claim/${await people.claimToken(key.accountId)}`;
    const statusOf = async (headers: Record<string, string>) =>
      (await people.submit(path, { into: "new" }, headers)).status;
    assert.equal(await statusOf({ "sec-fetch-site": "cross-site" }), 403);
    assert.equal(await statusOf({ "sec-fetch-site": "same-site" }), 403);
    assert.equal(await statusOf({ "content-type": "text/plain" }), 415);
    const foreign = await fetch(people.url + path, {
      method: "POST",
      body: new URLSearchParams({ into: "new" }),
      headers: { origin: "https://evil.example" },
    });
    assert.equal(foreign.status, 403);
    assert.equal((await people.submit(path, { secret: "x".repeat(200_000) })).status, 413);
    const put = await fetch(people.url + path, { method: "PUT" });
    assert.deepEqual([put.status, put.headers.get("allow")], [405, "GET, HEAD, POST"]);
    const shown = await fetch(people.url + path);
    assert.equal(shown.status, 200);
    for (const { headers } of [shown, foreign, put]) {
      assert.match(
        headers.get("content-security-policy") ?? "",
        /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
      );
      assert.equal(headers.get("referrer-policy"), "no-referrer");
      assert.equal(headers.get("cache-control"), "no-store");
      assert.equal(headers.get("access-control-allow-origin"), null, "no other site reads it");
    }
    const head = await fetch(people.url + path, { method: "HEAD" });
    assert.deepEqual([head.status, await head.text()], [200, ""]);
    assert.equal(
      (await fetch(people.url + path)).status,
      200,
      "looking at it, as mail scanners do, does not use it up",
    );
  },
);

test(
  "wrong secrets are limited by address, anonymous keys own nothing, and a full account is " +
    "told so",
  async (t) => {
    const people = await servePeople(t);
    const [key, other, account] = [
      await people.anonymousKey(),
      await people.anonymousKey(),
      await people.account(),
    ];
    const path = `/claim/${await people.claimToken(key.accountId)}`;
    const tried = async (secret: string, from = "192.0.2.1") => {
      const answer = await people.submit(
        path,
        { into: "mine", secret },
        { "x-forwarded-for": from },
      );
      return [answer.status, await answer.text()] as const;
    };
    assert.match((await tried(other.secret))[1], /it is an anonymous key/);
    assert.match((await tried(newSecret("token")))[1], /No account has that token/);
    for (let i = 0; i < 10; i++) await tried(newSecret("token"), "192.0.2.7");
    assert.equal((await tried(account.token ?? "", "192.0.2.7"))[0], 429);
    const full = await servePeople(t, { settings: { tariff: TARIFF, maxKeys: 1 } });
    const [lone, owner] = [await full.anonymousKey(), await full.account()];
    const refused = await full.submit(`/claim/${await full.claimToken(lone.accountId)}`, {
      into: "mine",
      secret: owner.secret,
    });
    assert.deepEqual(
      [refused.status, /more keys than it may have/.test(await refused.text())],
      [409, true],
    );
    assert.equal(
      (await tried(` ${account.token}\n`))[0],
      200,
      "blanks around a pasted secret do not matter",
    );
    assert.ok(!people.log().includes("svc_"), "nothing of it is in the log");
    assert.deepEqual(await audit(people.store), []);
  },
);

test(
  "two who send the form at once: one gets the key, the other is told; a store that fails is " +
    "told without a trace of the link",
  async (t) => {
    const people = await servePeople(t);
    const key = await people.anonymousKey();
    const path = `/claim/${await people.claimToken(key.accountId)}`;
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        people.submit(path, { into: "new" }, { "x-forwarded-for": `192.0.2.${i}` }),
      ),
    );
    assert.deepEqual(answers.map((it) => it.status).sort(), [200, 410, 410, 410, 410, 410]);
    assert.deepEqual(await audit(people.store), []);
    const token = newSecret("claim");
    const broken = await servePeople(t, {
      store: failingStore(() => new TypeError(`a bug with ${token}`)),
    });
    const answer = await fetch(`${broken.url}/claim/${token}`);
    assert.equal(answer.status, 500);
    assert.ok(!(await answer.text()).includes(token) && !broken.log().includes(token));
    const away = await servePeople(t, {
      store: failingStore(() => Object.assign(new Error("gone"), { code: "ECONNREFUSED" })),
    });
    const busy = await fetch(`${away.url}/claim/${token}`);
    assert.deepEqual([busy.status, busy.headers.get("retry-after")], [503, "5"]);
  },
);
