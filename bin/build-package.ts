// Builds what the npm package holds. `npm pack` begins with it (`prepack`): the program becomes
// JavaScript in `dist/` with the packages that it imports, since Node takes no TypeScript from
// `node_modules`, and the console comes beside it; `package.json` then names no dependency. At its
// end `npm pack` has both undone (`postpack`). The container image holds the same build.
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import type { Plugin } from "esbuild";
import { commitOf } from "../src/cli/version.ts";
import { buildConsole, CONSOLE_PACKAGES, isConsoleBuilt } from "./build-console.ts";
import { folderOf, REQUIRE } from "./build-packages.ts";

const ROOT = join(import.meta.dirname, "..");
const DIST = join(ROOT, "dist");
const MANIFEST = join(ROOT, "package.json");
/** The repository's own `package.json` while `npm pack` runs. */
const KEPT_MANIFEST = join(ROOT, ".svc/package.json");
/** What the `package.json` of the package says of itself, and what its launcher reads. */
const TOLD = ["name", "version", "description", "license", "private", "type", "engines", "bin"];
/** Loaded where they are installed, by packages that do without. */
const OPTIONAL = ["bufferutil", "pg-native", "utf-8-validate"];
const CONSOLE = "node_modules/.console";
/** `new URL("./a.ts", import.meta.url)` names a program of its own: a thread. */
const THREAD = /new URL\("\.\/([\w-]+)\.ts", import\.meta\.url\)/g;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: unknown;
  readonly [field: string]: unknown;
}

/** Builds `dist/`. */
export async function buildProgram(): Promise<void> {
  const { build } = await import("esbuild");
  rmSync(DIST, { recursive: true, force: true });
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ["src/main.ts", ...threads()],
    outdir: DIST,
    entryNames: "[name]",
    plugins: [fromDist],
    external: OPTIONAL,
    banner: { js: REQUIRE },
    bundle: true,
    splitting: true,
    preserveSymlinks: true,
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: "none",
    metafile: true,
    platform: "node",
    format: "esm",
    target: "node24",
    logLevel: "error",
  });
  const folders = [...Object.keys(metafile.inputs).flatMap(folderOf), ...CONSOLE_PACKAGES];
  writeFileSync(join(DIST, "LICENSES.txt"), licencesOf([...new Set(folders)].sort()));
  if (!isConsoleBuilt()) await buildConsole();
  cpSync(join(ROOT, CONSOLE), join(DIST, "console"), { recursive: true });
}

/** Files that are started as threads. */
function threads(): readonly string[] {
  return globSync("src/**/*.ts", { cwd: ROOT }).flatMap((path) =>
    [...readFileSync(join(ROOT, path), "utf8").matchAll(THREAD)].map(([, name]) =>
      join(dirname(path), `${name}.ts`),
    ),
  );
}

/**
 * A bundled module does not stand where its source does. Data of `src` stays where it is, so its
 * path leads there from `dist/`; threads and the console stand in `dist/`. Packages are found in
 * the bundles, without hooks.
 */
const fromDist: Plugin = {
  name: "from-dist",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path }) => {
      if (!path.startsWith(join(ROOT, "src"))) return null;
      if (path.endsWith("module-hooks.ts")) return { contents: "", loader: "ts" };
      const source = readFileSync(path, "utf8");
      if (!source.includes("import.meta")) return null;
      const here = relative(DIST, path).replaceAll("\\", "/");
      const contents = source
        .replace(THREAD, 'new URL("./$1.js", import.meta["url"])')
        .replaceAll("import.meta.url", `new URL("${here}", import.meta["url"]).href`)
        .replaceAll("import.meta.dirname", `(import.meta["dirname"] + "/${dirname(here)}")`)
        .replaceAll(CONSOLE, "dist/console");
      return { contents, loader: "ts" };
    });
  },
};

/** The licences of packages, each text once. */
function licencesOf(folders: readonly string[]): string {
  const packages = folders.map((folder) => {
    const path = join(ROOT, "node_modules", folder);
    const { name, version, license } = manifestOf(join(path, "package.json"));
    const [file] = globSync("{LICEN[CS]E,licen[cs]e}*", { cwd: path });
    const text = file === undefined ? "" : readFileSync(join(path, file), "utf8").trim();
    return { title: `${name} ${version} (${String(license)})`, text };
  });
  const texts = Map.groupBy(packages, ({ text }) => text);
  const parts = [...texts].map(([text, of]) =>
    [of.map(({ title }) => title).join("\n"), text].join("\n\n").trim(),
  );
  return `This program contains the following packages.\n\n${parts.join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}

/** Writes the `package.json` of the package, and keeps the repository's own. */
function describePackage(): void {
  const own = manifestOf(MANIFEST);
  const told = [...TOLD, "files"].map((field) => [field, own[field]]);
  const commit = commitOf({}, ROOT);
  const gitHead = commit === undefined ? {} : { gitHead: commit };
  mkdirSync(dirname(KEPT_MANIFEST), { recursive: true });
  cpSync(MANIFEST, KEPT_MANIFEST);
  writeFileSync(
    MANIFEST,
    `${JSON.stringify({ ...Object.fromEntries(told), ...gitHead }, null, 2)}\n`,
  );
}

/** Undoes what was done for `npm pack`, also for one that was killed. */
function restore(): void {
  rmSync(DIST, { recursive: true, force: true });
  if (existsSync(KEPT_MANIFEST)) renameSync(KEPT_MANIFEST, MANIFEST);
}

function manifestOf(file: string): Manifest {
  return JSON.parse(readFileSync(file, "utf8")) as Manifest;
}

if (process.argv[1] === import.meta.filename) {
  const [doing] = process.argv.slice(2);
  if (doing === "--pack" || doing === "--packed") restore();
  if (doing !== "--packed") await buildProgram();
  if (doing === "--pack") describePackage();
}
