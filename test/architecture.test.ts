// The house rules that no linter states: who may import whom, and what no source file may contain.
// Every rule is first shown to fail on a bad sample.
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

/**
 * What each top-level folder or file of `src` may import, beside itself. The folders of `shared`
 * are rooms of their own: only `app` and `cli` know of several processes.
 */
const BASE = ["core", "runtime"];
const STORED = [...BASE, "secrets", "shared/store"];
const SHARING = ["shared/changes", "shared/nodes", "shared/ledger"];
const WINGS = [...BASE, "upstream", "hosted", "payments", "secrets"];
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  runtime: [],
  presets: ["core"],
  config: ["core", "payments", "presets"],
  secrets: BASE,
  "shared/store": [...BASE, "secrets"],
  "shared/ledger": STORED,
  "shared/changes": STORED,
  "shared/leases": STORED,
  "shared/nodes": [...STORED, "shared/changes", "shared/leases"],
  "shared/processes": [...STORED, "shared/nodes"],
  upstream: BASE,
  hosted: [...STORED, ...SHARING],
  payments: [...STORED, ...SHARING],
  observe: [...BASE, "upstream", "payments"],
  web: [...WINGS, "observe"],
  devnet: [...BASE, "config", "payments"],
  app: [
    ...[...WINGS, "observe", "config", "web", "devnet", "presets"],
    ...[...SHARING, "shared/store", "shared/leases", "shared/processes"],
  ],
  cli: [
    ...["core", "runtime", "config", "devnet", "presets", "upstream"],
    ...["shared/processes", "shared/nodes", "app"],
  ],
  main: ["cli", "module-hooks"],
  "module-hooks": ["bundled-packages"],
  "bundled-packages": [],
};

/** Imports against the table above that stand for now, each with its reason. */
const ALLOWED_IMPORTS: Readonly<Record<string, string>> = {
  "src/web/api/operation-server.ts → src/shared/store/store-failure.ts":
    "a store that is down is answered with 503; the test for it belongs to the store",
  "src/web/pages/account/account-pages.ts → src/shared/store/store-failure.ts":
    "as above, for pages",
  "src/web/rpc/paid/rpc-paywall.ts → src/shared/store/store-failure.ts":
    "as above, for payments at a call",
  "src/web/rpc/paid/session.ts → src/shared/store/store-failure.ts": "as above, for pay per call",
  "src/web/api/authenticate.ts → src/shared/store/store.ts":
    "passes the store on to hosted; a type only",
  "src/web/api/console-sessions.ts → src/shared/store/store.ts":
    "passes the store on to hosted; a type only",
  "src/web/api/parts.ts → src/shared/store/store.ts": "passes the store on to hosted; a type only",
};

/** Packages that core imports, each with its reason. */
const CORE_PACKAGES: Readonly<Record<string, string>> = {
  "src/core/public-address.ts → ipaddr.js":
    "pure, without dependencies: the special ranges of IP addresses, kept current by others",
};

/**
 * Private words that no exported name, file or folder of `src` bears (parts of names, in lower
 * case), and what to say instead.
 */
