// Stores that earlier versions wrote, opened by the present code, on both engines: every row is
// there, keys work, the books agree, and 0.1.0 could go on beside it, because tables only grew.
//
// How test/data/0.1.0 was made: 0.1.0's own service ran on each engine, in front of a scripted
// provider, with the rails of two local payment chains (Tempo and EVM) and pay-per-call. Through
// its API an anonymous key was bought and funded (mppx, x402), an account credited by a payment and
// by the operator, Custom access bought, keys added, rotated, deleted and claimed, and a Custom
// profile, a claim link, a connection and feedback written. Calls were made with keys, on a free
// allowance, and over a payment channel that stayed open. Then, while it still ran and leased
// credit, `sqlite3 .dump` and `pg_dump --inserts` wrote the tables. `callers.json` has the keys
// that it handed out, and `*-statements.json` every statement on these tables that it sent.
//
// How test/data/192b98aa was made: the service of that commit ran on the store above, alone on
// SQLite and as two nodes on PostgreSQL, in front of a local chain. A provider was cordoned, a
// console session opened, a key given a consistency, calls made with keys, filters created, the
// audit run, and the service restarted once; the tables were written while it ran. `operator.json`
// and `provider-quotas.json` are what a router without accounts left in its `data_dir`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { Client } from "pg";
import { audit } from "../../src/hosted/audit/audit.ts";
import { keyBySecret } from "../../src/hosted/keys/keys.ts";
import { OperatorRecords } from "../../src/hosted/operator/stored-records.ts";
import { profileBySlug } from "../../src/hosted/profiles/profiles.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import { type Engine, openStore, type StorePlace } from "../../src/shared/store/store.ts";
import { startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { eachStore } from "../fakes/stores.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const DATA = join(import.meta.dirname, "../data");
/** The versions whose stores are kept. */
const VERSIONS = ["0.1.0", "192b98aa"] as const;
/** Rows of processes that ended, in a table that is no more. */
const DROPPED = "session_owner";
const SECRET = "the secret of version 0.1.0's fixture, 32 bytes or more";
const OPERATOR_TOKEN = "operator-of-the-upgraded-service-0123456789";
/** What the account of the fixture owned, leased credit included. */
const BALANCE_USD = "3.524815";
/** A time at which the Custom access and the rotated keys of the fixture hold. */
const THEN_MS = Date.parse("2026-11-22T20:40:00Z");

/** What 0.1.0 handed out while the fixture was made. */
interface Callers {
  readonly anonymousKey: string;
  readonly key: string;
  readonly token: string;
  readonly accountId: string;
  readonly rotatedKey: string;
  readonly revokedKey: string;
  readonly freeKey: string;
  readonly claimedKey: string;
}

type Row = Readonly<Record<string, unknown>>;

/** A column, as a catalogue describes it. */
interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly hasDefault: boolean;
}

/** A database below the store: only what a test of upgrades asks. */
interface Database {
  rows(text: string): Promise<readonly Row[]>;
  columns(): Promise<readonly Column[]>;
  /** Names, and what they hold, of the rules that a row of a table must keep to. */
  rules(): Promise<readonly string[]>;
  /** All that the catalogue says of tables and indexes. */
  schema(): Promise<readonly string[]>;
  /** Throws if a statement does not fit the tables. */
  compile(text: string): Promise<void>;
  execute(text: string): Promise<void>;
  close(): Promise<void>;
}

