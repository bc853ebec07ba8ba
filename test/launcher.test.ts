// The launcher: what it finds missing, which Node it brings, and that arguments, exit codes and
// signals pass through it.
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

interface Listed {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly version?: string;
        readonly dev?: boolean;
        readonly optional?: boolean;
        readonly link?: boolean;
      }
    >
  >;
}

interface Launcher {
  readonly SetupError: new (message: string) => Error;
  readonly parseCommand: (args: readonly string[]) => {
    readonly file: string;
    readonly args: readonly string[];
    readonly dev: boolean;
  };
  readonly missingPackages: (
    lock: Listed,
    installed: Listed | null,
    dev: boolean,
  ) => readonly string[];
  readonly nodePackage: (
    platform: string,
    arch: string,
    musl: boolean,
  ) => { readonly name: string; readonly version: string; readonly binary: string };
}

/** A Node with its options. */
type Command = readonly [node: string, ...options: string[]];

const ROOT = join(import.meta.dirname, "..");
const SCRIPT = join(ROOT, "bin/svc.mjs");
const launcher = (await import(SCRIPT)) as Launcher;

const LOCK: Listed = {
  packages: {
    "": { version: "0.1.0" },
    "node_modules/a": { version: "1.0.0" },
    "node_modules/tool": { version: "2.0.0", dev: true },
    "node_modules/other-platform": { version: "3.0.0", optional: true },
  },
};
const A = { version: "1.0.0" };
const TOOL = { version: "2.0.0" };

test(
  "set-up: nothing is installed when everything is there, and development tools only where " +
    "they are used",
  () => {
    assert.deepEqual(
      launcher.missingPackages(
        LOCK,
        { packages: { "node_modules/a": A, "node_modules/tool": TOOL } },
        true,
      ),
      [],
    );
    assert.deepEqual(
      launcher.missingPackages(LOCK, { packages: { "node_modules/a": A } }, false),
      [],
      "npm ci --omit=dev is enough to serve",
    );
    assert.deepEqual(launcher.missingPackages(LOCK, { packages: { "node_modules/a": A } }, true), [
      "node_modules/tool",
    ]);
  },
);

test("set-up: an absent folder, an absent package and another version are all seen", () => {
  assert.deepEqual(launcher.missingPackages(LOCK, null, false), ["node_modules"]);
  assert.deepEqual(launcher.missingPackages(LOCK, { packages: {} }, false), ["node_modules/a"]);
  assert.deepEqual(
    launcher.missingPackages(LOCK, { packages: { "node_modules/a": { version: "0.9.0" } } }, false),
    ["node_modules/a 1.0.0"],
  );
  const installed = {
    packages: { "node_modules/a": A, "node_modules/other-platform": { version: "2.9.0" } },
  };
  assert.deepEqual(launcher.missingPackages(LOCK, installed, false), [
    "node_modules/other-platform 3.0.0",
  ]);
});

test("set-up: this checkout itself lacks nothing by the rules the launcher uses", () => {
  const read = (path: string): Listed =>
    JSON.parse(readFileSync(join(ROOT, path), "utf8")) as Listed;
  assert.deepEqual(
    launcher.missingPackages(
      read("package-lock.json"),
      read("node_modules/.package-lock.json"),
      true,
    ),
    [],
  );
});

test("set-up: every usual platform has a Node package, and systems without one are told what to do", () => {
  for (const [platform, arch] of [
    "linux x64",
    "linux arm64",
    "darwin x64",
    "darwin arm64",
    "win32 x64",
  ].map((pair) => pair.split(" "))) {
    const { version, binary } = launcher.nodePackage(platform ?? "", arch ?? "", false);
    assert.match(version, /^24(\.|$)/);
    assert.match(binary, platform === "win32" ? /node\.exe$/ : /node$/);
  }
  assert.throws(() => launcher.nodePackage("linux", "x64", true), /musl.*Install Node 24/);
  assert.throws(() => launcher.nodePackage("sunos", "x64", false), /sunos x64.*Install Node 24/);
});

