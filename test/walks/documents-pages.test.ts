// Documents and missing pages as a browser gets them: HTML that loads and runs nothing; agents and
// curl get Markdown and JSON as before.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceFixture } from "../fakes/service-fixture.ts";

const BROWSER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

test(
  "documents under /docs are pages for browsers and Markdown for everybody else, each with an " +
    "ETag of its own",
  async (t) => {
    const { service } = await serviceFixture(t, [undefined]);
    for (const path of ["/docs", "/docs/errors", "/docs/api"]) {
      const page = await fetch(service.url + path, { headers: BROWSER });
      const html = await page.text();
      assert.deepEqual(
        [page.status, page.headers.get("content-type")],
        [200, "text/html; charset=utf-8"],
        path,
      );
      assert.match(html, /<h1[^>]*>[^<]+<\/h1>/);
      assert.doesNotMatch(html, /<script|^\| --- /m);
      assert.match(
        page.headers.get("content-security-policy") ?? "",
        /default-src 'none'.*frame-ancestors 'none'/,
      );
      assert.match(page.headers.get("vary") ?? "", /\bAccept\b(?!-)/);
      const text = await fetch(service.url + path);
      assert.match(text.headers.get("content-type") ?? "", /^text\/markdown/);
      assert.match(await text.text(), /^# /);
      assert.notEqual(page.headers.get("etag"), text.headers.get("etag"));
      const again = await fetch(service.url + path, {
        headers: { ...BROWSER, "if-none-match": page.headers.get("etag") ?? "" },
      });
      assert.equal(again.status, 304);
    }
  },
);

test("the index names every document, and each of its links leads somewhere", async (t) => {
  const { service } = await serviceFixture(t, [undefined]);
  const links = [...(await service.get("/docs")).text.matchAll(/\]\(([^)]+)\)/g)].map(
    ([, url = ""]) => new URL(url).pathname,
  );
  assert.ok(links.length >= 6);
  for (const path of links) assert.equal((await service.get(path)).status, 200, path);
  const page = await (await fetch(`${service.url}/docs/errors`, { headers: BROWSER })).text();
  assert.match(page, /<a id="unknown_chain">/, "docs_url of an error leads to its place");
  const api = await (await fetch(`${service.url}/docs/api`, { headers: BROWSER })).text();
  const targets = [...api.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
  assert.ok(targets.length > 0);
  for (const id of targets) assert.ok(api.includes(`id="${id}"`), `nothing is at #${id}`);
});

test(
  "addresses that people type lead on, the browser's icon exists, and a missing page is a page " +
    "for a browser alone",
  async (t) => {
    const { service } = await serviceFixture(t, [undefined]);
    for (const [path, location] of [
      ["/", "/dashboard"],
      ["/dashboard/", "/dashboard"],
      ["/docs/", "/docs"],
    ] as const) {
      const answer = await fetch(service.url + path, { redirect: "manual" });
      assert.deepEqual([answer.status, answer.headers.get("location")], [302, location]);
    }
    const icon = await fetch(`${service.url}/favicon.ico`);
    assert.deepEqual([icon.status, icon.headers.get("content-type")], [200, "image/x-icon"]);
    assert.deepEqual([...Buffer.from(await icon.arrayBuffer()).subarray(0, 4)], [0, 0, 1, 0]);
    const page = await fetch(`${service.url}/nowhere?<script>`, { headers: BROWSER });
    assert.deepEqual(
      [page.status, page.headers.get("content-type")],
      [404, "text/html; charset=utf-8"],
    );
    assert.doesNotMatch(await page.text(), /script|nowhere/);
    const json = await service.get("/nowhere");
    assert.deepEqual([json.status, json.json.error.data.code], [404, "not_found"]);
  },
);
