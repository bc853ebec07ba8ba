// Builds the console (`console/`) into `node_modules/.console/`: files with hashed names,
// compressed once. `npm start` does so when the sources changed since the last build; the npm
// package carries the result. `node bin/svc.mjs --run bin/build-console.ts` builds in any case.
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { OutputFile } from "esbuild";

const ROOT = join(import.meta.dirname, "..");
const SOURCE = join(ROOT, "console");
/** Where `src/web/pages/console-files.ts` looks. */
const TARGET = join(ROOT, "node_modules/.console");
const MANIFEST = "manifest.json";
/** Packages that end up in the files. */
export const CONSOLE_PACKAGES: readonly string[] = ["preact", "uplot", "eventsource-parser"];

/** What a build came to. */
export interface ConsoleBuild {
  /** Of everything that it was made from. */
  readonly sources: string;
  readonly files: readonly ConsoleFile[];
}

/** A file of the console. */
export interface ConsoleFile {
  readonly name: string;
  readonly bytes: number;
  readonly gzipBytes: number;
}

/** Whether the console was built from the sources as they are now; without sources, at all. */
export function isConsoleBuilt(): boolean {
  const manifest = join(TARGET, MANIFEST);
  if (!existsSync(manifest)) return false;
  if (!existsSync(SOURCE)) return true;
  const { sources } = JSON.parse(readFileSync(manifest, "utf8")) as ConsoleBuild;
  return sources === hashOfSources();
}

/** Builds the console and puts it in place with one rename. */
export async function buildConsole(): Promise<ConsoleBuild> {
  const { build } = await import("esbuild");
  const sources = hashOfSources();
  const { outputFiles } = await build({
    entryPoints: [join(SOURCE, "main.tsx")],
    outdir: "assets",
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    entryNames: "[name]-[hash]",
    legalComments: "none",
    logLevel: "silent",
  });
  const stage = `${TARGET}-${process.pid}`;
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  const files = outputFiles.map((file) => writeAsset(stage, file));
  writeFileSync(join(stage, "index.html"), documentOf(files));
  const result = { sources, files };
  writeFileSync(join(stage, MANIFEST), `${JSON.stringify(result, null, 2)}\n`);
  replaceWith(stage);
  return result;
}

function writeAsset(stage: string, { path, contents }: OutputFile): ConsoleFile {
  const name = relative(join(ROOT, "assets"), path).replace(/.*[\\/]/, "");
  const gzip = gzipSync(contents, { level: 9 });
  const brotli = brotliCompressSync(contents, {
    params: { [constants.BROTLI_PARAM_SIZE_HINT]: contents.length },
  });
  writeFileSync(join(stage, name), contents);
  writeFileSync(join(stage, `${name}.gz`), gzip);
  writeFileSync(join(stage, `${name}.br`), brotli);
  return { name, bytes: contents.length, gzipBytes: gzip.length };
}

/** The document with the names of script and style sheet. */
function documentOf(files: readonly ConsoleFile[]): string {
  const nameOf = (pattern: RegExp): string =>
    files.find(({ name }) => pattern.test(name))?.name ?? "";
  return readFileSync(join(SOURCE, "index.html"), "utf8")
    .replace("SCRIPT", nameOf(/\.js$/))
    .replace("STYLE", nameOf(/\.css$/));
}

/** Another process may do the same at this moment: one of the two stays. */
function replaceWith(stage: string): void {
  const old = `${stage}-old`;
  if (existsSync(TARGET)) renameSync(TARGET, old);
  try {
    renameSync(stage, TARGET);
  } catch (error) {
    if (!existsSync(TARGET)) throw error;
    rmSync(stage, { recursive: true, force: true });
  }
  rmSync(old, { recursive: true, force: true });
}

/** Of the console's own files, of this one, and of the versions that are bundled. */
function hashOfSources(): string {
  const hash = createHash("sha256");
  const files = globSync("**/*.{ts,tsx,css,html}", { cwd: SOURCE }).sort();
  for (const path of files)
    hash
      .update(path)
      .update("\0")
      .update(readFileSync(join(SOURCE, path)));
  hash.update(readFileSync(import.meta.filename));
  for (const name of [...CONSOLE_PACKAGES, "esbuild"]) hash.update(versionOf(name));
  return hash.digest("hex");
}

function versionOf(name: string): string {
  const path = join(ROOT, "node_modules", name, "package.json");
  if (!existsSync(path)) return "";
  return String((JSON.parse(readFileSync(path, "utf8")) as { readonly version: unknown }).version);
}

if (process.argv[1] === import.meta.filename) {
  const { files } = await buildConsole();
  for (const { name, bytes, gzipBytes } of files)
    console.log(`${name}  ${bytes} bytes, ${gzipBytes} compressed`);
}
