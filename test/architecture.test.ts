// The house rules that no linter states: who may import whom, and what no source file may contain. Every rule is first shown to fail on a bad sample.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { test } from "node:test";

interface Source {
  /** Relative to the project, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

interface Rule {
  readonly name: string;
  /** Samples that break the rule. */
  readonly bad: readonly Source[];
  /** What is wrong with a file, one line each. */
  readonly breaches: (source: Source) => readonly string[];
}

/** Which rooms each room of `src` may import, beside itself. `*`: every room but main. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  runtime: [],
  config: ["core"],
  observe: ["core", "world", "upstream"],
  upstream: ["core", "world"],
  hosted: ["core", "world"],
  web: ["core", "world", "observe", "upstream", "hosted"],
  devnet: ["core", "world", "config"],
  app: ["*"],
  hosting: ["*"],
  auditing: ["*"],
  "hosting-profiles": ["*"],
  cli: ["*"],
  main: ["*"],
};

/** Holds the text of programs that a caller runs, which read the caller's own environment. */
const PRINTED_PROGRAMS = "src/web/discovery/payment-code.ts";
/** Speaks HTTP to wallets as a node of the local chain, and not to callers of the service. */
const LOCAL_CHAIN_FRONT = "src/devnet/payments/front.ts";

const ROOT = join(import.meta.dirname, "..");
const SOURCES: readonly Source[] = globSync("src/**/*.ts", { cwd: ROOT }).map((path) => ({
  path: path.replaceAll("\\", "/"),
  text: readFileSync(join(ROOT, path), "utf8"),
}));