const PRIVATE_WORDS: Readonly<Record<string, string>> = {
  door: "RpcRequest",
  lean: "fast path",
  spine: "pipeline",
  letter: "RequestInfo",
  arrival: "Authenticated",
  arrive: "authenticate",
  matter: "the input of the call",
  want: "the input of the call",
  occasion: "the input of the call",
  desk: "ClientSubscriptions",
  seat: "OpenSocket",
  outlet: "ClientConnection",
  press: "FrameEncoder",
  rounds: "PingScheduler",
  holder: "KeyContext",
  holders: "KeyCache",
  payer: "AccountState",
  gate: "Admission",
  reach: "profile access",
  bucket: "RateLimit",
  means: "FundingSource",
  toll: "RpcPaywall",
  till: "VoucherAcceptor",
  counter: "CredentialHandler",
  taking: "accept",
  presented: "credential",
  unpaid: "refusal",
  keeping: "retention",
  waiting: "waiters",
  walk: "advance",
  revisit: "recheck",
  driver: "scheduler",
  pursuit: "confirmation",
  pursue: "confirm",
  ask: "rpcCall",
  asks: "rpcCall",
  inquiry: "RpcCall",
  marks: "OfferMac",
  standing: "TxStatus",
  truth: "ChainStatus",
  told: "a result",
  sighting: "a heartbeat",
  station: "ProviderState",
  roster: "ProfileRegistry",
  directory: "ProfileRegistry",
  shelf: "ProfileLoader",
  preparation: "ProfileLoader",
  guard: "SsrfGuard",
  doubt: "IncompleteBlocks",
  chase: "Backfill",
  caught: "Backfill",
  moved: "Reorged",
  teller: "EventSink",
  tell: "emit",
  trouble: "failure",
  lenient: "counts",
  loose: "BestEffort",
  wheel: "TimerWheel",
  alarm: "Timer",
  home: "PoolHooks",
  lender: "borrowed buffer",
  keeper: "SocketListener",
  cycle: "FlushLoop",
  wake: "refresh",
  retire: "evict",
  people: "account pages",
  owners: "ownership",
  world: "Runtime",
  frame: "SocketMessage",
  nobody: "EMPTY_PLAN",
};

/**
 * Names that may bear such a word, since it is the field's own for what they name; a trailing `*`
 * stands for the rest of a name.
 */
const ALLOWED_NAMES: Readonly<Record<string, string>> = {
  "src/upstream/ssrf-guard.ts": "an SSRF guard is what it is called everywhere",
  "SsrfGuard*": "as above",
  "src/upstream/timer-wheel.ts": "a timer wheel is a known data structure",
  TimerWheel: "as above",
  "src/web/socket/notification.ts": "WebSocket frames",
  textFrameHead: "WebSocket frames",
  FrameEncoder: "WebSocket frames",
  "src/shared/store/directory-lock.ts": "a directory of the file system",
  lockDirectory: "a directory of the file system",
  UsageCounter: "it counts",
  "src/hosted/admission/waiting-batches.ts": "batches that wait for their rate",
  WaitingBatches: "batches that wait for their rate",
  refusalWhileWaiting: "batches that wait for their rate",
  LETTER_N: "the letter n",
  PAYER: "whoever pays: the wallet of the local chain",
  parsePayer: "whoever pays",
  closeForPayer: "whoever pays",
};

/**
 * Whole names that no property, parameter or variable of `src` has, in any file, and the kinds that
 * no union has. Unlike the words above, they are not looked for in parts of names.
 */
const PRIVATE_NAMES: readonly string[] = [
  ...["it", "desk", "seat", "roster", "shelf", "station", "teller", "till", "toll", "wheel"],
  ...["arrival", "asks", "directory", "lender", "lent", "occasion", "presented", "standing"],
  ...["taking", "trouble", "truth", "unpaid"],
  ...["ask", "letter", "moved", "question", "quota", "reach", "retire", "rounds", "told", "wants"],
];
const PRIVATE_KINDS = /\bkind(?::| ===| !==) "(?:address|arrival|presented|told|trouble|unpaid)"/g;

/** Such names in the files where they are the field's own for what they name. */
const ALLOWED_PRIVATE_NAMES: Readonly<Record<string, string>> = {
  "src/shared/store/directory-lock.ts: directory": "a directory of the file system",
  "src/shared/store/sqlite.ts: directory": "a directory of the file system",
  "src/core/provider-errors/category.ts: quota": "the quota of a provider's plan",
  "console/health/states.ts: quota": "as above",
  "src/cli/init.ts: question": "the method of node:readline that asks one",
};

/** Packages of `dependencies` that no file of `src` imports, with the reason. */
const ALLOWED_DEPENDENCIES: Readonly<Record<string, string>> = {
  "@foundry-rs/anvil": "a program: started by its path, never imported",
};

