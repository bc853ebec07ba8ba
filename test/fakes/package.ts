// The npm package of this checkout, packed from a copy, since `npm pack` changes the folder that it
// packs while it runs, and other tests read that.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const PACKED = [
  ...["LICENSE", "README.md", "bin", "console", "docs", "package-lock.json", "package.json"],
  ...["schema", "src", "svc.production.yml"],
];

/** What a program printed. */
export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
}

/** Packs this checkout into a folder; the path of the tarball. */
export function packInto(folder: string): string {
  const copy = join(folder, "repository");
  mkdirSync(copy);
  for (const path of PACKED) cpSync(join(ROOT, path), join(copy, path), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const { stdout } = npm(copy, "pack", "--json", "--pack-destination", folder);
  assert.ok(!existsSync(join(copy, "dist")), "npm pack leaves no build behind");
  const [{ filename }] = JSON.parse(stdout) as [{ readonly filename: string }];
  return join(folder, filename);
}

/** Installs a tarball into a folder, without the network; the folder of the package. */
export function installInto(folder: string, tarball: string): string {
  mkdirSync(folder);
  npm(folder, "install", "--offline", "--no-audit", "--no-fund", "--prefix", folder, tarball);
  return join(folder, "node_modules/svc");
}

function npm(cwd: string, ...args: readonly string[]): Ran {
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  const ran = spawnSync("npm", args, { cwd, env, encoding: "utf8" });
  assert.equal(ran.status, 0, `npm ${args[0]}: ${ran.stderr}`);
  return ran;
}
