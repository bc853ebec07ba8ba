// The parts of redaction, each by itself: hex, words, seed phrases and URLs.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { withoutPhrases } from "../../../src/core/redact/redact.ts";
import { withoutUrlSecrets } from "../../../src/core/redact/url.ts";
import { isKnownId, isSecretHex, isSecretWord, isSlug } from "../../../src/core/redact/word.ts";

const MARK = "[x]";
const HEX = "0123456789abcdef";
const digits = (length: number) =>
  fc.string({ unit: fc.constantFrom(...HEX), minLength: length, maxLength: length });

test("property: 32 bytes of hex are a key unless the text before them calls them a hash", () => {
  fc.assert(
    fc.property(digits(64), (hex) => {
      fc.pre(/[a-f]/.test(hex) && !hex.startsWith("0".repeat(16)));
      for (const before of ["", "with ", "private key of the transaction: "])
        assert.equal(isSecretHex(`0x${hex}`, before), true, before);
      for (const before of ["transaction ", "block hash: ", `tx 0x${"a".repeat(64)}, 0x`])
        assert.equal(isSecretHex(`0x${hex}`, before), false, before);
    }),
  );
});

test("property: addresses, padded words and call data are no keys", () => {
  fc.assert(
    fc.property(digits(40), (address) => {
      for (const hex of [`0x${address}`, `0x${"0".repeat(24)}${address}`, `0x${address.repeat(4)}`])
        assert.equal(isSecretHex(hex, "to "), false, hex);
    }),
  );
});

test("ids and slugs are told from words that were drawn by chance", () => {
  for (const word of ["key_0123456789abcdefghij", "req-1a2b3c-4", "acc_zzzzzzzzzzzzzzzzzzzz"])
    assert.equal(isKnownId(word), true, word);
  for (const word of ["Key_0123456789abcdefghij", "key_0123", "req-"])
    assert.equal(isKnownId(word), false, word);
  for (const word of ["base-mainnet-archive-v2", "eth_sendRawTransaction", "polygon_zkevm.rpc"])
    assert.equal(isSlug(word), true, word);
  for (const word of ["createAccountConnectionPage", "load-balanced-by-default"])
    assert.equal(isSecretWord(word), false, word);
  for (const word of ["aZ3kQ9mT2xW7bN4cV8dL1", "q7w2e9r4t1y8u3i6o5p0"])
    assert.equal(isSecretWord(word), true, word);
});

test("twelve words in a row that could be a seed phrase go, eleven stay, and prose stays", () => {
  const phrase = Array.from({ length: 12 }, () => "abandon").join(" ");
  assert.equal(withoutPhrases(`my seed: ${phrase}!`, MARK).includes("abandon"), false);
  const eleven = Array.from({ length: 11 }, () => "abandon").join(" ");
  assert.equal(withoutPhrases(eleven, MARK), eleven);
  const listed = Array.from({ length: 12 }, (_, n) => `${n + 1}. abandon`).join("\n");
  assert.equal(withoutPhrases(listed, MARK).includes("abandon"), false, "numbered, by line");
  const prose = "The gateway said that the provider was silent for a while and then it came back.";
  assert.equal(withoutPhrases(prose, MARK), prose);
});

test("property: user, password and key of a URL go, and its host stays", () => {
  const secret = fc.string({
    unit: fc.constantFrom(..."abcdefghjkmnpqrstuvwxyz23456789"),
    minLength: 24,
    maxLength: 40,
  });
  fc.assert(
    fc.property(secret, (key) => {
      fc.pre(/\d/.test(key) && /[a-z]/.test(key) && !isSlug(key));
      for (const url of [
        `https://node.example.org/v2/${key}`,
        `wss://node.example.org/?apikey=${key}`,
        `https://user:${key}@node.example.org/`,
        `node.example.org/v3/${key}`,
      ]) {
        const left = withoutUrlSecrets(`see ${url}.`, MARK);
        assert.equal(left.includes(key), false, left);
        assert.ok(left.includes("node.example.org"), left);
      }
    }),
  );
});

test("URLs of documents, transactions and blocks stay as they are", () => {
  for (const url of [
    "https://docs.example.org/reference/eth-get-balance",
    `https://scan.example.org/tx/0x${"ab".repeat(32)}`,
    "https://example.org/block/21000000?chain=1",
  ])
    assert.equal(withoutUrlSecrets(url, MARK), url);
});