test("launcher: commands are read as documented", () => {
  assert.deepEqual(launcher.parseCommand(["serve", "--port", "1"]), {
    file: "src/main.ts",
    args: ["serve", "--port", "1"],
    dev: false,
  });
  assert.deepEqual(launcher.parseCommand(["--run", "test/all.ts", "a"]), {
    file: "test/all.ts",
    args: ["a"],
    dev: true,
  });
  assert.throws(() => launcher.parseCommand(["--run"]), launcher.SetupError);
});

// Under this Node, under the one that runs npm where that is older (there the launcher starts Node
// 24 and stands between), and under an older one that replaces itself by Node 24. This Node plays
// the last: an option that ends with the launcher tells it a lower version.
const older = process.env["npm_node_execpath"] ?? process.execPath;
const versions = '{ value: { ...process.versions, node: "22.15.0" } }';
const lower = `--import=data:text/javascript,Object.defineProperty(process, "versions", ${versions})`;
const replaces = existsSync(join(ROOT, "node_modules/.node24")) && process.platform !== "win32";
for (const [name, node] of new Map<string, Command>([
  ["this Node", [process.execPath]],
  ...(older === process.execPath ? [] : [["npm's Node", [older]] as const]),
  ...(replaces ? [["Node 22.15", [process.execPath, lower]] as const] : []),
])) {
  test(`launcher under ${name}: arguments reach the file unchanged, and its exit code comes back`, async (t) => {
    const job =
      "process.stdout.write(JSON.stringify([process.versions.node, " +
      "...process.argv.slice(2)])); process.exitCode = 7;";
    const child = launch(node, project(t, job), ["--run", "job.mjs", "a b", "--flag", "*"]);
    const [output] = await once(child.stdout ?? child, "data");
    const [version, ...args] = JSON.parse(String(output)) as string[];
    assert.ok(Number.parseInt(version ?? "", 10) >= 24, version);
    assert.deepEqual(args, ["a b", "--flag", "*"]);
    assert.deepEqual(await ended(child), [7, null]);
  });

  test(`launcher under ${name}: a signal reaches the file, which decides how to end`, async (t) => {
    const job =
      "process.on('SIGTERM', () => process.exit(9)); setInterval(() => {}, 1000); " +
      "console.log('ready');";
    const child = launch(node, project(t, job), ["--run", "job.mjs"]);
    await once(child.stdout ?? child, "data");
    child.kill("SIGTERM");
    assert.deepEqual(await ended(child), [9, null]);
  });

  test(
    `launcher under ${name}: a file that is killed by a signal ends the launcher by the same ` +
      "signal",
    async (t) => {
      const child = launch(node, project(t, "process.kill(process.pid, 'SIGKILL');"), [
        "--run",
        "job.mjs",
      ]);
      assert.deepEqual(await ended(child), [null, "SIGKILL"]);
    },
  );

  test(`launcher under ${name}: when npm's shell is ended, as SIGTERM to npm does, the file hears ` +
    "SIGTERM", {
    skip: process.platform === "win32",
  }, async (t) => {
    const job =
      "process.on('SIGTERM', () => { console.log('told'); process.exit(0); }); setInterval(() " +
      "=> {}, 1000); console.log('ready');";
    const command = ["-c", '"$@" --run job.mjs; true', "sh", ...node, project(t, job)];
    const shell = spawn("sh", command, {
      env: { ...process.env, npm_lifecycle_event: "start" },
    });
    let output = "";
    shell.stdout.on("data", (chunk) => {
      if (output === "") shell.kill("SIGTERM");
      output += chunk;
    });
    await once(shell, "close"); // The file holds the other end of the pipes.
    assert.equal(output, "ready\ntold\n");
  });

  test(`launcher under ${name}: when the launcher is killed the file ends too`, async (t) => {
    const job = "setInterval(() => {}, 1000); console.log('ready');";
    const child = launch(node, project(t, job), ["--run", "job.mjs"]);
    await once(child.stdout ?? child, "data");
    child.kill("SIGKILL");
    await once(child, "close"); // The file holds the other end of the pipes.
    assert.equal(child.signalCode, "SIGKILL");
  });
}

test("launcher: a Node that can replace itself leaves no process beside the command's", {
  skip: !replaces,
}, async (t) => {
  const script = project(t, "console.log(process.pid);");
  const child = launch([process.execPath, lower], script, ["--run", "job.mjs"]);
  const [output] = await once(child.stdout ?? child, "data");
  assert.equal(Number(output), child.pid);
});

