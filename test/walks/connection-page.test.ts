// The approval page in a real browser: a program asks, its owner decides, the program fetches its
// token; and what the page does with hostile names and late visitors.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { decideConnection } from "../../src/hosted/accounts/connections.ts";
import { newSecret } from "../../src/secrets/secret.ts";
import { type Browser, type Page, startBrowser, WITHOUT_BROWSER } from "../fakes/browser.ts";
import { hostedFixture } from "../fakes/hosted-fixture.ts";
import { servePeople } from "../fakes/people.ts";

const OPTIONS = { skip: WITHOUT_BROWSER };
const MARKUP = `</bdi><img src=x onerror="window.hacked=1">\u202Egnp.exe`;
const ASK = "A program asks to manage your account";

let browser: Browser;

before(async () => {
  if (WITHOUT_BROWSER === false) browser = await startBrowser();
});

after(async () => {
  if (WITHOUT_BROWSER === false) await browser.close();
});

const heading = (page: Page, text: string) =>
  page.until(`document.querySelector("h1")?.textContent === ${JSON.stringify(text)}`);
const click = (page: Page, text: string) =>
  page.run(
    `[...document.querySelectorAll("button")].find((it) => it.textContent === ` +
      `${JSON.stringify(text)}).click()`,
  );

async function typeSecret(page: Page, secret: string): Promise<void> {
  await page.run(`document.getElementById("secret").focus()`);
  await page.type(secret);
}

test(
  "a program asks, its owner approves within bounds, the program gets a token once, and the " +
    "owner revokes it",
  OPTIONS,
  async (t) => {
    const fixture = await hostedFixture(t);
    const account = await fixture.account();
    const asked = await fixture.manage("", "POST", "/api/v1/connections", { name: "deploy bot" });
    assert.deepEqual(
      [asked.status, asked.json.expires_in, asked.json.poll_interval],
      [201, 900, 5],
    );
    const page = await browser.open(asked.json.approval_url);
    await heading(page, ASK);
    assert.match(await page.run("document.body.innerText"), /deploy bot/);
    await page.run(`document.querySelector("[name=read_only]").click()`);
    await page.run(`document.querySelector("[name=profiles]").value = "Not a slug!"`);
    await typeSecret(page, account.token);
    await click(page, "Approve");
    await page.until(
      `document.querySelector(".wrong")?.textContent.startsWith("Name profiles by their slugs")`,
    );
    await page.run(`document.querySelector("[name=read_only]").click()`);
    await page.run(`document.querySelector("[name=profiles]").value = "public"`);
    await page.run(`document.querySelector("[name=days]").value = "1"`);
    await typeSecret(page, account.token);
    await click(page, "Approve");
    await heading(page, "Approved");
    const shown = await page.run("document.body.innerText");
    assert.match(shown, /read only/);
    assert.match(shown, /public/);
    assert.ok(
      !(await page.run("document.documentElement.outerHTML")).includes("svc_mt_"),
      "no token is on the page",
    );
    const path = `/api/v1/connections/${asked.json.id}`;
    const polled = await fixture.manage(asked.json.token, "GET", path);
    assert.equal(polled.json.status, "approved");
    const token = polled.json.management_token;
    const soon = await fixture.manage(asked.json.token, "GET", path);
    assert.deepEqual(
      [soon.status, soon.json.error.code, soon.headers.has("retry-after")],
      [429, "rate_limited", true],
    );
    const agent = (await fixture.manage(token, "GET", "/api/v1/agents/current")).json;
    assert.deepEqual(
      [agent.account_id, agent.restrictions.read_only, agent.restrictions.profiles],
      [account.accountId, true, ["public"]],
    );
    assert.ok(Date.parse(agent.restrictions.expires_at) - Date.now() <= 86_400_000);
    assert.equal((await fixture.manage(token, "POST", "/api/v1/keys", {})).status, 403);
    const { connections } = (await fixture.manage(account.token, "GET", "/api/v1/connections"))
      .json;
    assert.deepEqual(
      [connections.length, connections[0].name, connections[0].agent_id],
      [1, "deploy bot", agent.id],
    );
    assert.equal((await fixture.manage(account.token, "DELETE", path)).status, 204);
    assert.equal(
      (await fixture.manage(token, "GET", "/api/v1/agents/current")).status,
      401,
      "its token ends at once",
    );
    await heading(await browser.open(asked.json.approval_url), "This was denied");
  },
);