const RULES: readonly Rule[] = [
  {
    name: "every room imports only the rooms it may know",
    bad: [
      sample("src/core/a.ts", 'import { x } from "../world.ts";'),
      sample("src/upstream/a.ts", 'import type { X } from "../hosted/keys.ts";'),
      sample("src/hosted/a.ts", 'export { x } from "../web/server.ts";'),
      sample("src/core/a.ts", 'import {\n  x,\n} from "../observe.ts";'),
      sample("src/web/rpc/a.ts", 'const { x } = await import("../../config.ts");'),
      sample("src/devnet/a.ts", 'import "../upstream/router.ts";'),
      sample("src/app.ts", 'import { x } from "./main.ts";'),
      sample("src/kitchen/a.ts", "export const x = 1;"),
    ],
    breaches: ({ path, text }) => {
      const room = roomOf(path);
      const allowed = MAY_IMPORT[room];
      if (allowed === undefined) return [`${room} is no room of the house: add it to the table with what it may import`];
      return importsOf(text)
        .filter((target) => target.startsWith("."))
        .map((target) => roomOf(posix.join(posix.dirname(path), target)))
        .filter((target) => target !== room && !allowed.includes(target) && !(allowed.includes("*") && target !== "main"))
        .map((target) => `${room} must not import ${target}`);
    },
  },
  {
    name: "core imports no package and nothing of the platform",
    bad: [sample("src/core/a.ts", 'import { readFileSync } from "node:fs";'), sample("src/core/a.ts", 'import { z } from "zod";')],
    breaches: ({ path, text }) => (roomOf(path) === "core" ? importsOf(text).filter((target) => !target.startsWith(".")) : []),
  },
  {
    name: "only web and the composition root speak HTTP to callers",
    bad: [sample("src/upstream/a.ts", 'import { createServer } from "node:http";'), sample("src/hosted/a.ts", 'import type { Server } from "https";')],
    breaches: ({ path, text }) =>
      ["web", "app", "cli", "main"].includes(roomOf(path)) || path === LOCAL_CHAIN_FRONT
        ? []
        : importsOf(text).filter((target) => /^(node:)?(http|https|http2)$/.test(target)),
  },
  {
    name: "only main reads the environment",
    bad: [sample("src/config.ts", "const port = process.env.PORT;"), sample("src/web/a.ts", 'import { env } from "node:process";')],
    breaches: ({ path, text }) =>
      roomOf(path) === "main" || path === PRINTED_PROGRAMS
        ? []
        : found(code(text), /\bprocess\s*\.\s*env\b|\bimport[^;]*\benv\b[^;]*\bfrom\s*["'](node:)?process/g),
  },
  {
    name: "no default exports",
    bad: [sample("src/a.ts", "export default function f() {}"), sample("src/a.ts", "export { f as default };")],
    breaches: ({ text }) => found(code(text), /\bexport\s+default\b|\bas\s+default\b/g),
  },
  {
    name: "no enums and no namespaces",
    bad: [sample("src/a.ts", "export const enum Color { Red }"), sample("src/a.ts", "declare namespace N {}")],
    breaches: ({ text }) => found(code(text), /^\s*(export\s+|declare\s+|const\s+)*(enum|namespace)\s+\w+/gm),
  },
  {
    name: "no type any",
    bad: [sample("src/a.ts", "const x: any = 1;"), sample("src/a.ts", "const x = y as any;"), sample("src/a.ts", "type X = Map<string, any>;")],
    breaches: ({ text }) => found(code(text), /(:\s*|\bas\s+|[<,|&]\s*|=\s*)any\b(?=\s*([;,)>=|&[\]}]|$))/gm),
  },
  {
    name: "no mutable state at module level",
    bad: [
      sample("src/a.ts", "let count = 0;"),
      sample("src/a.ts", "export let count = 0;"),
      sample("src/a.ts", "const cache = new Map<string, number>();"),
      sample("src/a.ts", "export const seen: Set<string> = new Set();"),
      sample("src/a.ts", "const queue: string[] = [];"),
      sample("src/a.ts", "const registry = {};"),
    ],
    breaches: ({ text }) =>
      found(code(text), /^(export\s+)?(let|var)\s.*|^(export\s+)?const\s+\w+[^=\n]*=\s*(new\s+(Weak)?(Map|Set)\b(<[^\n]*>)?(\(\))?;|\[\];|\{\};).*/gm),
  },
  {
    name: "every file opens by saying what it is",
    bad: [sample("src/a.ts", "export const x = 1;")],
    breaches: ({ text }) => (/^(#!.*\n)?\/[/*]/.test(text) ? [] : ["the first line is no comment"]),
  },
  {
    name: "nothing is left for later",
    bad: [sample("src/a.ts", "// TODO: later"), sample("src/a.ts", "/* FIXME */")],
    breaches: ({ text }) => found(text, /\b(TODO|FIXME|XXX|HACK)\b.*/g),
  },
  {
    name: "no file or folder has a name that says nothing",
    bad: [sample("src/core/utils.ts", ""), sample("src/web/common/a.ts", "")],
    breaches: ({ path }) => found(path, /\b(utils?|common|helpers?|managers?|misc)\b/g),
  },
];

for (const { name, bad, breaches } of RULES) {
  test(`house rule: ${name}`, () => {
    for (const source of bad) assert.notDeepEqual(breaches(source), [], `the rule does not see ${source.text.slice(0, 80)}`);
    assert.deepEqual(
      SOURCES.flatMap((source) => breaches(source).map((breach) => `${source.path}: ${breach}`)),
      [],
    );
  });
}

test("the rules look at the whole house and do not cry wolf", () => {
  assert.ok(SOURCES.length >= 10, `found only ${SOURCES.length} source files`);
  const good = sample(
    "src/web/a.ts",
    '// What it is. Not any, enum, let x; just "process.env" in words.\nimport { x } from "../core/x.ts";\nexport const TABLE = new Map([[1, 2]]);\n',
  );
  for (const { name, breaches } of RULES) assert.deepEqual(breaches(good), [], name);
});

test("house rule: no import cycles", () => {
  assert.deepEqual(
    cycleIn([sample("src/a.ts", 'import "./b.ts";'), sample("src/b.ts", 'import type { C } from "./c.ts";'), sample("src/c.ts", 'import "./a.ts";')]),
    ["src/a.ts", "src/b.ts", "src/c.ts", "src/a.ts"],
  );
  assert.deepEqual(cycleIn(SOURCES), []);
});

function sample(path: string, text: string): Source {
  return { path, text };
}

/** The room of a file: its folder in `src`, or for files that lie there their name up to the first dash. */
function roomOf(path: string): string {
  const [, first = "", rest] = path.split("/");
  return rest === undefined ? (first.replace(/\.ts$/, "").split("-")[0] ?? "") : first;
}

/** Everything a text imports or re-exports, as written. */
function importsOf(text: string): readonly string[] {
  const pattern = /^(?:import\b|export\b|\})[^"'\n]*\bfrom\s+["']([^"']+)["']|^import\s+["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']/gm;
  return Array.from(text.matchAll(pattern), ([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? "");
}

function found(text: string, pattern: RegExp): readonly string[] {
  return text.match(pattern) ?? [];
}

/** The text without its comments and the contents of its strings. */
function code(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|\/\/.*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g, (match) =>
    match.startsWith("/") ? "" : match.replace(/\b(?!node:process|process)\w+\b/g, "_"),
  );
}

/** The first import cycle, as the files on it; empty when there is none. */
function cycleIn(sources: readonly Source[]): readonly string[] {
  const targets = new Map(
    sources.map(({ path, text }) => [path, importsOf(text).flatMap((target) => (target.startsWith(".") ? [posix.join(posix.dirname(path), target)] : []))]),
  );
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): readonly string[] => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (done.has(path)) return [];
    for (const target of targets.get(path) ?? []) {
      const cycle = visit(target, [...trail, path]);
      if (cycle.length > 0) return cycle;
    }
    done.add(path);
    return [];
  };
  for (const path of targets.keys()) {
    const cycle = visit(path, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}