eachStore(({ engine, place }) => {
  const upgraded = async (
    t: TestContext,
    version: (typeof VERSIONS)[number] = "0.1.0",
  ): Promise<StorePlace> => {
    const at = await place(t);
    await withDatabase(engine, at, (db) => db.execute(read(`${version}/${engine}.sql`)));
    return at;
  };

  for (const version of VERSIONS)
    test(`an upgrade from ${version} leaves every row as it was (${engine})`, async (t) => {
      const at = await upgraded(t, version);
      const [tables, before] = await withDatabase(engine, at, async (db) => {
        const columns = new Map(columnsByTable(await db.columns()));
        columns.delete(DROPPED);
        return [columns, await contentOf(db, columns)];
      });
      const filled = [...before.values()].filter((rows) => rows.length > 0);
      assert.ok(filled.length >= 22, `${filled.length} tables have rows`);
      await (await openStore(at)).close();
      const after = await withDatabase(engine, at, (db) => contentOf(db, tables));
      assert.deepEqual(after, before);
    });

  test(`a new store has the tables of an upgraded one: released steps stay (${engine})`, async (t) => {
    const places = [await upgraded(t, "192b98aa"), await place(t)];
    const schemas = places.map(async (at) => {
      await (await openStore(at)).close();
      return withDatabase(engine, at, (db) => db.schema());
    });
    const [old = [], fresh] = await Promise.all(schemas);
    assert.ok(old.length > 60);
    assert.deepEqual(fresh, old);
  });

  test(`what operators did before an upgrade from 192b98aa still holds (${engine})`, async (t) => {
    const store = await openStore(await upgraded(t, "192b98aa"));
    t.after(() => store.close());
    assert.deepEqual(await audit(store), []);
    const records = new OperatorRecords(store);
    const cordons = await records.cordons();
    assert.deepEqual(
      cordons.map(({ profile, provider, reason }) => [profile, provider, reason]),
      [["premium", "paid-2", "answers <old> blocks"]],
    );
    const { actions } = await records.actions({ limit: 9, after: null });
    assert.deepEqual(
      actions.map(({ action }) => action),
      ["reloadConfiguration", "cordonProvider"],
    );
    const key = await keyBySecret(store, callersOf(engine).key, THEN_MS);
    assert.equal(key?.consistency, "caller");
  });

  test(`keys, profiles and books of 0.1.0 work after an upgrade (${engine})`, async (t) => {
    const store = await openStore(await upgraded(t));
    t.after(() => store.close());
    const callers = callersOf(engine);
    assert.deepEqual(await audit(store), []);
    const usage = await store.db.selectFrom("usage_hour").selectAll().execute();
    assert.ok(usage.length > 0);
    for (const row of usage) assert.deepEqual([row.cached_calls, row.cached_cu], [0n, 0n]);
    const owners = await Promise.all(
      [callers.key, callers.rotatedKey, callers.claimedKey, callers.freeKey].map((secret) =>
        keyBySecret(store, secret, THEN_MS),
      ),
    );
    const { accountId } = callers;
    assert.deepEqual(
      owners.map((key) => key?.accountId === accountId),
      [true, true, true, false],
    );
    assert.equal(owners[3]?.balanceN, 0n);
    assert.equal(owners[0]?.consistency, null);
    const anonymous = await keyBySecret(store, callers.anonymousKey, THEN_MS);
    assert.equal(anonymous?.balanceN, 374_910_000n);
    assert.equal(await keyBySecret(store, callers.revokedKey, THEN_MS), null);
    const sealer = new Sealer(SECRET, null);
    const profile = await profileBySlug({ store, sealer }, { accountId, slug: "my-nodes" });
    assert.equal(profile?.revision, 1);
    assert.match(JSON.stringify(profile?.document), /a-path-of-the-owner/);
  });

  test(`the service starts on a store of 0.1.0 and goes on with its money (${engine})`, async (t) => {
    const at = await upgraded(t);
    const upstream = await scriptedUpstream();
    t.after(() => upstream.close());
    const service = await startService(configText(at, upstream.url), undefined, (config) => ({
      ...config,
      secret: SECRET,
    }));
    t.after(() => service.close());
    const { key, claimedKey, anonymousKey, revokedKey, token } = callersOf(engine);
    const get = async (path: string, secret: string) => {
      const headers = { authorization: `Bearer ${secret}` };
      return parseObject(await (await fetch(service.url + path, { headers })).text());
    };
    assert.equal((await get("/api/v1/accounts/current", token))["balance_usd"], BALANCE_USD);
    const call = (secret: string) =>
      service.post(`/rpc/k/${secret}/ethereum`, {
        jsonrpc: "2.0",
        id: 1,
        method: "eth_gasPrice",
        params: [],
      });
    for (const secret of [key, claimedKey, anonymousKey])
      assert.deepEqual((await call(secret)).json, { jsonrpc: "2.0", id: 1, result: "0x1" });
    assert.equal((await call(revokedKey)).status, 401);
    await until("two calls are charged", async () => {
      const account = await get("/api/v1/accounts/current", token);
      return account["balance_usd"] === "3.524785";
    });
    assert.deepEqual((await get("/api/v1/operator/audit", OPERATOR_TOKEN))["differences"], []);
  });

  test(`an upgrade only adds to the tables of 0.1.0, and its rows still fit (${engine})`, async (t) => {
    const at = await upgraded(t);
    const before = await withDatabase(engine, at, async (db) => ({
      columns: await db.columns(),
      rules: await db.rules(),
    }));
    await (await openStore(at)).close();
    await withDatabase(engine, at, async (db) => {
      const tables = columnsByTable(before.columns);
      const columns = (await db.columns()).filter(({ table }) => tables.has(table));
      const known = new Set(before.columns.map(({ table, name }) => `${table}.${name}`));
      const isKnown = ({ table, name }: Column) => known.has(`${table}.${name}`);
      assert.deepEqual(columns.filter(isKnown), before.columns);
      for (const column of columns.filter((each) => !isKnown(each)))
        assert.ok(
          !column.isRequired || column.hasDefault,
          `0.1.0 does not write ${column.table}.${column.name}`,
        );
      const rules = (await db.rules()).filter((rule) => tables.has(rule.split(" ")[0] ?? ""));
      assert.deepEqual(rules, before.rules);
    });
  });

  test(`a store whose channels had owners loses the owners and nothing else (${engine})`, async (t) => {
    const at = await upgraded(t);
    await (await openStore(at)).close();
    const before = await withDatabase(engine, at, async (db) => {
      // As the steps before 028 left it.
      await db.execute("delete from kysely_migration where name >= '028'");
      await db.execute(
        "create table session_owner (channel_id text primary key references session_channel (id), " +
          "node_id text not null, epoch bigint not null, is_exclusive bigint not null, " +
          "since bigint not null, is_wanted bigint not null)",
      );
      await db.execute(
        "insert into session_owner select id, 'gone', 1, 1, 0, 1 from session_channel",
      );
      const tables = columnsByTable(await db.columns());
      const content = await contentOf(db, tables);
      // Of step 029.
      await db.execute("drop table incident");
      // Of step 030.
      await db.execute("alter table operator_cordon drop column until_at");
      return { tables, content };
    });
    assert.ok((before.content.get("session_owner") ?? []).length > 0);
    await (await openStore(at)).close();
    const tables = new Map(before.tables);
    tables.delete("session_owner");
    before.content.delete("session_owner");
    await withDatabase(engine, at, async (db) => {
      assert.deepEqual([...columnsByTable(await db.columns()).keys()], [...tables.keys()]);
      assert.deepEqual(await contentOf(db, tables), before.content);
    });
  });

  test(`every statement of 0.1.0 fits the upgraded tables (${engine})`, async (t) => {
    const at = await upgraded(t);
    await (await openStore(at)).close();
    const statements = parseStatements(read(`0.1.0/${engine}-statements.json`));
    assert.ok(statements.length > 100);
    await withDatabase(engine, at, async (db) => {
      for (const text of statements) await db.compile(text);
      const unknown = 'select "no_such_column" from account where no_such_column = 1';
      await assert.rejects(async () => db.compile(unknown), /no_such_column/);
    });
  });
});

