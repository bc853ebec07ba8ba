// Packages are loaded from their bundles only where these are whole, of the versions that are
// installed and built as they would be now: an update that nobody bundled must not run the former
// version or two instances of one package, and nothing keeps a start from going on without bundles.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { arePackagesBundled, BUNDLED } from "../bin/build-packages.ts";
import {
  BundledModules,
  builderHash,
  bundleList,
  installedVersion,
} from "../src/bundled-packages.ts";

const LIST = {
  builder: builderHash(),
  files: { "packed/part": "f/packed/part.mjs", "packed/late": "f/packed/late.mjs" },
  versions: { packed: "1.2.3", "packed/node_modules/inner": "4.5.6" },
  sizes: { "f/packed/part.mjs": 3, "f/packed/late.mjs": 3 },
};

/** A folder of packages with a list of bundles. */
function installed(t: TestContext, list: string, versions: Readonly<Record<string, string>>) {
  const modules = mkdtempSync(join(tmpdir(), "svc-bundles-"));
  t.after(() => rmSync(modules, { recursive: true, force: true }));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(modules, path)), { recursive: true });
    writeFileSync(join(modules, path), text);
  };
  write(".packages/bundles.json", list);
  for (const file of Object.values(LIST.files)) write(`.packages/${file}`, "a;\n");
  for (const [folder, version] of Object.entries(versions))
    write(`${folder}/package.json`, JSON.stringify({ version }));
  return modules;
}

test("bundles of the versions that are installed are taken", (t) => {
  const modules = installed(t, JSON.stringify(LIST), LIST.versions);
  const bundled = new BundledModules(modules);
  assert.match(bundled.urlOf("packed/part") ?? "", /\/\.packages\/f\/packed\/part\.mjs$/);
  assert.equal(bundled.urlOf("packed"), null);
});

test("an installation under a running service leaves it what it has loaded, and packages", (t) => {
  const modules = installed(t, JSON.stringify(LIST), LIST.versions);
  const bundled = new BundledModules(modules);
  const loaded = bundled.urlOf("packed/part");
  rmSync(join(modules, ".packages"), { recursive: true });
  assert.equal(bundled.urlOf("packed/part"), loaded);
  assert.equal(bundled.urlOf("packed/late"), null);
});

test("bundles of other versions, of packages that are gone, or without a list are not", (t) => {
  const text = JSON.stringify(LIST);
  const { packed } = LIST.versions;
  for (const modules of [
    installed(t, text, { ...LIST.versions, "packed/node_modules/inner": "4.5.7" }),
    installed(t, text, { packed }),
    installed(t, text.slice(0, -9), LIST.versions),
    join(tmpdir(), "svc-no-such-folder"),
  ])
    assert.equal(bundleList(modules), null);
});

test("bundles that are not whole, or that another builder made, are not", (t) => {
  const lost = installed(t, JSON.stringify(LIST), LIST.versions);
  rmSync(join(lost, ".packages/f/packed/part.mjs"));
  const cut = installed(t, JSON.stringify(LIST), LIST.versions);
  writeFileSync(join(cut, ".packages/f/packed/part.mjs"), "");
  const other = installed(t, JSON.stringify({ ...LIST, builder: "other" }), LIST.versions);
  for (const modules of [lost, cut, other]) assert.equal(bundleList(modules), null);
});

test("this process finds packages in their bundles, and its own files where they are", (t) => {
  if (!arePackagesBundled()) return t.skip("nothing is bundled here");
  for (const name of BUNDLED)
    assert.match(import.meta.resolve(name), /\/node_modules\/\.packages\//, name);
  assert.equal(bundleList()?.versions["esbuild"], installedVersion("esbuild"));
  assert.equal(import.meta.resolve("./all.ts"), new URL("all.ts", import.meta.url).href);
});