const MAX_COLUMNS = 100;

/** Holds the text of programs that a caller runs, which read the caller's own environment. */
const PRINTED_PROGRAMS = "src/payments/rails/rails.ts";
/** Speaks HTTP to wallets as a node of the local chain, and not to callers of the service. */
const LOCAL_CHAIN_FRONT = "src/devnet/payments/reserve-proxy.ts";

/** What is known of payment rails in every process: the rest of payments is heavy. */
const LIGHT_RAIL_FILES: RegExp = /^src\/payments\/rails\/(rails?|rail-kind)\.ts$/;

/** Builds the console at the first start, so what it needs is no development dependency. */
const BUILD_SCRIPT = "bin/build-console.ts";

const ROOT = join(import.meta.dirname, "..");
const SOURCES: readonly Source[] = globSync("src/**/*.ts", { cwd: ROOT }).map((path) => ({
  path: path.replaceAll("\\", "/"),
  text: readFileSync(join(ROOT, path), "utf8"),
}));

/** The console: an application of its own that knows types of the contract, and nothing else. */
const CONSOLE: readonly Source[] = globSync("console/**/*.{ts,tsx}", { cwd: ROOT }).map((path) => ({
  path: path.replaceAll("\\", "/"),
  text: readFileSync(join(ROOT, path), "utf8"),
}));
/** Rules that hold for the console as for `src`. */
const CONSOLE_RULES: readonly string[] = [
  "no default exports",
  "no enums and no namespaces",
  "no type any",
  "no mutable state at module level",
  "every file opens by saying what it is",
  "nothing is left for later",
  "no file or folder has a name that says nothing",
];
/** Whom the folders of the console may import, beside themselves; pages never import each other. */
const CONSOLE_MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  api: [],
  format: [],
  health: ["api", "format"],
  app: ["api", "components", "format", "health", "pages"],
  components: ["api", "app", "format", "health"],
  snippets: ["components"],
  wallet: ["api"],
  editor: [],
  pages: ["api", "app", "components", "editor", "format", "health", "snippets", "wallet"],
  "main.tsx": ["api", "app", "styles"],
  "css.d.ts": [],
};

