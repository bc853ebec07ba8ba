// The command line: which command a line names, what it may hold, and where help is printed. The
// table of these tests has every form that a command may take.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { CommandInput, Commands } from "../../src/cli/command.ts";
import { runCommandLine } from "../../src/cli/command-line.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { commandReference } from "../../src/cli/reference.ts";

const ROOT = join(import.meta.dirname, "../..");

test("commands: a line names one by a word, by two, or not at all", async () => {
  assert.deepEqual(await ran("serve --port 1"), ["serve", [], { port: "1" }]);
  assert.deepEqual(await ran("--port 1"), ["serve", [], { port: "1" }]);
  assert.deepEqual(await ran(""), ["serve", [], {}]);
  assert.deepEqual(await ran("providers check --json"), ["providers check", [], { json: "true" }]);
  assert.deepEqual(await ran("probe a b --json c"), ["probe", ["a", "b", "c"], { json: "true" }]);
  assert.deepEqual(await ran("init"), ["init", [], {}]);
  assert.deepEqual(await ran("init svc.yml"), ["init", ["svc.yml"], {}]);
  assert.deepEqual(await ran("shell zsh"), ["shell", ["zsh"], {}]);
  assert.deepEqual(await ran("--version"), ["version", [], {}]);
});

test("commands: what a line may not hold is told with the usage of its command", () => {
  const told = (line: string) => {
    const { status, stderr } = svc(line);
    assert.equal(status, 1, line);
    return stderr;
  };
  assert.match(told("nonsense"), /^svc: unknown command nonsense\nusage: svc serve/);
  assert.match(told("constructor"), /^svc: unknown command constructor\n/);
  assert.match(told("version now"), /^svc: unexpected argument now\nusage: svc version\n$/);
  assert.match(told("check-config"), /^svc: FILE is missing\nusage: svc check-config FILE/);
  assert.match(told("check-config a b"), /^svc: unexpected argument b\n/);
  assert.match(told("export"), /^svc: --to is required\nusage: svc export --to/);
  assert.match(told("serve --prot 1"), /^svc: Unknown option '--prot'.*\nusage: svc serve/);
  assert.match(told("serve --port"), /^svc: .*argument missing\nusage: svc serve/);
});

test("commands: every command prints its help, also behind other arguments", () => {
  for (const [name, { does }] of Object.entries(COMMANDS)) {
    if (does === undefined) continue;
    const help = svc(`${name} --help`);
    assert.equal(help.status, 0, name);
    assert.ok(help.stdout.startsWith(`usage: svc ${name}`), name);
    assert.ok(help.stdout.includes(does), name);
  }
  const { stdout } = svc("serve --help");
  for (const line of ["serve --port 1 --help", "serve -h", "help serve", "--port 1 --help"])
    assert.deepEqual([svc(line).status, svc(line).stdout], [0, stdout], line);
  const { stdout: all } = svc("--help");
  assert.match(all, /^usage: svc serve.*\n( {7}svc .*\n)+ {7}svc help \[COMMAND\]\n$/);
  for (const line of ["help", "-h", "help --help"]) assert.equal(svc(line).stdout, all, line);
});

test("docs/cli.md is what the table says", () => {
  assert.equal(
    readFileSync(join(ROOT, "docs/cli.md"), "utf8"),
    commandReference(COMMANDS),
    "docs/cli.md is out of date: npm run docs",
  );
});

/** The command that a line runs, its operands and its options. */
async function ran(line: string): Promise<readonly unknown[]> {
  const calls: unknown[][] = [];
  const noting = (name: string) => (input: CommandInput) =>
    void calls.push([name, input.operands, { ...input.flags }]);
  const json = { value: null, meaning: "prints JSON" };
  const commands: Commands = {
    serve: { run: noting("serve"), options: { port: { value: "N", meaning: "a port" } } },
    "providers check": { run: noting("providers check"), options: { json } },
    probe: { run: noting("probe"), operands: "URL…", options: { json } },
    init: { run: noting("init"), operands: "[FILE]" },
    shell: { run: noting("shell"), operands: "bash|zsh" },
    version: { run: noting("version") },
  };
  const args = line.split(" ").filter(Boolean);
  await runCommandLine(commands, { args, env: {}, version: "1" });
  assert.equal(calls.length, 1, line);
  return calls[0] ?? [];
}

function svc(line: string) {
  const main = join(ROOT, "src/main.ts");
  return spawnSync(process.execPath, [main, ...line.split(" ")], { encoding: "utf8" });
}
