// The client programs and what each needs: packages of this project, or ones that are installed
// into a folder of their own when they are run.
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A client that was made ready, or why it cannot run here. */
export type Program =
  | {
      readonly kind: "ready";
      readonly name: string;
      readonly command: string;
      readonly args: (task: string) => readonly string[];
    }
  | { readonly kind: "skipped"; readonly name: string; readonly why: string };

interface Plan {
  readonly name: string;
  readonly prepare: (name: string) => Promise<Program>;
}

const HERE = new URL(".", import.meta.url).pathname;
const CACHE = new URL("../../node_modules/.cache/svc-clients/", import.meta.url).pathname;
// Its licence (LGPL) is why web3.js is no dependency.
const WEB3_JS = "4.16.0";
const WEB3_PY = "8.0.0";
const GO_ETHEREUM = "1.17.10";
const ALLOY = "1.8.3";
const INSTALL_MS = 900_000;

/** Every client. */
export const PLANS: readonly Plan[] = [
  { name: "viem", prepare: async (name) => node(name, "viem.ts") },
  { name: "ethers", prepare: async (name) => node(name, "ethers.ts") },
  { name: "web3.js", prepare: prepareWeb3Js },
  { name: "web3.py", prepare: prepareWeb3Py },
  { name: "ethclient", prepare: prepareEthclient },
  { name: "alloy", prepare: prepareAlloy },
];

function node(name: string, file: string, more: readonly string[] = []): Program {
  return {
    kind: "ready",
    name,
    command: process.execPath,
    args: (task) => [join(HERE, file), task, ...more],
  };
}

async function prepareWeb3Js(name: string): Promise<Program> {
  const folder = folderOf(`web3-js-${WEB3_JS}`);
  const manifest = join(folder, "package.json");
  if (!existsSync(join(folder, "node_modules/web3"))) {
    writeFileSync(manifest, '{"private":true}');
    const npm = await run(
      "npm",
      ["install", "--no-audit", "--no-fund", "--ignore-scripts", `web3@${WEB3_JS}`],
      folder,
    );
    if (npm !== null)
      return { kind: "skipped", name, why: `npm cannot install web3@${WEB3_JS}: ${npm}` };
  }
  return node(name, "web3-js.mjs", [manifest]);
}

async function prepareWeb3Py(name: string): Promise<Program> {
  const folder = folderOf(`web3-py-${WEB3_PY}`);
  const python = join(folder, "venv/bin/python");
  if ((await run(python, ["-c", "import web3"], folder)) !== null) {
    const venv = await run("python3", ["-m", "venv", "venv"], folder);
    if (venv !== null)
      return { kind: "skipped", name, why: `this machine has no python3 with venv: ${venv}` };
    const pip = await run(python, ["-m", "pip", "install", "-q", `web3==${WEB3_PY}`], folder);
    if (pip !== null)
      return { kind: "skipped", name, why: `pip cannot install web3==${WEB3_PY}: ${pip}` };
  }
  return { kind: "ready", name, command: python, args: (task) => [join(HERE, "web3_py.py"), task] };
}

async function prepareEthclient(name: string): Promise<Program> {
  const folder = folderOf(`ethclient-${GO_ETHEREUM}`);
  const binary = join(folder, "client");
  if ((await run("go", ["version"], folder)) !== null)
    return { kind: "skipped", name, why: "this machine has no go" };
  for (const file of ["main.go", "rounds.go"])
    cpSync(join(HERE, "ethclient", file), join(folder, file));
  writeFileSync(
    join(folder, "go.mod"),
    `module client\n\ngo 1.24\n\nrequire github.com/ethereum/go-ethereum v${GO_ETHEREUM}\n`,
  );
  for (const args of [
    ["mod", "tidy"],
    ["build", "-o", binary, "."],
  ]) {
    const problem = await run("go", args, folder);
    if (problem !== null) return { kind: "skipped", name, why: `go ${args[0]} fails: ${problem}` };
  }
  return { kind: "ready", name, command: binary, args: (task) => [task] };
}

async function prepareAlloy(name: string): Promise<Program> {
  const folder = folderOf(`alloy-${ALLOY}`);
  if ((await run("cargo", ["--version"], folder)) !== null)
    return { kind: "skipped", name, why: "this machine has no cargo" };
  for (const file of ["Cargo.toml", "src/main.rs"])
    cpSync(join(HERE, "alloy", file), join(folder, file));
  const problem = await run("cargo", ["build", "--release", "--quiet"], folder);
  return problem === null
    ? {
        kind: "ready",
        name,
        command: join(folder, "target/release/client"),
        args: (task) => [task],
      }
    : { kind: "skipped", name, why: `cargo build fails: ${problem}` };
}

function folderOf(name: string): string {
  const folder = join(CACHE, name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Runs a command to its end. Returns what went wrong, or null. */
function run(command: string, args: readonly string[], cwd: string): Promise<string | null> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      stdio: ["ignore", "ignore", "pipe"],
      timeout: INSTALL_MS,
    });
    let problem = "";
    child.stderr.on("data", (chunk: Buffer) => {
      problem = (problem + chunk.toString()).slice(-300);
    });
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code) =>
      resolve(code === 0 ? null : problem.trim().replaceAll(/\s+/g, " ") || `exit code ${code}`),
    );
  });
}