const RULES: readonly Rule[] = [
  {
    name: "every room imports only the rooms it may know",
    bad: [
      sample("src/core/a.ts", 'import { x } from "../runtime.ts";'),
      sample("src/upstream/a.ts", 'import type { X } from "../hosted/keys/keys.ts";'),
      sample("src/payments/a.ts", 'import type { X } from "../hosted/keys/keys.ts";'),
      sample("src/hosted/a.ts", 'import { x } from "../shared/processes/control.ts";'),
      sample("src/hosted/a.ts", 'export { x } from "../web/server.ts";'),
      sample("src/core/a.ts", 'import {\n  x,\n} from "../observe/observer.ts";'),
      sample("src/web/rpc/a.ts", 'const { x } = await import("../../config/config.ts");'),
      sample("src/devnet/a.ts", 'import "../upstream/engine/router.ts";'),
      sample("src/app/app.ts", 'import { x } from "../main.ts";'),
      sample("src/kitchen/a.ts", "export const x = 1;"),
    ],
    breaches: ({ path, text }) => {
      const room = roomOf(path);
      const allowed = MAY_IMPORT[room];
      if (allowed === undefined)
        return [`${room} is in no row of the table: add it with what it may import`];
      return importsOf(text)
        .filter((target) => target.startsWith("."))
        .map((target) => posix.join(posix.dirname(path), target))
        .filter((target) => roomOf(target) !== room && !allowed.includes(roomOf(target)))
        .filter((target) => !Object.hasOwn(ALLOWED_IMPORTS, `${path} → ${target}`))
        .map((target) => `${room} must not import ${target}`);
    },
  },
  {
    name: "only the composition root asks which process this is, or whether there are others",
    bad: [
      sample("src/upstream/a.ts", "if (bus === null) return;"),
      sample("src/hosted/a.ts", "bus?.publish(TOPIC, 1);"),
      sample("src/observe/a.ts", "await bus.request(SUPERVISOR, question);"),
      sample("src/web/a.ts", "if (workers === 1) return;"),
    ],
    breaches: ({ path, text }) =>
      /^src\/(app|cli|shared|core\/workers)\//.test(path)
        ? []
        : found(code(text), /\bbus\?\.|\bbus [!=]== null|\bSUPERVISOR\b|\bworkers ([!=]==|>) 1\b/g),
  },
  {
    name: "what documents and settings know of payment rails loads none of their libraries",
    bad: [
      sample("src/payments/rails/rails.ts", 'import { z } from "zod";'),
      sample("src/payments/rails/rail-kind.ts", 'import { keyOf } from "./tempo/payment.ts";'),
      sample("src/config/a.ts", 'import { openPayments } from "../payments/open.ts";'),
      sample("src/devnet/a.ts", 'import type { X } from "../payments/payments.ts";'),
    ],
    breaches: ({ path, text }) => {
      if (!LIGHT_RAIL_FILES.test(path) && !["config", "devnet"].includes(roomOf(path))) return [];
      return [...text.matchAll(/^(?:import|export|\})[^;'"]*?\bfrom\s*"([^"]+)"/gm)]
        .map(([, target]) => target ?? "")
        .map((target) =>
          target.startsWith(".") ? posix.join(posix.dirname(path), target) : target,
        )
        .filter((target) => LIGHT_RAIL_FILES.test(path) || target.startsWith("src/payments/"))
        .filter(
          (target) =>
            !["core", "runtime"].includes(roomOf(target)) && !LIGHT_RAIL_FILES.test(target),
        )
        .map((target) => `loads ${target}`);
    },
  },
  {
    name: "core imports no package and nothing of the platform",
    bad: [
      sample("src/core/a.ts", 'import { readFileSync } from "node:fs";'),
      sample("src/core/a.ts", 'import { z } from "zod";'),
      sample("src/core/a.ts", 'import ipaddr from "ipaddr.js";'),
    ],
    breaches: ({ path, text }) =>
      roomOf(path) === "core"
        ? importsOf(text)
            .filter((target) => !target.startsWith("."))
            .filter((target) => !Object.hasOwn(CORE_PACKAGES, `${path} → ${target}`))
        : [],
  },
  {
    name: "only web and the composition root speak HTTP to callers",
    bad: [
      sample("src/upstream/a.ts", 'import { createServer } from "node:http";'),
      sample("src/hosted/a.ts", 'import type { Server } from "https";'),
    ],
    breaches: ({ path, text }) =>
      ["web", "app", "cli", "main"].includes(roomOf(path)) || path === LOCAL_CHAIN_FRONT
        ? []
        : importsOf(text).filter((target) => /^(node:)?(http|https|http2)$/.test(target)),
  },
  {
    name: "only main reads the environment",
    bad: [
      sample("src/config.ts", "const port = process.env.PORT;"),
      sample("src/web/a.ts", 'import { env } from "node:process";'),
    ],
    breaches: ({ path, text }) =>
      roomOf(path) === "main" || path === PRINTED_PROGRAMS
        ? []
        : found(
            code(text),
            /\bprocess\s*\.\s*env\b|\bimport[^;]*\benv\b[^;]*\bfrom\s*["'](node:)?process/g,
          ),
  },
  {
    name: "no default exports",
    bad: [
      sample("src/a.ts", "export default function f() {}"),
      sample("src/a.ts", "export { f as default };"),
    ],
    breaches: ({ text }) => found(code(text), /\bexport\s+default\b|\bas\s+default\b/g),
  },
  {
    name: "no enums and no namespaces",
    bad: [
      sample("src/a.ts", "export const enum Color { Red }"),
      sample("src/a.ts", "declare namespace N {}"),
    ],
    breaches: ({ text }) =>
      found(code(text), /^\s*(export\s+|declare\s+|const\s+)*(enum|namespace)\s+\w+/gm),
  },
  {
    name: "no type any",
    bad: [
      sample("src/a.ts", "const x: any = 1;"),
      sample("src/a.ts", "const x = y as any;"),
      sample("src/a.ts", "type X = Map<string, any>;"),
    ],
    breaches: ({ text }) =>
      found(code(text), /(:\s*|\bas\s+|[<,|&]\s*|=\s*)any\b(?=\s*([;,)>=|&[\]}]|$))/gm),
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
      found(
        code(text),
        /^(export\s+)?(let|var)\s.*|^(export\s+)?const\s+\w+[^=\n]*=\s*(new\s+(Weak)?(Map|Set)\b(<[^\n]*>)?(\(\))?;|\[\];|\{\};).*/gm,
      ),
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
    for (const source of bad)
      assert.notDeepEqual(
        breaches(source),
        [],
        `the rule does not see ${source.text.slice(0, 80)}`,
      );
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
    '// What it is. Not any, enum, let x; just "process.env" in words.\nimport { x } from ' +
      '"../core/x.ts";\nexport const TABLE = new Map([[1, 2]]);\n',
  );
  for (const { name, breaches } of RULES) assert.deepEqual(breaches(good), [], name);
});

