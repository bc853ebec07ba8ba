// Secrets: enough chance, every typo noticed without a look-up, nothing accepted by accident.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  hashOf,
  isSameSecret,
  newId,
  newSecret,
  prefixOf,
  readSecret,
  type SecretKind,
} from "../../src/secrets/secret.ts";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

test("a secret carries its kind, at least 192 bits beyond its shown prefix, and a checksum", () => {
  for (const [kind, mark] of [
    ["key", "svc_ak_"],
    ["token", "svc_mt_"],
  ] as const) {
    const secret = newSecret(kind);
    assert.match(secret, new RegExp(`^${mark}[0-9A-Za-z]{44}$`));
    assert.equal(readSecret(secret), kind);
    assert.equal(prefixOf(secret), secret.slice(0, 12));
    const hiddenChars = secret.length - 6 - prefixOf(secret).length;
    assert.ok(hiddenChars * Math.log2(62) >= 192);
  }
});

test("every character of every place is as likely as every other", () => {
  const secrets = Array.from({ length: 4_000 }, () => newSecret("key").slice(7, -6));
  assert.equal(new Set(secrets).size, secrets.length);
  const counts = new Map<string, number>();
  for (const it of secrets.join("")) counts.set(it, (counts.get(it) ?? 0) + 1);
  const expected = (4_000 * 38) / 62;
  const chiSquared = [...ALPHABET].reduce(
    (sum, it) => sum + ((counts.get(it) ?? 0) - expected) ** 2 / expected,
    0,
  );
  assert.ok(chiSquared < 130, `chi squared ${chiSquared} with 61 degrees of freedom`);
});

test("every single wrong, missing, added or swapped character is noticed", () => {
  for (const kind of ["key", "token"] satisfies SecretKind[]) {
    const secret = newSecret(kind);
    for (let at = 0; at < secret.length; at++) {
      for (const it of `${ALPHABET}_- `)
        if (it !== secret[at])
          assert.equal(readSecret(secret.slice(0, at) + it + secret.slice(at + 1)), null);
      assert.equal(readSecret(secret.slice(0, at) + secret.slice(at + 1)), null);
      const [a = "", b = ""] = [secret[at], secret[at + 1]];
      if (b !== "" && a !== b)
        assert.equal(readSecret(secret.slice(0, at) + b + a + secret.slice(at + 2)), null);
    }
    for (const it of [
      `${secret}a`,
      ` ${secret}`,
      `${secret}\n`,
      secret.toLowerCase(),
      secret.toUpperCase(),
      encodeURIComponent(`${secret}%`),
    ])
      assert.equal(readSecret(it), null);
  }
});

test("no other text is taken for a secret", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 80, unit: "binary" }), (text) => readSecret(text) === null),
  );
  fc.assert(
    fc.property(
      fc.string({ minLength: 44, maxLength: 44, unit: fc.constantFrom(...ALPHABET) }),
      (text) => readSecret(`svc_ak_${text}`) === null,
    ),
  );
});

test("a hash is SHA-256 in base64url", () => {
  assert.equal(hashOf("abc"), "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
});

test("a token is compared with texts of any length", () => {
  assert.ok(isSameSecret("operator", "operator"));
  for (const it of ["", "operato", "operator ", "Operator", "x".repeat(100_000)])
    assert.ok(!isSameSecret(it, "operator"));
});

test("ids of later moments come later in order, and none of the same moment are equal", () => {
  const moments = [
    0,
    1,
    35,
    36,
    Date.UTC(2026, 0, 1),
    Date.UTC(2026, 0, 1) + 1,
    Date.UTC(2900, 0, 1),
  ];
  const ids = moments.map((it) => newId("key", it));
  assert.deepEqual([...ids].sort(), ids);
  for (const it of ids) assert.match(it, /^key_[0-9a-z]{20}$/);
  assert.equal(new Set(Array.from({ length: 10_000 }, () => newId("acc", 5))).size, 10_000);
  assert.match(newId("agt", -5), /^agt_0{9}/, "a clock before 1970 is no reason to fail");
});
