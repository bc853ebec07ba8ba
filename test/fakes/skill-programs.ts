// The programs in SKILL.md, and the packages that it says to install for each.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { PaymentChains } from "./payment-chains.ts";

/** A program with its packages as npm takes them, with their versions. */
export interface SkillProgram {
  readonly packages: readonly string[];
  readonly code: string;
}

const PROGRAM = /\(`npm install ([^`]+)`\):\n\n```ts\n([\s\S]*?)\n```$/gm;
const MODULES = join(import.meta.dirname, "../../node_modules");

/** Every program of the text that names its packages. */
export function programsIn(text: string): readonly SkillProgram[] {
  return Array.from(text.matchAll(PROGRAM), ([, packages = "", code = ""]) => ({
    packages: packages.split(" "),
    code,
  }));
}

/** Runs it in the folder where its packages are, as the payer; returns what it prints. */
export async function runProgram(
  { code }: SkillProgram,
  folder: string,
  { payer }: PaymentChains,
): Promise<string> {
  const file = join(folder, "program.mts");
  writeFileSync(file, code);
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, [file], {
    env: { PATH, NODE_COMPILE_CACHE, MPPX_PRIVATE_KEY: payer.key },
  });
  return stdout;
}

/** Gives the folder our own copies of the packages, and no other package. */
export function linkPackages(packages: readonly string[], folder: string): void {
  for (const wanted of packages) {
    const name = wanted.slice(0, wanted.lastIndexOf("@"));
    const { version } = JSON.parse(readFileSync(join(MODULES, name, "package.json"), "utf8"));
    if (wanted !== `${name}@${version}`) throw new Error(`${wanted} is here as ${version}`);
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(MODULES, name), link);
  }
}

/** Works in a new folder, which is removed in the end. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "svc-program-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
