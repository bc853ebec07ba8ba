// Secrets at rest: what opens what, and the secret of an instance that was given none.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { localSecret, Sealer } from "../../src/secrets/sealer.ts";

const FIRST = "first secret of at least 32 bytes!";
const SECOND = "second secret of at least 32 bytes";

test(
  "a sealed text opens with its secret, also as the previous one, and in its own context only; " +
    "twice sealed it looks different",
  () => {
    const first = new Sealer(FIRST, null);
    const sealed = first.seal("a text", "here");
    assert.equal(first.open(sealed, "here"), "a text");
    assert.equal(first.open(sealed, "there"), null);
    assert.notEqual(first.seal("a text", "here"), sealed);
    assert.ok(!sealed.includes("text") && first.isCurrent(sealed));
    const rotated = new Sealer(SECOND, FIRST);
    assert.deepEqual([rotated.open(sealed, "here"), rotated.isCurrent(sealed)], ["a text", false]);
    assert.equal(new Sealer(SECOND, null).open(sealed, "here"), null);
  },
);

test("a text that was changed, cut off or made up opens to nothing, and never throws", () => {
  const sealer = new Sealer(FIRST, null);
  const sealed = sealer.seal("a text", "here");
  for (let at = 0; at < sealed.length; at++) {
    const other = sealed[at] === "A" ? "B" : "A";
    const changed = `${sealed.slice(0, at)}${other}${sealed.slice(at + 1)}`;
    // The last character of base64url may hold bits that mean nothing.
    if (at < sealed.length - 1) assert.equal(sealer.open(changed, "here"), null, `at ${at}`);
    assert.equal(sealer.open(sealed.slice(0, at), "here"), null);
  }
  for (const text of ["", ".", "v1..", "v1.000000000000.", "v2.x.y", "\u0000"])
    assert.equal(sealer.open(text, "here"), null);
});

test("without SVC_SECRET the secret is made once and only its owner may read it", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-sealed-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const secret = localSecret(join(directory, "data"));
  assert.ok(secret.length >= 40);
  assert.equal(localSecret(join(directory, "data")), secret);
  assert.equal(statSync(join(directory, "data", "svc.secret")).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(join(directory, "data")), ["svc.secret"], "nothing else is left");
  for (const torn of ["", secret.slice(0, 20)]) {
    writeFileSync(join(directory, "data", "svc.secret"), torn);
    assert.throws(() => localSecret(join(directory, "data")), /holds no whole secret/);
  }
});
