// Three real nodes of deploy/svc.yml on one PostgreSQL database, with the environment that Compose
// gives them; then the backup and restore of docs/operations.md, by its own commands.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { newDatabase, postgresAvailability } from "../fakes/postgres.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";

const ROOT = join(import.meta.dirname, "../..");
const NODE_FILE = readFileSync(join(ROOT, "deploy/svc.yml"), "utf8");
const GUIDE = readFileSync(join(ROOT, "docs/operations.md"), "utf8");
const postgres = postgresAvailability();
const ON_POSTGRES = { skip: postgres.kind === "yes" ? false : postgres.reason };
const has = (tool: string): boolean => spawnSync(tool, ["--version"]).status === 0;

function startNode(t: TestContext, name: string, url: string): Promise<ServiceProcess> {
  return startProcess(t, NODE_FILE, {
    NODE_ENV: "production",
    HOST: "127.0.0.1",
    SVC_PUBLIC_URL: "https://rpc.example.com",
    SVC_SECRET: "a secret of at least thirty-two bytes",
    SVC_OPERATOR_TOKEN: "an-operator-token-of-a-length",
    SVC_TRUSTED_PROXIES: "127.0.0.1",
    SVC_REGION: name === "node3" ? "us-east" : "eu-west",
    DATABASE_URL: url,
  });
}

// biome-ignore-start lint/suspicious/noExplicitAny: tests look into documents of any shape
async function documentAt(url: string, init: RequestInit = {}): Promise<any> {
  const answer = await fetch(url, init);
  const document: any = await answer.json();
  return { status: answer.status, ...document };
}
// biome-ignore-end lint/suspicious/noExplicitAny: as above

/** A command of the guide, by how it begins. */
function commandOf(pattern: RegExp): string {
  return pattern.exec(GUIDE)?.[1] ?? assert.fail(String(pattern));
}

test(
  "three nodes of deploy/svc.yml serve as one; what one of them creates survives backup and restore",
  ON_POSTGRES,
  async (t) => {
    const database = await newDatabase();
    t.after(() => database.drop());
    const names = ["node1", "node2", "node3"];
    const nodes = await Promise.all(names.map((name) => startNode(t, name, database.url)));
    const [first, second] = nodes;
    if (first === undefined || second === undefined) return assert.fail();
    let cluster = (await documentAt(`${first.url}/api/health`)).cluster;
    while (cluster.nodes_responding < names.length) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      cluster = (await documentAt(`${first.url}/api/health`)).cluster;
    }
    assert.deepEqual([cluster.status, cluster.regions], ["healthy", ["eu-west", "us-east"]]);
    const created = await documentAt(`${first.url}/api/v1/agent/keys`, { method: "POST" });
    assert.equal(created.status, 201);
    const at = (node: ServiceProcess): string => `${node.url}/api/v1/agent/keys/${created.key}`;
    assert.equal((await documentAt(at(second))).status, 200);
    if (!has("pg_dump") || !has("pg_restore")) return t.diagnostic("no pg_dump: nothing restored");

    const folder = mkdtempSync(join(tmpdir(), "svc-backup-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const shell = (command: string): void =>
      void execFileSync("sh", ["-c", command], {
        cwd: folder,
        env: { ...process.env, DATABASE_URL: database.url },
      });
    shell(commandOf(/`(pg_dump [^`]+)`/));
    const later = await documentAt(`${first.url}/api/v1/agent/keys`, { method: "POST" });
    for (const node of nodes) node.signal("SIGTERM");
    assert.deepEqual(await Promise.all(nodes.map(({ ended }) => ended)), [0, 0, 0]);
    shell(commandOf(/`(pg_restore [^`]+)`/));
    const again = await startNode(t, "node4", database.url);
    assert.equal((await documentAt(at(again))).status, 200);
    const gone = await documentAt(`${again.url}/api/v1/agent/keys/${later.key}`);
    assert.equal(gone.status, 404, "a restored store is as old as its backup");
  },
);

test("the backup of an embedded store is whole, also of commits that stand beside the file", {
  skip: has("sqlite3") ? false : "no sqlite3 on this machine",
}, (t) => {
  const folder = mkdtempSync(join(tmpdir(), "svc-backup-"));
  t.after(() => rmSync(folder, { recursive: true }));
  execFileSync("mkdir", [join(folder, ".svc")]);
  const store = new DatabaseSync(join(folder, ".svc/svc.db"));
  t.after(() => store.close());
  store.exec("PRAGMA journal_mode = WAL; CREATE TABLE seen (n INT); INSERT INTO seen VALUES (7)");
  execFileSync("sh", ["-c", commandOf(/`(sqlite3 [^`]+)`/)], { cwd: folder });
  const copy = new DatabaseSync(join(folder, "backup.db"));
  t.after(() => copy.close());
  assert.deepEqual({ ...copy.prepare("SELECT n FROM seen").get() }, { n: 7 });
});
