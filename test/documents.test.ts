// The documents written by hand: every path, link and command that they name exists, and the
// configurations that they show are accepted. Knows nothing of the documents that an instance
// serves.
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { COMMANDS } from "../src/cli/commands.ts";
import { formatFaults } from "../src/config/config-fault.ts";
import { load } from "./config/config-fixture.ts";

const ROOT = join(import.meta.dirname, "..");
const MAX_README_WORDS = 900;
const MAX_IMAGE_BYTES = 200_000;
const MAX_SCREENS = 4;
const SCREEN_LINES = 60;
const COLUMNS = 100;
/** Places that a row of ARCHITECTURE.md may send its reader to. */
const MAX_PLACES = 3;
/** Rendered from tables by `npm run docs`, and compared with them by other tests. */
const GENERATED = ["docs/api.md", "docs/cli.md", "docs/configuration.md", "docs/metrics.md"];
const DOCUMENTS = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "CONFORMANCE.md",
  "bench/README.md",
  ...globSync(["docs/*.md", "decisions/*.md"], { cwd: ROOT }).sort(),
].filter((path) => !GENERATED.includes(path));
/** Documents that say where things are. CHANGELOG.md may name what is no more. */
const MAPS = DOCUMENTS.filter(
  (path) => /^(ARCHITECTURE|CONTRIBUTING)\.md$/.test(path) || path.startsWith("decisions/"),
);
/** Stands for what the examples take from the environment. */
const EXAMPLE_ENVIRONMENT = {
  ALCHEMY_KEY: "example",
  DRPC_KEY: "example",
  QUICKNODE_ETHEREUM_URL: "https://example.com/token",
  SVC_OPERATOR_TOKEN: "example-operator-token-of-a-length",
  BASE_RPC_URL: "https://base.example.com",
  SVC_WALLET_KEY: `0x${"11".repeat(32)}`,
  SVC_SESSION_KEY: `0x${"22".repeat(32)}`,
};
const SAMPLE_PROFILE = `
chains: { ethereum: { chain_id: 1, name: Ethereum } }
profiles:
  public: { chains: { ethereum: { providers: [{ id: a, url: "http://10.0.0.5:8545" }] } } }
`;

test(`README.md has at most ${MAX_README_WORDS} words`, () => {
  const words = read("README.md").split(/\s+/).filter(Boolean).length;
  assert.ok(words <= MAX_README_WORDS, `${words} words`);
});

test("relative links lead to files, and pictures are small", () => {
  const broken: string[] = [];
  for (const path of DOCUMENTS)
    for (const target of relativeLinksOf(read(path))) {
      const file = join(ROOT, dirname(path), target);
      if (!existsSync(file)) broken.push(`${path}: ${target}`);
      else if (target.endsWith(".png")) assert.ok(statSync(file).size <= MAX_IMAGE_BYTES, target);
    }
  assert.deepEqual(broken, []);
});

test("paths that the maps of the code name exist", () => {
  assert.deepEqual(missingPathsOf("`core/routing/plan.ts`, `web/rpc/`"), []);
  assert.deepEqual(missingPathsOf("`core/routing/plans.ts`, `web/desk/`"), [
    "core/routing/plans.ts",
    "web/desk/",
  ]);
  for (const path of MAPS) assert.deepEqual(missingPathsOf(read(path)), [], path);
});

test("decisions are filed by topic, and dated", () => {
  const paths = DOCUMENTS.filter((path) => path.startsWith("decisions/"));
  assert.ok(paths.length > 0);
  for (const path of paths) {
    assert.match(path, /^decisions\/[a-z-]+\.md$/);
    const day = String.raw`\d{4}-\d\d-\d\d`;
    const dates = new RegExp(`^# .+\n\nDecided ${day}( to ${day})?(, changed ${day})?\\.\n`);
    assert.match(read(path), dates, path);
  }
});