test(
  "denying needs no secret, and a page that was decided or is late says so",
  OPTIONS,
  async (t) => {
    const people = await servePeople(t);
    const [denied, late] = [await people.connection(), await people.connection()];
    const page = await browser.open(`${people.url}/connect/${denied.approval}`);
    await click(page, "Deny");
    await heading(page, "Denied");
    await heading(
      await browser.open(`${people.url}/connect/${denied.approval}`),
      "This was denied",
    );
    const open = await browser.open(`${people.url}/connect/${late.approval}`);
    people.runtime.advance(900_000);
    await typeSecret(open, (await people.account()).token ?? "");
    await click(open, "Approve");
    await heading(open, "This link has expired");
    await heading(
      await browser.open(`${people.url}/connect/${newSecret("approval")}`),
      "This link leads nowhere",
    );
  },
);

test("a name is text, and cannot turn the words around it", OPTIONS, async (t) => {
  const people = await servePeople(t);
  const { approval } = await people.connection(MARKUP);
  const page = await browser.open(`${people.url}/connect/${approval}`);
  assert.equal(await page.run(`document.querySelector("bdi").textContent`), MARKUP);
  assert.equal(await page.run("window.hacked"), undefined);
  assert.equal(await page.run(`document.querySelectorAll("img").length`), 0);
  assert.deepEqual(page.said, []);
});

test("a key of the account gives leave to read at most; secrets that manage nothing give none", async (t) => {
  const people = await servePeople(t);
  const [account, key] = [await people.account(), await people.anonymousKey()];
  const approve = async (secret: string, approval: string) =>
    people.submit(`/connect/${approval}`, { decision: "approve", days: "0", profiles: "", secret });
  const { approval } = await people.connection();
  for (const [secret, words] of [
    [key.secret, "it is an anonymous key"],
    [newSecret("key"), "No account has that"],
    [approval, "cut off or mistyped"],
  ] as const) {
    const refused = await approve(secret, approval);
    assert.equal(refused.status, 422);
    assert.ok((await refused.text()).includes(words), words);
  }
  const done = await approve(account.secret, approval);
  assert.equal(done.status, 200);
  assert.match(await done.text(), /read only/);
  assert.equal((await approve(account.secret, approval)).status, 410, "once");
  const row = await people.store.db.selectFrom("connection").selectAll().executeTakeFirstOrThrow();
  assert.deepEqual([row.read_only, row.account_id], [1n, account.accountId]);
  const daysMs = Number(row.agent_expires_at) - Number(row.decided_at);
  assert.ok(
    daysMs > 0 && daysMs <= 86_400_000,
    "a key that got into other hands lends nothing for long",
  );
});

test("who sends a form slowly takes nobody's place", async (t) => {
  const people = await servePeople(t);
  const { approval } = await people.connection();
  const { hostname, port } = new URL(people.url);
  const slow = Array.from({ length: 80 }, () => {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    socket.write(
      "POST /connect/x HTTP/1.1\r\nHost: x\r\nContent-Type: " +
        "application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\na",
    );
    return socket;
  });
  t.after(() => {
    for (const socket of slow) socket.destroy();
  });
  await Promise.all(slow.map((it) => once(it, "connect")));
  for (let n = 0; n < 20; n++)
    assert.equal((await fetch(`${people.url}/connect/${approval}`)).status, 200);
});

test(
  "an unknown time is the default one, a form from elsewhere is refused, and two decisions are " +
    "one",
  async (t) => {
    const people = await servePeople(t);
    const account = await people.account();
    const { approval } = await people.connection();
    const path = `/connect/${approval}`;
    const fields = { decision: "approve", secret: account.token ?? "", days: "99999" };
    assert.equal(
      (await people.submit(path, fields, { "sec-fetch-site": "cross-site" })).status,
      403,
    );
    const answers = await Promise.all([
      people.submit(path, fields),
      people.submit(path, { decision: "deny" }),
      people.submit(path, fields),
    ]);
    assert.equal(answers.filter((it) => it.status === 200).length, 1);
    const row = await people.store.db
      .selectFrom("connection")
      .selectAll()
      .executeTakeFirstOrThrow();
    if (row.state === "approved")
      assert.equal(Number(row.agent_expires_at) - people.runtime.wallMs(), 90 * 86_400_000);
    assert.equal(
      await decideConnection(
        people.store,
        { approval, decision: { kind: "deny" } },
        people.runtime.wallMs(),
      ),
      "decided",
    );
  },
);
