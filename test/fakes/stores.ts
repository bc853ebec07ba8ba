// Runs a suite on both engines of the store, each test on a store of its own. Where PostgreSQL
// cannot be had, that half is skipped loudly. With SVC_TEST_STORE=worker the embedded store is
// opened as a worker of a service has it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  type Engine,
  openStore,
  type Store,
  type StorePlace,
} from "../../src/shared/store/store.ts";
import {
  type Cluster,
  createDatabase,
  emptyDatabase,
  newDatabase,
  postgresAvailability,
  TEMPLATE,
} from "./postgres.ts";
import { openAsWorker } from "./worker-store.ts";

/** What a suite is told: the engine's name for its titles, and how to get stores. */
export interface StoreFixture {
  readonly engine: Engine;
  /** A new and empty store, closed and removed when the test ends. */
  open(t: Ending): Promise<Store>;
  /**
   * A place without tables for a store that the test opens (and closes) itself, maybe more than
   * once; removed when the test ends.
   */
  place(t: Ending): Promise<StorePlace>;
}

/** Ends what was started: a test. */
export interface Ending {
  after(run: () => Promise<void>): void;
}

const AS_WORKER = process.env["SVC_TEST_STORE"] === "worker";

/** Calls `suite` once for each engine that can be had here. */
export function eachStore(suite: (fixture: StoreFixture) => void): void {
  suite(fixtureOf("sqlite"));
  const postgres = postgresAvailability();
  if (postgres.kind === "yes") {
    suite(fixtureOf("postgres"));
  } else {
    console.log(`# NOT TESTED on PostgreSQL: ${postgres.reason}`);
    test("the same on PostgreSQL", { skip: postgres.reason }, () => undefined);
  }
}

/** A place for a store of one engine, and what removes it. */
export async function newPlace(
  engine: Engine,
  make = newDatabase,
): Promise<{ readonly place: StorePlace; readonly remove: () => Promise<void> }> {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-store-"));
  const database = engine === "postgres" ? await make() : null;
  const remove = async () => {
    rmSync(dataDir, { recursive: true, force: true });
    await database?.drop();
  };
  return { place: { url: database?.url ?? "", dataDir }, remove };
}

/** Migrates one database of a server; this run's new databases are copies of it. */
export async function makeTemplate(server: Cluster): Promise<void> {
  const name = "svc_template";
  await createDatabase(server.urlOf("postgres"), name);
  await (await openStore({ url: server.urlOf(name), dataDir: "" })).close();
  process.env[TEMPLATE] = name;
}

function fixtureOf(engine: Engine): StoreFixture {
  return {
    engine,
    async place(t) {
      const { place, remove } = await newPlace(engine, emptyDatabase);
      t.after(remove);
      return place;
    },
    async open(t) {
      const { place, remove } = await newPlace(engine);
      const store = await (AS_WORKER && engine === "sqlite" ? openAsWorker : openStore)(place);
      t.after(async () => {
        await store.close();
        await remove();
      });
      return store;
    },
  };
}
