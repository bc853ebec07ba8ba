// Where the bundles of packages lie, and whether they are whole and of the versions that are
// installed. `bin/build-packages.ts` makes them. Read before all other modules, so it needs none.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Where packages are installed. */
export const MODULES: string = join(import.meta.dirname, "../node_modules");
/** The folder of the bundles in there, and its list of what it holds. */
export const BUNDLES = ".packages";
export const BUNDLE_LIST = "bundles.json";

const BUILDER = join(import.meta.dirname, "../bin/build-packages.ts");

/** What the folder of bundles holds. */
export interface BundleList {
  /** The hash of what built them. */
  readonly builder: string;
  /** Files by what is imported, below the folder of the bundles. */
  readonly files: Readonly<Record<string, string>>;
  /** Versions of all packages in these files, by their folders in `node_modules`. */
  readonly versions: Readonly<Record<string, string>>;
  /** Sizes in bytes of all files, below the folder of the bundles. */
  readonly sizes: Readonly<Record<string, number>>;
}

/**
 * The list; null = there are no bundles, or they are not whole, not of the versions that are
 * installed, or not of those packages that are bundled now: parts of one package would be loaded
 * twice.
 */
export function bundleList(modules: string = MODULES): BundleList | null {
  try {
    const list = parseList(readFileSync(join(modules, BUNDLES, BUNDLE_LIST), "utf8"));
    const isInstalled = ([folder, version]: readonly [string, string]): boolean =>
      installedVersion(folder, modules) === version;
    const isWhole = ([file, bytes]: readonly [string, number]): boolean =>
      statSync(join(modules, BUNDLES, file)).size === bytes;
    const { builder, versions, sizes } = list;
    const areGood =
      builder === builderHash() &&
      Object.entries(versions).every(isInstalled) &&
      Object.entries(sizes).every(isWhole);
    return areGood ? list : null;
  } catch {
    return null;
  }
}

/** The bundles that this process loads. */
export class BundledModules {
  readonly #modules: string;
  readonly #files: BundleList["files"];
  /** By what is imported. Loaded once, a bundle needs its file no more. */
  readonly #urls = new Map<string, string>();

  constructor(modules: string = MODULES) {
    this.#modules = modules;
    this.#files = bundleList(modules)?.files ?? {};
  }

  /**
   * Null = it is loaded from its own files. An installation takes away bundles of services that
   * run, which may need them later.
   */
  urlOf(imported: string): string | null {
    const known = this.#urls.get(imported);
    const file = this.#files[imported];
    if (known !== undefined || file === undefined) return known ?? null;
    const path = join(this.#modules, BUNDLES, file);
    if (!existsSync(path)) return null;
    const { href } = pathToFileURL(path);
    this.#urls.set(imported, href);
    return href;
  }
}

/** The version of the package in a folder of `node_modules`. */
export function installedVersion(folder: string, modules: string = MODULES): string {
  const file = readFileSync(join(modules, folder, "package.json"), "utf8");
  return String((JSON.parse(file) as { readonly version: unknown }).version);
}

/** What the bundles are made by, as it is now. */
export function builderHash(): string {
  return hashOf(readFileSync(BUILDER));
}

/** A short name of this content. */
export function hashOf(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex").slice(0, 16);
}

function parseList(text: string): BundleList {
  return JSON.parse(text) as BundleList;
}
