// A PostgreSQL address as deploy/ writes it (`sslmode=verify-full&sslrootcert=…`): the store speaks
// to the server that this authority vouches for, under this name, and says nothing to another one.
// The server is a socket that does TLS as PostgreSQL does and then refuses everybody.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { rootCertificates, TLSSocket } from "node:tls";
import { sql } from "kysely";
import { parse } from "yaml";
import { openPostgres } from "../../src/shared/store/postgres.ts";

const ROOT = join(import.meta.dirname, "../..");
const TLS = join(ROOT, "test/data/tls");
const REFUSAL = "this server knows nobody";

/** A server of PostgreSQL's protocol behind TLS. */
async function secureServer(t: TestContext) {
  const identity = {
    key: readFileSync(join(TLS, "key.pem")),
    cert: readFileSync(join(TLS, "certificate.pem")),
  };
  const open = new Set<Socket>();
  let told = 0;
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write("S");
      const secure = new TLSSocket(socket, { isServer: true, ...identity });
      secure.on("error", () => {});
      secure.once("data", () => {
        told++;
        secure.end(errorResponse(REFUSAL));
      });
    });
  }).listen(0, "0.0.0.0");
  await once(server, "listening");
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, told: () => told };
}

function errorResponse(message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C28000\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

async function errorOf(url: URL): Promise<string> {
  const { db, close } = openPostgres(String(url));
  const error = await sql`select 1`.execute(db).then(
    () => "",
    (thrown: unknown) => String(thrown),
  );
  await close();
  return error;
}

test("nodes say who they are only to the PostgreSQL server that their authority vouches for", async (t) => {
  const { port, told } = await secureServer(t);
  const secret = readFileSync(join(ROOT, "deploy/kubernetes/secret.yaml.example"), "utf8");
  const url = new URL(parse(secret).stringData.DATABASE_URL);
  const at = (host: string, authority: string): URL => {
    const next = new URL(url);
    next.host = `${host}:${port}`;
    next.searchParams.set("sslrootcert", authority);
    return next;
  };
  const folder = mkdtempSync(join(tmpdir(), "svc-authority-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const other = join(folder, "ca.crt");
  writeFileSync(other, rootCertificates[0] ?? "");
  assert.match(await errorOf(at("localhost", join(TLS, "certificate.pem"))), RegExp(REFUSAL));
  assert.equal(told(), 1);
  assert.match(await errorOf(at("localhost", other)), /certificate/);
  // The certificate is not for this name of the same machine.
  assert.match(await errorOf(at("127.0.0.2", join(TLS, "certificate.pem"))), /altnames/);
  assert.equal(told(), 1, "nothing is said to a server that is not theirs");
});