test("house rule: no import cycles", () => {
  assert.deepEqual(
    cycleIn([
      sample("src/a.ts", 'import "./b.ts";'),
      sample("src/b.ts", 'import type { C } from "./c.ts";'),
      sample("src/c.ts", 'import "./a.ts";'),
    ]),
    ["src/a.ts", "src/b.ts", "src/c.ts", "src/a.ts"],
  );
  assert.deepEqual(cycleIn(SOURCES), []);
});

test("house rule: folders and files are acyclic among siblings", () => {
  const bad = [
    sample("src/a/x/1.ts", 'import "../y/2.ts";'),
    sample("src/a/y/2.ts", ""),
    sample("src/a/y/3.ts", 'import "../x/4.ts";'),
    sample("src/a/x/4.ts", ""),
  ];
  assert.deepEqual(siblingCyclesIn(bad), ["src/a: x → y → x"]);
  assert.deepEqual(siblingCyclesIn(SOURCES), []);
});

test("house rule: every exception to the import table is still needed", () => {
  const imports = new Set(
    SOURCES.flatMap(({ path, text }) =>
      importsOf(text).map((it) => `${path} → ${posix.join(posix.dirname(path), it)}`),
    ),
  );
  assert.deepEqual(
    Object.keys(ALLOWED_IMPORTS).filter((it) => !imports.has(it)),
    [],
  );
});

for (const { name, breaches } of RULES.filter((rule) => CONSOLE_RULES.includes(rule.name)))
  test(`house rule of the console: ${name}`, () => {
    assert.deepEqual(
      CONSOLE.flatMap((source) => breaches(source).map((breach) => `${source.path}: ${breach}`)),
      [],
    );
  });

test("house rule of the console: folders import what they may know, pages not each other", () => {
  const good = sample("console/pages/a/a.tsx", 'import { x } from "../../api/client.ts";');
  const bad = [
    sample("console/api/a.ts", 'import { x } from "../pages/a/a.tsx";'),
    sample("console/pages/a/a.tsx", 'import { x } from "../b/b.tsx";'),
    sample("console/api/a.ts", 'import { x } from "../../src/core/x.ts";'),
    sample("console/api/a.ts", 'import type { X } from "../../src/hosted/x.ts";'),
    sample("console/app/a.ts", 'import { x } from "viem";'),
  ];
  assert.deepEqual(consoleImportsAgainst(good), []);
  for (const source of bad) assert.equal(consoleImportsAgainst(source).length, 1, source.text);
  assert.ok(CONSOLE.length >= 10, `found only ${CONSOLE.length} files of the console`);
  assert.deepEqual(CONSOLE.flatMap(consoleImportsAgainst), []);
});

