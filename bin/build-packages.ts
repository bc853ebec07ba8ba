// Bundles packages that the service imports into `node_modules/.packages/`: a start reads one file
// of each instead of up to 1,800 (`src/module-hooks.ts`). `npm start` does so when other versions
// were installed. `node bin/build-packages.ts` builds in any case.
import { existsSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { Plugin } from "esbuild";
import {
  BUNDLE_LIST,
  BUNDLES,
  type BundleList,
  builderHash,
  bundleList,
  hashOf,
  installedVersion,
  MODULES,
} from "../src/bundled-packages.ts";

/**
 * What is imported of packages of many files. Parts of a package that share state stand here
 * together, so that they share it in the bundles too.
 */
export const BUNDLED: readonly string[] = [
  ...["@x402/core/http", "@x402/core/schemas"],
  ...["kysely", "kysely/migration"],
  ...["mppx", "mppx/client", "mppx/evm", "mppx/evm/client", "mppx/tempo"],
  ...["ox/Secp256k1", "ox/tempo"],
  "pino",
  ...["viem", "viem/accounts", "viem/actions", "viem/chains", "viem/tempo", "viem/tempo/chains"],
  "viem/utils",
  "yaml",
  "zod",
];
/** Packages of CommonJS ask for modules of Node by `require`. */
export const REQUIRE: string =
  'import { createRequire as requireOf } from "node:module"; ' +
  "const require = requireOf(import.meta.url);";
const ROOT = join(import.meta.dirname, "..");
const TARGET = join(MODULES, BUNDLES);
const NAMESPACE = "bundled";

/** Whether starts can use the bundles. */
export function arePackagesBundled(): boolean {
  return bundleList() !== null;
}

/** Builds the bundles into a folder of their own, then has the list name it. */
export async function bundlePackages(): Promise<void> {
  const { build } = await import("esbuild");
  const stage = join(TARGET, `stage-${process.pid}`);
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: Object.fromEntries(BUNDLED.map((name) => [name, `${NAMESPACE}:${name}`])),
    plugins: [await exportedByName()],
    outdir: stage,
    outExtension: { ".js": ".mjs" },
    banner: { js: REQUIRE },
    bundle: true,
    splitting: true,
    preserveSymlinks: true,
    metafile: true,
    platform: "node",
    format: "esm",
    target: "node24",
    logLevel: "error",
  });
  const bundled = Object.keys(metafile.inputs).flatMap(folderOf);
  const folders = [...new Set(["esbuild", ...bundled])].sort();
  const built = {
    builder: builderHash(),
    versions: Object.fromEntries(folders.map((folder) => [folder, installedVersion(folder)])),
  };
  const folder = `${built.builder}-${hashOf(JSON.stringify(built.versions))}`;
  const names = Object.keys(metafile.outputs).map((path) => relative(stage, join(ROOT, path)));
  place(stage, join(TARGET, folder));
  const sizes = Object.fromEntries(
    names.map((name) => [`${folder}/${name}`, statSync(join(TARGET, folder, name)).size]),
  );
  const files = Object.fromEntries(BUNDLED.map((name) => [name, `${folder}/${name}.mjs`]));
  announce({ ...built, files, sizes });
}

/** Entries that export each name that a package does, whichever kind of module it is. */
async function exportedByName(): Promise<Plugin> {
  const names = new Map<string, string>();
  for (const name of BUNDLED) {
    const all = Object.keys(await import(name)).filter((each) => /^[\w$]+$/.test(each));
    names.set(name, `export { ${all.join(", ")} } from ${JSON.stringify(name)};`);
  }
  return {
    name: NAMESPACE,
    setup({ onResolve, onLoad }) {
      const filter = new RegExp(`^${NAMESPACE}:`);
      onResolve({ filter }, ({ path }) => ({
        path: path.slice(NAMESPACE.length + 1),
        namespace: NAMESPACE,
      }));
      onLoad({ filter: /^/, namespace: NAMESPACE }, ({ path }) => ({
        contents: names.get(path) ?? "",
        resolveDir: ROOT,
      }));
    },
  };
}

/** The folder in `node_modules` of the package that a file belongs to. */
export function folderOf(path: string): readonly string[] {
  const folder = /^node_modules\/(.*node_modules\/)?(@[^/]+\/)?[^/]+/.exec(path)?.[0];
  return folder === undefined ? [] : [folder.replace("node_modules/", "")];
}

/** Another process may have put the same there at this moment; an older one may lack files. */
function place(stage: string, folder: string): void {
  if (!arePackagesBundled()) rmSync(folder, { recursive: true, force: true });
  try {
    renameSync(stage, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(stage, { recursive: true });
  }
}

/**
 * Writes the list. What it named before stays where it is: a service that runs loads the rest of it
 * when it is needed.
 */
function announce(list: BundleList): void {
  const next = join(TARGET, `${process.pid}-${BUNDLE_LIST}`);
  writeFileSync(next, `${JSON.stringify(list, null, 2)}\n`);
  renameSync(next, join(TARGET, BUNDLE_LIST));
}

if (process.argv[1] === import.meta.filename) await bundlePackages();
