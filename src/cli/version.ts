// What this build is called: the version of the package, and the commit it was made from.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { textOf } from "./command.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const COMMIT = /^[0-9a-f]{7,64}$/;
/** Characters of a commit that are shown. */
const SHOWN_CHARS = 8;

/** The environment of a process. */
type Env = Readonly<Record<string, string | undefined>>;

/**
 * `0.2.0+1a2b3c4d`: the version of `package.json`, and the commit, where it is known. `root`: the
 * folder that holds `package.json`.
 */
export function versionOf(env: Env, root: string = ROOT): string {
  const commit = commitOf(env, root);
  const version = String(manifestIn(root).version);
  return commit === undefined ? version : `${version}+${commit.slice(0, SHOWN_CHARS)}`;
}

/**
 * The commit of `SVC_COMMIT`, of the package's `package.json` or, in a clone of the repository, the
 * one that is checked out.
 */
export function commitOf(env: Env, root: string): string | undefined {
  const commits = [env["SVC_COMMIT"], manifestIn(root).gitHead, checkedOut(root)];
  return commits.find((text) => typeof text === "string" && COMMIT.test(text));
}

function manifestIn(root: string): { readonly version: unknown; readonly gitHead?: string } {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly version: unknown;
    readonly gitHead?: string;
  };
}

/** The commit that is checked out; undefined = this is no clone, or it cannot be read. */
function checkedOut(root: string): string | undefined {
  const folder = gitFolder(root);
  const head = textOf(join(folder, "HEAD"))?.trim();
  const ref = head?.match(/^ref: (refs\/[^\s]+)$/)?.[1];
  if (ref === undefined) return head;
  // A linked working tree keeps its branches in the folder of the clone.
  const common = resolve(folder, textOf(join(folder, "commondir"))?.trim() ?? ".");
  return textOf(join(common, ref))?.trim() ?? packed(common, ref);
}

/** `.git`, or the folder that the file of this name names. */
function gitFolder(root: string): string {
  const path = join(root, ".git");
  const linked = textOf(path)
    ?.trim()
    .match(/^gitdir: (.+)$/)?.[1];
  return linked === undefined ? path : resolve(root, linked);
}

function packed(common: string, ref: string): string | undefined {
  const lines = textOf(join(common, "packed-refs"))?.split("\n") ?? [];
  return lines.find((line) => line.endsWith(` ${ref}`))?.split(" ")[0];
}