function configText({ url, dataDir }: StorePlace, providerUrl: string): string {
  const profile = (id: string) => ({
    chains: { ethereum: { providers: [{ id, url: providerUrl }] } },
  });
  return JSON.stringify({
    server: { port: 0 },
    log_level: "debug",
    data_dir: dataDir,
    storage: { url },
    cluster: { node_id: "old" },
    chains: { ethereum: { chain_id: 1, name: "Ethereum", block_time_ms: 12_000 } },
    profiles: { premium: profile("paid"), public: profile("open") },
    hosted: { enabled: true, operator_token: OPERATOR_TOKEN, free_cu_per_month: 6 },
  });
}

/** The names of columns by their table, both in order. */
function columnsByTable(columns: readonly Column[]): ReadonlyMap<string, readonly string[]> {
  return new Map(
    Object.entries(Object.groupBy(columns, ({ table }) => table)).map(([table, own]) => [
      table,
      (own ?? []).map(({ name }) => name),
    ]),
  );
}

/** All rows of tables, of these columns only. */
async function contentOf(
  db: Database,
  tables: ReadonlyMap<string, readonly string[]>,
): Promise<Map<string, readonly Row[]>> {
  const content = new Map<string, readonly Row[]>();
  for (const [table, columns] of tables) {
    const names = columns.map((name) => `"${name}"`).join(", ");
    const order = columns.map((_, position) => position + 1).join(", ");
    content.set(table, await db.rows(`select ${names} from ${table} order by ${order}`));
  }
  return content;
}

async function withDatabase<T>(
  engine: Engine,
  { url, dataDir }: StorePlace,
  run: (db: Database) => Promise<T>,
): Promise<T> {
  const db = engine === "sqlite" ? sqliteAt(join(dataDir, "svc.db")) : await postgresAt(url);
  try {
    return await run(db);
  } finally {
    await db.close();
  }
}

