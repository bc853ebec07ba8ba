// What a build is called: two builds of one version are told apart by their commits, in clones,
// linked working trees and images alike.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { versionOf } from "../../src/cli/version.ts";

const COMMIT = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";

function folder(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "svc-version-"));
  after(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries({ "package.json": '{"version":"9.8.7"}', ...files })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

const NAMED = "9.8.7+1a2b3c4d";
const CASES: readonly (readonly [name: string, expected: string, Record<string, string>])[] = [
  ["no clone", "9.8.7", {}],
  ["a branch", NAMED, { ".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": COMMIT }],
  [
    "a packed branch",
    NAMED,
    {
      ".git/HEAD": "ref: refs/heads/main\n",
      ".git/packed-refs": `# pack-refs with: peeled\n${"0".repeat(40)} refs/heads/a/refs/heads/main\n${COMMIT} refs/heads/main\n`,
    },
  ],
  ["a commit without a branch", NAMED, { ".git/HEAD": `${COMMIT}\n` }],
  [
    "a linked working tree",
    NAMED,
    {
      ".git": "gitdir: clone/worktrees/one\n",
      "clone/worktrees/one/HEAD": "ref: refs/heads/side\n",
      "clone/worktrees/one/commondir": "../..\n",
      "clone/refs/heads/side": COMMIT,
    },
  ],
  ["nothing readable", "9.8.7", { ".git/HEAD": "ref: refs/heads/../../secret" }],
];

for (const [name, expected, files] of CASES)
  test(`the version of ${name}`, () => {
    assert.equal(versionOf({}, folder(files)), expected);
  });

test("SVC_COMMIT names the commit of an image, unless it is none", () => {
  const root = folder({});
  assert.equal(versionOf({ SVC_COMMIT: COMMIT }, root), NAMED);
  for (const wrong of ["", "main", `${COMMIT}\n`, "<script>"])
    assert.equal(versionOf({ SVC_COMMIT: wrong }, root), "9.8.7");
});
