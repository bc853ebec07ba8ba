// What shells complete by the scripts of `svc completion`, asked of the shells themselves.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { COMMANDS } from "../../src/cli/commands.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");

/** A line, the words that must be offered for it, and those that must not. */
interface Case {
  readonly line: string;
  readonly offers: readonly string[];
  readonly withholds?: readonly string[];
}

const listed = Object.keys(COMMANDS).filter((name) => COMMANDS[name]?.does !== undefined);
const CASES: readonly Case[] = [
  {
    line: "svc ",
    offers: [...new Set(["help", ...listed.map((name) => name.split(" ")[0] ?? "")])],
    withholds: ["worker", "my file.yml"],
  },
  { line: "svc che", offers: ["check-config"], withholds: ["serve"] },
  { line: "svc serve --", offers: ["--config", "--port", "--help"], withholds: ["--to"] },
  { line: "svc --po", offers: ["--port"], withholds: ["--config"] },
  { line: "svc serve --config my", offers: ["my file.yml"], withholds: ["--port"] },
  { line: "svc check-config my", offers: ["my file.yml"], withholds: ["--port"] },
  { line: "svc completion ", offers: ["bash", "zsh", "fish"], withholds: ["serve"] },
  { line: "svc help ex", offers: ["export"], withholds: ["serve"] },
];

/** Options of each shell that make it print what it offers for a line. */
const SHELLS: Readonly<Record<string, (script: string, line: string) => readonly string[]>> = {
  bash: (script, line) => ["--norc", "-c", BASH, "bash", script, ...line.split(" ")],
  zsh: (script, line) => ["-f", "-c", ZSH, "zsh", script, ...line.split(" ")],
  fish: (script, line) => [
    ...["--no-config", "-c"],
    `${script}\ncomplete --do-complete=${JSON.stringify(line)}`,
  ],
};
const BASH = `
eval "$1"
COMP_WORDS=("\${@:2}")
COMP_CWORD=$(($# - 2))
_svc
printf '%s\\n' "\${COMPREPLY[@]}"`;
/** Stands in for the line editor and its completion. */
const ZSH = `
compdef() { }
eval "$1"
words=("\${@:2}") CURRENT=$(($# - 1)) PREFIX=$words[-1]
compset() { return 1 }
compadd() { print -l -- \${(M)matches:#$PREFIX*} }
_bash_complete -o filenames -F _svc || true`;

for (const [shell, options] of Object.entries(SHELLS))
  test(`completion: ${shell} offers commands, their options, and files`, (t) => {
    if (spawnSync(shell, ["-c", "true"]).error !== undefined)
      return t.skip(`${shell} is not installed`);
    const cwd = folderWith(t, "my file.yml");
    const { stdout: script } = spawnSync(process.execPath, [MAIN, "completion", shell], {
      encoding: "utf8",
    });
    for (const { line, offers, withholds = [] } of CASES) {
      const { status, stdout, stderr } = spawnSync(shell, options(script, line), {
        cwd,
        encoding: "utf8",
      });
      assert.equal(status, 0, `${line}: ${stderr}`);
      const found = stdout.split("\n").map((each) => each.split("\t")[0] ?? "");
      for (const word of offers) assert.ok(found.includes(word), `${line}: ${word} of ${found}`);
      for (const word of withholds) assert.ok(!found.includes(word), `${line}: ${word}`);
    }
  });

function folderWith(t: TestContext, file: string): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-completion-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, file), "");
  return folder;
}
