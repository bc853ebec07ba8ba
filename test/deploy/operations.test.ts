// docs/operations.md: the settings, variables, paths and services that it names exist, with the
// values that it gives.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { environment } from "../../src/config/schema.ts";
import { OPERATIONS } from "../../src/web/contract/contract.ts";
import { accepted, VALID } from "../config/config-fixture.ts";

const ROOT = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const TEXT = read("docs/operations.md");

function named(pattern: RegExp): readonly string[] {
  return [...new Set(Array.from(TEXT.matchAll(pattern), ([, name]) => name ?? ""))];
}

test("the settings that it names exist", () => {
  const reference = read("docs/configuration.md");
  const settings = named(/`((?:server|limits|hosted|cluster|selection)\.[\w.]+)[`:]/g);
  assert.ok(settings.length >= 10);
  for (const setting of settings) {
    const [section = "", key = ""] = setting.split(".");
    const tables = reference
      .split(/^## /m)
      .filter((part) => RegExp(`^\`(\\S*\\.)?${section}\``).test(part));
    assert.ok(
      tables.some((table) => table.includes(`| \`${key}\` |`)),
      setting,
    );
  }
});

test("its limits are the defaults", () => {
  const { limits } = accepted(VALID);
  const defaults: Readonly<Record<string, number>> = {
    "10,000": limits.maxConnections,
    "8 MB": limits.maxBodyBytes / 1e6,
    "1 GiB": limits.maxAnswerBytes / 2 ** 30,
    "1,000": limits.maxBatchItems,
    "128": limits.maxSocketSubscriptions,
  };
  for (const [shown, value] of Object.entries(defaults)) {
    assert.equal(Number(shown.replace(/[, A-Za-z]/g, "")), value);
    assert.ok(TEXT.includes(`| ${shown} |`), shown);
  }
});

test("the variables, paths, pages and services that it names exist", () => {
  const compose = parse(read("deploy/compose.yml"), { merge: true });
  const nodes = Object.values<{ readonly environment?: object }>(compose.services);
  const variables = new Set([
    ...Object.keys(environment.shape),
    ...nodes.flatMap(({ environment: given = {} }) => Object.keys(given)),
    ...Array.from(read("deploy/compose.yml").matchAll(/\$\{(\w+)/g), ([, name]) => name),
  ]);
  for (const name of named(/\b((?:SVC|POSTGRES)_[A-Z_]+)\b/g)) assert.ok(variables.has(name), name);
  for (const path of named(/(deploy\/[\w./-]*\w)/g))
    assert.ok(path === "deploy/.env" || existsSync(join(ROOT, path)), path);
  const pages = new Set(["/metrics", "/dashboard", ...OPERATIONS.map(({ path }) => path)]);
  for (const page of named(/`(\/(?:api|metrics|dashboard)[\w/]*)`/g))
    assert.ok(pages.has(page), page);
  const [, loop = ""] = /for node in ([\w ]+);/.exec(TEXT) ?? [];
  assert.deepEqual(
    loop.split(" "),
    Object.keys(compose.services).filter((name) => compose.services[name].image === "svc"),
  );
});