test("house rule of the console: names are the field's own", () => {
  // Texts between elements are no names, and the reader of names cannot tell them apart.
  const identifiersIn = (source: Source): readonly string[] =>
    source.path.endsWith(".tsx") ? [] : privateIdentifiersIn(source);
  assert.deepEqual(
    CONSOLE.flatMap((source) =>
      [...privateNamesIn(source), ...identifiersIn(source)].map(
        (name) => `${source.path}: ${name}`,
      ),
    ).filter((place) => !Object.hasOwn(ALLOWED_PRIVATE_NAMES, place)),
    [],
  );
});

test("house rule of the console: markup is made of elements, never of text", () => {
  const unsafe = /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|\beval\(/g;
  assert.deepEqual(
    CONSOLE.flatMap(({ path, text }) =>
      found(code(text), unsafe).map((each) => `${path}: ${each}`),
    ),
    [],
  );
});

test("house rule: src imports what dependencies name, and the other way round", () => {
  const text = readFileSync(join(ROOT, "package.json"), "utf8");
  const { dependencies } = JSON.parse(text) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  const sources = [...SOURCES, ...CONSOLE, { path: BUILD_SCRIPT, text: read(BUILD_SCRIPT) }];
  const imported = new Set(sources.flatMap((source) => importsOf(source.text).flatMap(packageOf)));
  assert.deepEqual([...imported].filter((it) => !Object.hasOwn(dependencies, it)).sort(), []);
  const unused = Object.keys(dependencies).filter(
    (it) => !imported.has(it) && !Object.hasOwn(ALLOWED_DEPENDENCIES, it),
  );
  assert.deepEqual(unused, []);
});

test("house rule: no two exported types have one name", () => {
  const bad = [sample("src/a.ts", "export type X = 1;"), sample("src/b.ts", "export class X {}")];
  assert.deepEqual(sharedTypesIn(bad), ["X: src/a.ts, src/b.ts"]);
  assert.deepEqual(sharedTypesIn(SOURCES), []);
});

test("house rule: names are the field's own", () => {
  const bad = sample(
    "src/web/desk.ts",
    "export function createHolder() {}\nexport const SEAT_COUNT = 1;",
  );
  assert.deepEqual(privateNamesIn(bad), ["src/web/desk.ts", "createHolder", "SEAT_COUNT"]);
  const isAllowed = (name: string): boolean =>
    Object.keys(ALLOWED_NAMES).some((it) =>
      it.endsWith("*") ? name.startsWith(it.slice(0, -1)) : it === name,
    );
  assert.deepEqual(
    SOURCES.flatMap((it) =>
      privateNamesIn(it)
        .filter((name) => !isAllowed(name))
        .map((name) => `${it.path}: ${name}`),
    ),
    [],
  );
});

test("house rule: properties, parameters and variables have the field's names as well", () => {
  const bad = sample(
    "src/a.ts",
    'const { seat } = rows.map((it) => `a seat`);\nif (x.kind === "told") y.till = 1;\n' +
      '// it and till in words, and "desk" in a text, are not names\n',
  );
  assert.deepEqual(privateIdentifiersIn(bad), ["seat", "it", "till", 'kind === "told"']);
  assert.deepEqual(
    SOURCES.flatMap((source) =>
      privateIdentifiersIn(source)
        .map((name) => `${source.path}: ${name}`)
        .filter((place) => !Object.hasOwn(ALLOWED_PRIVATE_NAMES, place)),
    ),
    [],
  );
});

test(`house rule: no line is longer than ${MAX_COLUMNS} columns`, () => {
  const files = globSync(["{src,test,bench,bin,console}/**/*.{ts,tsx,mjs}"], { cwd: ROOT }).filter(
    (path) => !path.includes("node_modules"),
  );
  const long = files.flatMap((path) =>
    withoutTexts(readFileSync(join(ROOT, path), "utf8"))
      .split("\n")
      .flatMap((line, index) => (line.length > MAX_COLUMNS ? [`${path}:${index + 1}`] : [])),
  );
  assert.deepEqual(long, []);
});

test("house rule: tests draw by chance from a seed that they print", () => {
  const unrepeatable = /\bMath\.random\b|\bDate\.now\(\) %/;
  assert.ok(unrepeatable.test("const seed = Date.now() % 1_000_000;"));
  assert.ok(unrepeatable.test("const seed = Math.floor(Math.random() * 2 ** 31);"));
  const files = globSync("test/**/*.ts", { cwd: ROOT }).filter((path) => !SEED_FILES.has(path));
  assert.deepEqual(
    files.filter((path) => unrepeatable.test(withoutTexts(read(path)))),
    [],
  );
});

/** Where seeds come from, and these rules. */
const SEED_FILES: ReadonlySet<string> = new Set([
  "test/fakes/seed.ts",
  "test/architecture.test.ts",
]);

/** What a file of the console imports and may not. */
function consoleImportsAgainst({ path, text }: Source): readonly string[] {
  const [, folder = "", page = ""] = path.split("/");
  return importsOf(text).filter((target) => {
    if (!target.startsWith(".")) return !CONSOLE_PACKAGES.some((name) => target.startsWith(name));
    const file = posix.join(posix.dirname(path), target);
    if (file.startsWith("src/")) return !isContractType(file, target, text);
    const [, otherFolder = "", otherPage = ""] = file.split("/");
    if (otherFolder === folder) return folder === "pages" && otherPage !== page;
    return CONSOLE_MAY_IMPORT[folder]?.includes(otherFolder) !== true;
  });
}

const CONSOLE_PACKAGES = ["preact", "uplot", "eventsource-parser", "zod"];

/** Whether an import takes a type of the contract, and nothing else of the service. */
function isContractType(file: string, target: string, text: string): boolean {
  if (!file.startsWith("src/web/contract/")) return false;
  const line = text.split("\n").find((each) => each.includes(`"${target}"`)) ?? "";
  return line.startsWith("import type ");
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

function sample(path: string, text: string): Source {
  return { path, text };
}

/** The top-level folder of a file, or the name of a file that lies in `src` itself. */
function roomOf(path: string): string {
  const [, first = "", second = ""] = path.split("/");
  return first === "shared" ? `${first}/${second}` : first.replace(/\.ts$/, "");
}

/** Everything a text imports or re-exports, as written. */
function importsOf(text: string): readonly string[] {
  const pattern =
    /^(?:import\b|export\b|\})[^"'\n]*\bfrom\s+["']([^"']+)["']|^import\s+["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']/gm;
  return Array.from(
    text.matchAll(pattern),
    ([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? "",
  );
}

function found(text: string, pattern: RegExp): readonly string[] {
  return text.match(pattern) ?? [];
}

/** The text without its comments and the contents of its strings. */
function code(text: string): string {
  return text.replace(
    /\/\*[\s\S]*?\*\/|\/\/.*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g,
    (match) =>
      match.startsWith("/") ? "" : match.replace(/\b(?!node:process|process)\w+\b/g, "_"),
  );
}

/** The first import cycle, as the files on it; empty when there is none. */
function cycleIn(sources: readonly Source[]): readonly string[] {
  return cycleOf(
    new Map(
      sources.map(({ path, text }) => [
        path,
        new Set(
          importsOf(text).flatMap((target) =>
            target.startsWith(".") ? [posix.join(posix.dirname(path), target)] : [],
          ),
        ),
      ]),
    ),
  );
}

/** The first cycle of a graph; empty when there is none. */
function cycleOf(graph: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] {
  const done = new Set<string>();
  const visit = (node: string, trail: readonly string[]): readonly string[] => {
    if (trail.includes(node)) return [...trail.slice(trail.indexOf(node)), node];
    if (done.has(node)) return [];
    for (const target of graph.get(node) ?? []) {
      const cycle = visit(target, [...trail, node]);
      if (cycle.length > 0) return cycle;
    }
    done.add(node);
    return [];
  };
  for (const node of graph.keys()) {
    const cycle = visit(node, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}

/**
 * A source without what its strings, templates and patterns say: a long text or pattern may stand
 * in one line.
 */
function withoutTexts(text: string): string {
  const texts =
    /\/\/.*|\/\*[\s\S]*?\*\/|`(?:\\[\s\S]|[^`\\])*`|"(?:\\.|[^"\\\n])*"|(?<=[=(,:[!&|?;\s])\/(?![/*])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\n\\[])+\//g;
  return text.replace(texts, (match) =>
    /^\/[/*]/.test(match) ? match : match.replace(/[^\n]/g, ""),
  );
}

/** The package of an import; none for files and for the platform. */
function packageOf(target: string): readonly string[] {
  if (target.startsWith(".") || target.startsWith("node:")) return [];
  return [
    target
      .split("/")
      .slice(0, target.startsWith("@") ? 2 : 1)
      .join("/"),
  ];
}

/** One cycle among the children (folders and files) of each folder, as text. */
function siblingCyclesIn(sources: readonly Source[]): readonly string[] {
  const graphs = new Map<string, Map<string, Set<string>>>();
  for (const { path, text } of sources) {
    for (const target of importsOf(text)) {
      if (!target.startsWith(".")) continue;
      const from = path.split("/");
      const to = posix.join(posix.dirname(path), target).split("/");
      const depth = from.findIndex((part, index) => part !== to[index]);
      const [child, other] = [from[depth], to[depth]];
      if (child === undefined || other === undefined) continue;
      const folder = from.slice(0, depth).join("/");
      const graph = graphs.get(folder) ?? new Map<string, Set<string>>();
      graphs.set(folder, graph.set(child, (graph.get(child) ?? new Set()).add(other)));
    }
  }
  return [...graphs].flatMap(([folder, graph]) => {
    const cycle = cycleOf(graph);
    return cycle.length === 0 ? [] : [`${folder}: ${cycle.join(" → ")}`];
  });
}

/** The names of exported types that several files export, with those files. */
function sharedTypesIn(sources: readonly Source[]): readonly string[] {
  const files = new Map<string, string[]>();
  for (const { path, text } of sources)
    for (const [, name = ""] of text.matchAll(
      /^export (?:abstract )?(?:interface|type|class) (\w+)/gm,
    ))
      files.set(name, [...(files.get(name) ?? []), path]);
  return [...files].flatMap(([name, paths]) =>
    paths.length > 1 ? [`${name}: ${paths.join(", ")}`] : [],
  );
}

/** The path and the exported names of a file that bear a private word. */
function privateNamesIn({ path, text }: Source): readonly string[] {
  const names = Array.from(
    text.matchAll(/^export (?:async )?(?:function\*?|const|interface|type|class) (\w+)/gm),
    ([, name]) => name ?? "",
  );
  return [path, ...names].filter((name) =>
    wordsOf(name).some((word) => Object.hasOwn(PRIVATE_WORDS, word)),
  );
}

/** The private names and kinds in the code of a file, comments and texts left out. */
function privateIdentifiersIn({ text }: Source): readonly string[] {
  const names = withoutTexts(text)
    .replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "")
    .match(/[A-Za-z_$][\w$]*/g);
  const kinds = text.match(PRIVATE_KINDS) ?? [];
  return [...(names ?? []).filter((name) => PRIVATE_NAMES.includes(name)), ...kinds];
}

/** The words of a name or path, in lower case. */
function wordsOf(name: string): readonly string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
}