test("launcher: it is recorded as executable, so that npm's link to it changes nothing", (t) => {
  const { status, stdout } = spawnSync("git", ["ls-files", "-s", "bin/svc.mjs"], { cwd: ROOT });
  if (status !== 0) return t.skip("this is no checkout of git");
  assert.match(String(stdout), /^100755 /);
});

test(
  "launcher: what was compiled is kept beside the dependencies, and where it cannot be kept " +
    "the file runs all the same",
  async (t) => {
    const script = project(t, "console.log('ran');");
    const modules = join(script, "../../node_modules");
    const run = async () => ended(launch([process.execPath], script, ["--run", "job.mjs"]));
    writeFileSync(join(modules, ".compile-cache"), "a file, where a folder should be");
    assert.deepEqual(await run(), [0, null]);
    rmSync(join(modules, ".compile-cache"));
    assert.deepEqual(await run(), [0, null]);
    assert.equal(readdirSync(join(modules, ".compile-cache")).length, 1);
  },
);

test("launcher: where nothing can be added to the packages nothing is built, and only what is missed " +
  "is said", { skip: process.platform === "win32" }, async (t) => {
  const script = project(t, "");
  const root = join(script, "../..");
  mkdirSync(join(root, "src"));
  writeFileSync(join(root, "src/main.ts"), "console.log('ran');");
  for (const [file, isBuilt] of [
    ["build-console.ts", "isConsoleBuilt"],
    ["build-packages.ts", "arePackagesBundled"],
  ] as const)
    writeFileSync(join(root, "bin", file), `export const ${isBuilt} = () => false;`);
  chmodSync(root, 0o755);
  chmodSync(join(root, "node_modules"), 0o555);
  // Rights do not bind the administrator.
  const uid = process.getuid?.() === 0 ? { uid: 65_534 } : {};
  const child = spawn(process.execPath, [script], { ...uid, stdio: ["ignore", "pipe", "pipe"] });
  const said = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => (said.stdout += chunk));
  child.stderr.on("data", (chunk) => (said.stderr += chunk));
  await once(child, "close");
  assert.equal(said.stdout, "ran\n");
  assert.match(said.stderr, /^svc: the console cannot be built, .*: \S+ cannot be written\n$/);
});

test("launcher: what was compiled is kept also where the file is killed later", async (t) => {
  const job = "setInterval(() => {}, 1_000); setTimeout(() => console.log('runs'));";
  const script = project(t, job);
  const child = launch([process.execPath], script, ["--run", "job.mjs"]);
  await once(child.stdout ?? child, "data");
  child.kill("SIGKILL");
  await once(child, "close");
  assert.equal(readdirSync(join(script, "../../node_modules/.compile-cache")).length, 1);
});

test("launcher: a file that does not exist is named, without a stack trace", async (t) => {
  const child = launch([process.execPath], project(t, ""), ["--run", "absent.ts"]);
  const [output] = await once(child.stderr ?? child, "data");
  assert.equal(String(output), "svc: absent.ts does not exist\n");
  assert.deepEqual(await ended(child), [1, null]);
});

/**
 * A project of its own with the launcher, no dependency and one job; returns the launcher's path.
 */
function project(t: { readonly after: (run: () => void) => void }, job: string): string {
  const root = mkdtempSync(join(tmpdir(), "svc-setup-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, "node_modules"));
  mkdirSync(join(root, "bin"));
  symlinkSync(join(ROOT, "node_modules/.node24"), join(root, "node_modules/.node24"));
  for (const path of ["package-lock.json", "node_modules/.package-lock.json"])
    writeFileSync(join(root, path), '{"packages":{}}');
  writeFileSync(join(root, "job.mjs"), job);
  const script = join(root, "bin/svc.mjs");
  writeFileSync(script, readFileSync(SCRIPT));
  return script;
}

function launch(
  [node, ...options]: Command,
  script: string,
  args: readonly string[],
): ChildProcess {
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  return spawn(node, [...options, script, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
}

async function ended(child: ChildProcess): Promise<readonly unknown[]> {
  return child.exitCode === null && child.signalCode === null
    ? once(child, "exit")
    : [child.exitCode, child.signalCode];
}
