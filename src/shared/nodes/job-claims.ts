// Jobs that one node does for all. A node claims a job that is due, renews the claim while the job
// runs, and gives it up at the end. A node that dies loses its claim after the node timeout. All
// times are those of the database's clock.
import { sql } from "kysely";
import type { Bus } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import { databaseNow } from "../store/engine.ts";
import type { Store } from "../store/store.ts";

/** A job that one node does for all. */
export interface SingleJob {
  readonly name: string;
  /** From the end of one run to the start of the next one; 0 = at each start, or when asked. */
  readonly everyMs: number;
  /** Has to do no harm when it is cut short or runs twice: a claim can be lost. */
  readonly run: () => Promise<void>;
}

/** Decides which process does a job. */
export interface JobClaims {
  /** Does a job if it is due and no other node does it; false = it was left to another. */
  runIfDue(job: SingleJob): Promise<boolean>;
}

/** A node on a store, and the time after which a silent one counts as dead. */
export interface NodeTimeout {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly nodeId: string;
  readonly nodeTimeoutMs: number;
}

const FIRST = "1";

/**
 * The jobs of the workers of one machine: each belongs to one that serves. At a start none serves
 * yet, and what is to be done then belongs to the first.
 */
export function claimsOf(bus: Pick<Bus, "self" | "ownerOf">): JobClaims {
  return {
    async runIfDue({ name, everyMs, run }) {
      const owner = everyMs === 0 ? FIRST : bus.ownerOf(`job ${name}`);
      if (owner !== bus.self) return false;
      await run();
      return true;
    },
  };
}

/** Parts of the node timeout: for how long a claim lasts, and how often it is renewed. */
const CLAIMED = 0.7;
const RENEWED = 0.2;

/** Jobs that nodes claim in the store. */
export function createJobClaims(parts: NodeTimeout): JobClaims {
  return {
    async runIfDue(job) {
      if (!(await claim(parts, job))) return false;
      const stop = renewing(parts, job.name);
      try {
        await job.run();
      } finally {
        stop();
        await letGo(parts, job);
      }
      return true;
    },
  };
}

function claimedMs(nodeTimeoutMs: number): bigint {
  return BigInt(Math.ceil(nodeTimeoutMs * CLAIMED));
}

/**
 * Times further ahead, by the node timeout, than they are ever set were written before the clock
 * of the database was set back: they count as past, or no node would do the job until the clock is
 * there again.
 */
async function claim(
  { store, nodeId, nodeTimeoutMs }: NodeTimeout,
  { name, everyMs }: SingleJob,
): Promise<boolean> {
  const now = databaseNow(store.db);
  const timeout = BigInt(Math.ceil(nodeTimeoutMs));
  const until = sql<bigint>`${now} + ${claimedMs(nodeTimeoutMs)}`;
  const { numAffectedRows } = await sql`insert into job (name, node_id, due_at, claimed_until)
    values (${name}, ${nodeId}, 0, ${until})
    on conflict (name) do update set node_id = excluded.node_id,
      claimed_until = excluded.claimed_until
    where (job.due_at <= ${now} or job.due_at > ${now} + ${timeout + BigInt(everyMs)})
      and (job.claimed_until <= ${now} or job.claimed_until > ${now} + ${timeout})`.execute(
    store.db,
  );
  return numAffectedRows === 1n;
}

function renewing(parts: NodeTimeout, name: string): () => void {
  const { store, runtime, nodeId, nodeTimeoutMs } = parts;
  const everyMs = nodeTimeoutMs * RENEWED;
  let cancel = runtime.after(everyMs, renew);
  function renew(): void {
    cancel = runtime.after(everyMs, renew);
    const until = sql<bigint>`${databaseNow(store.db)} + ${claimedMs(nodeTimeoutMs)}`;
    // One that fails is made up for by the next; the store tells of its failures elsewhere.
    store.db
      .updateTable("job")
      .set({ claimed_until: until })
      .where("name", "=", name)
      .where("node_id", "=", nodeId)
      // One that arrives after the job was let go of claims nothing.
      .where("claimed_until", ">", 0n)
      .execute()
      .catch(() => undefined);
  }
  return () => cancel();
}

async function letGo({ store, nodeId }: NodeTimeout, job: SingleJob): Promise<void> {
  const dueAt = sql<bigint>`${databaseNow(store.db)} + ${BigInt(job.everyMs)}`;
  await store.db
    .updateTable("job")
    .set({ claimed_until: 0n, due_at: dueAt })
    .where("name", "=", job.name)
    .where("node_id", "=", nodeId)
    .execute();
}

/** Does a job again and again, when it is due; the returned function ends that. */
export function repeatJob(
  { runtime, everyMs, claims, onError }: RepeatParts,
  job: SingleJob,
): () => Promise<void> {
  let isClosed = false;
  let cancel = (): void => {};
  let running: Promise<unknown> = Promise.resolve();

  function again(): void {
    if (isClosed) return;
    cancel = runtime.after(everyMs, () => {
      running = claims.runIfDue(job).catch(onError).then(again);
    });
  }

  again();
  return async () => {
    isClosed = true;
    cancel();
    await running;
  };
}

/** What a job is repeated with. */
export interface RepeatParts {
  readonly runtime: Runtime;
  /** Between two looks whether the job is due and free. */
  readonly everyMs: number;
  readonly claims: JobClaims;
  readonly onError: (error: unknown) => void;
}