test("decisions are named by their files, which exist", () => {
  const sources = globSync(["{bench,bin,console,src,test}/**/*.{ts,tsx,mjs}", "Dockerfile"], {
    cwd: ROOT,
  });
  const wrong = [...DOCUMENTS, ...sources].flatMap((path) => {
    const text = read(path);
    return [
      ...found(text, /\b(decisions?[ /]\d{3})\b/gi),
      ...found(text, /\b(decisions\/[\w-]+\.md)/g).filter((file) => !existsSync(join(ROOT, file))),
    ].map((name) => `${path}: ${name}`);
  });
  assert.deepEqual(wrong, []);
});

test("every folder of src is in the tree of ARCHITECTURE.md", () => {
  const text = read("ARCHITECTURE.md");
  const folders = globSync("src/**/*.ts", { cwd: ROOT }).map(
    (path) => `${dirname(path).split("/").slice(1, 3).join("/")}/`,
  );
  const unnamed = [...new Set(folders)].filter(
    (folder) => folder !== "/" && !text.includes(`\`${folder}`),
  );
  assert.deepEqual(unnamed, []);
});

test(`ARCHITECTURE.md fits on ${MAX_SCREENS} screens`, () => {
  const lines = read("ARCHITECTURE.md").split("\n");
  const shown = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / COLUMNS)), 0);
  assert.ok(shown <= MAX_SCREENS * SCREEN_LINES, `${shown} lines`);
  const rows = read("ARCHITECTURE.md").split("## Where to change what")[1]?.split("\n## ")[0] ?? "";
  for (const row of found(rows, /^(\| .*)$/gm))
    assert.ok(found(row, /`([\w.-]+\/[^`]*)`/g).length <= MAX_PLACES, row);
});

test("commands that documents tell to run exist", () => {
  const { scripts } = JSON.parse(read("package.json")) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const commands = new Set(Object.keys(COMMANDS).map((name) => name.split(" ")[0]));
  const unknown = DOCUMENTS.filter((path) => path !== "CHANGELOG.md").flatMap((path) => [
    ...found(read(path), /npm run ([\w:]+)/g).filter((name) => !Object.hasOwn(scripts, name)),
    ...found(read(path), /(?:bin\/svc\.mjs|`svc) ([a-z][\w-]*)/g).filter(
      (name) => name !== "help" && !commands.has(name),
    ),
  ]);
  assert.deepEqual(unknown, []);
});

test("configurations that documents show are accepted", () => {
  let shown = 0;
  for (const path of DOCUMENTS)
    for (const yaml of found(read(path), /```yaml\n([\s\S]*?)```/g)) {
      shown += 1;
      const address = `"0x${"22".repeat(20)}"`;
      const text = yaml.replaceAll('"0x…"', address);
      const whole = /^profiles:/m.test(text) ? text : `${text}${SAMPLE_PROFILE}`;
      const result = load(whole, EXAMPLE_ENVIRONMENT);
      assert.ok(result.ok, result.ok ? "" : `${path}:\n${formatFaults(result.faults)}`);
    }
  assert.ok(shown >= 3, `found only ${shown} examples`);
});

test("documents are written in plain words", () => {
  const riddles = DOCUMENTS.flatMap((path) =>
    found(read(path), /\b(whoever|whatever|whichever way)\b/gi).map((word) => `${path}: ${word}`),
  );
  assert.deepEqual(riddles, []);
});

function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** The first group of each match. */
function found(text: string, pattern: RegExp): readonly string[] {
  return Array.from(text.matchAll(pattern), ([, group]) => group ?? "");
}

function relativeLinksOf(text: string): readonly string[] {
  return found(text, /\]\(([^)\s]+)\)/g)
    .filter((target) => !/^(https?:|#)/.test(target))
    .map((target) => target.replace(/#.*/, ""));
}

/**
 * The paths in backquotes, of the repository or of `src`, that lead nowhere. What is installed or
 * built is no part of the repository: it may not be there yet.
 */
function missingPathsOf(text: string): readonly string[] {
  const paths = found(text, /`([\w.-]+(?:\/[\w.-]+)*(?:\.(?:ts|mjs|json|md|yml|html|py)|\/))`/g);
  return paths.filter(
    (path) =>
      path.includes("/") &&
      !path.startsWith("node_modules/") &&
      ![path, `src/${path}`].some((file) => existsSync(join(ROOT, file))),
  );
}