function sqliteAt(path: string): Database {
  const file = new DatabaseSync(path);
  const rows = async (text: string) => {
    const statement = file.prepare(text);
    statement.setReadBigInts(true);
    return statement.all();
  };
  return {
    rows,
    columns: async () =>
      (
        await rows(
          "select m.name as of_table, c.name, c.type, c.[notnull] or c.pk > 0 as required, " +
            "c.dflt_value is not null as has_default from sqlite_master m " +
            "join pragma_table_info(m.name) c where m.type = 'table' " +
            "and m.name not like 'kysely_%' and m.name not like 'sqlite_%' order by m.name, c.cid",
        )
      ).map(columnOf),
    rules: async () =>
      (
        await rows(
          "select m.name || ' ' || group_concat(c.name) as rule from sqlite_master m " +
            "join pragma_index_list(m.name) i join pragma_index_info(i.name) c " +
            "where m.type = 'table' and i.[unique] and m.name not like 'kysely_%' " +
            "group by m.name, i.name order by 1",
        )
      ).map(({ rule }) => String(rule)),
    schema: async () =>
      (
        await rows(
          "select sql from sqlite_master where sql is not null and name not like 'kysely_%' " +
            "order by name",
        )
      ).map(({ sql }) => String(sql).replaceAll('"', "").replace(/\s+/g, " ").replace("( ", "(")),
    compile: async (text) => void file.prepare(text),
    execute: async (text) => file.exec(text),
    close: async () => file.close(),
  };
}

async function postgresAt(url: string): Promise<Database> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const rows = async (text: string) => (await client.query<Row>(text)).rows;
  return {
    rows,
    columns: async () =>
      (
        await rows(
          "select table_name as of_table, column_name as name, data_type as type, " +
            "is_nullable = 'NO' as required, column_default is not null or is_identity = 'YES' " +
            "as has_default from information_schema.columns where table_schema = 'public' " +
            "and table_name not like 'kysely_%' order by table_name, ordinal_position",
        )
      ).map(columnOf),
    rules: async () =>
      (
        await rows(
          "select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) as rule " +
            "from pg_constraint where contype in ('c', 'f', 'p', 'u', 'x') " +
            "and connamespace = 'public'::regnamespace and conrelid::regclass::text " +
            "not like 'kysely_%' union all " +
            "select tablename || ' ' || indexdef from pg_indexes where schemaname = 'public' " +
            "and indexdef like '%UNIQUE%' and tablename not like 'kysely_%' order by 1",
        )
      ).map(({ rule }) => String(rule)),
    schema: async () =>
      (
        await rows(
          "select t.relname || ' ' || t.relpersistence::text || ' ' || a.attname || ' ' || " +
            "format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' ' || " +
            "coalesce(pg_get_expr(d.adbin, d.adrelid), a.attidentity::text) as fact " +
            "from pg_class t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 " +
            "left join pg_attrdef d on d.adrelid = t.oid and d.adnum = a.attnum " +
            "where t.relkind = 'r' and t.relnamespace = 'public'::regnamespace " +
            "and t.relname not like 'kysely_%' union all " +
            "select tablename || ' ' || indexdef from pg_indexes where schemaname = 'public' " +
            "and tablename not like 'kysely_%' union all " +
            "select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) " +
            "from pg_constraint where connamespace = 'public'::regnamespace " +
            "and conrelid::regclass::text not like 'kysely_%' order by 1",
        )
      ).map(({ fact }) => String(fact)),
    async compile(text) {
      await client.query(`prepare tried as ${text}`);
      await client.query("deallocate tried");
    },
    execute: async (text) => void (await client.query(text)),
    close: () => client.end(),
  };
}

function columnOf(row: Row): Column {
  return {
    table: String(row["of_table"]),
    name: String(row["name"]),
    type: String(row["type"]),
    isRequired: Boolean(row["required"]),
    hasDefault: Boolean(row["has_default"]),
  };
}

function read(name: string): string {
  return readFileSync(join(DATA, name), "utf8");
}

function callersOf(engine: Engine): Callers {
  return (JSON.parse(read("0.1.0/callers.json")) as Readonly<Record<Engine, Callers>>)[engine];
}

function parseObject(text: string): Row {
  return JSON.parse(text) as Row;
}

function parseStatements(text: string): readonly string[] {
  return JSON.parse(text) as readonly string[];
}
