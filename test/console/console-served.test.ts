// The console as files: built from its sources, served with hashed names, compressed, locked down.
import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { after, before, test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { buildConsole, type ConsoleBuild, isConsoleBuilt } from "../../bin/build-console.ts";
import { configText, type Service, startService } from "../fakes/service.ts";

const MAX_SCRIPT_BYTES = 150_000;
const DEEP = "/dashboard/chain/public/ethereum";

let built: ConsoleBuild;
let service: Service;

before(async () => {
  built = await buildConsole();
  const provider = { id: "a", url: "http://127.0.0.1:9" };
  service = await startService(configText([provider]));
});

after(() => service.close());

test("a build is kept until its sources change, and its script is small", () => {
  assert.equal(isConsoleBuilt(), true);
  const scripts = built.files.filter(({ name }) => name.endsWith(".js"));
  const compressed = scripts.reduce((sum, { gzipBytes }) => sum + gzipBytes, 0);
  assert.ok(compressed > 0 && compressed < MAX_SCRIPT_BYTES, `${compressed} bytes`);
});

test("every address of the console gets the one document, which runs nothing inline", async () => {
  for (const path of [DEEP, "/dashboard/requests", "/dashboard/sign-in"]) {
    const { status, headers, body } = await read(path);
    const text = body.toString();
    assert.equal(status, 200);
    assert.equal(headers["content-type"], "text/html; charset=utf-8");
    assert.equal(headers["content-encoding"], undefined);
    assert.equal(headers["cache-control"], "no-cache");
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.equal(headers["referrer-policy"], "no-referrer");
    assert.equal(headers["cross-origin-opener-policy"], "same-origin");
    const policy = (headers["content-security-policy"] ?? "").toString().split(/;\s*/).sort();
    assert.deepEqual(policy, [
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "img-src 'self' data:",
      "script-src 'self'",
      "style-src 'self'",
    ]);
    assert.doesNotMatch(text, /<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/i);
    for (const reference of referencesOf(text)) {
      const url = new URL(reference, `${service.url}${path}`);
      assert.equal((await read(url.pathname)).status, 200, `${path} refers to ${reference}`);
    }
    const again = await read(path, { "if-none-match": String(headers.etag) });
    assert.equal(again.status, 304);
  }
});

test("files are immutable, and compressed as the client likes it", async () => {
  const page = (await read(DEEP)).body.toString();
  const script = referencesOf(page).find((reference) => reference.endsWith(".js")) ?? "";
  const path = new URL(script, `${service.url}${DEEP}`).pathname;
  const plain = await read(path);
  assert.equal(plain.headers["cache-control"], "public, max-age=31536000, immutable");
  assert.equal(plain.headers["content-type"], "text/javascript; charset=utf-8");
  assert.equal(plain.headers.vary, "Accept-Encoding");
  assert.equal(plain.headers["content-encoding"], undefined);
  const brotli = await read(path, { "accept-encoding": "gzip, deflate, br" });
  assert.deepEqual(brotliDecompressSync(brotli.body), plain.body);
  const gzip = await read(path, { "accept-encoding": "gzip, br;q=0" });
  assert.deepEqual(gunzipSync(gzip.body), plain.body);
  const tags = new Set([plain, brotli, gzip].map(({ headers }) => headers.etag));
  assert.equal(tags.size, 3);
  const again = await read(path, {
    "accept-encoding": "br",
    "if-none-match": String(brotli.headers.etag),
  });
  assert.deepEqual([again.status, again.body.length], [304, 0]);
});

test("nothing but the built files is served", async () => {
  for (const name of ["x.js", "manifest.json", "index.html", "../manifest.json", "%2e%2e%2fx"]) {
    const { status } = await read(`/dashboard/assets/${name}`);
    assert.equal(status, 404, name);
  }
  assert.equal((await read(`/dashboard${"/a".repeat(20)}`)).status, 404);
});

interface Read {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The answer as it is on the wire. */
async function read(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Read> {
  const request = get({ port: service.port, path, headers });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const body = Buffer.concat(await response.toArray());
  return { status: response.statusCode, headers: response.headers, body };
}

function referencesOf(page: string): readonly string[] {
  const found = page.matchAll(/<(?:script|link)[^>]*\s(?:src|href)="([^"]+)"/g);
  return Array.from(found, ([, reference]) => reference ?? "");
}
