// Keeps several anvil nodes on one chain: the first live node makes the blocks; the others
// re-execute them and must arrive at the same hash. Replaces the peer-to-peer layer, which anvil
// lacks. Not in the path of any request; knows nothing of routing.
import type { RpcTransaction } from "viem";
import { z } from "zod";
import { pause, type Runtime } from "../runtime.ts";
import { type AnvilNode, NodeSilent, RpcError } from "./anvil-process.ts";
import { BlockDelay } from "./block-delay.ts";

/** Settings of a replication. */
export interface ReplicationOptions {
  readonly runtime: Runtime;
  /** Longest time between two blocks. A transaction gets a block at once. */
  readonly blockTimeMs: number;
  /** Shortest time between two blocks: concurrent transactions share one. */
  readonly blockSpacingMs: number;
  /** By node: time until it copies a block of another node; not given = at once. */
  readonly copyDelaysMs: readonly number[];
  /** Receives one line per node that no longer follows. */
  readonly onProblem: (line: string) => void;
}

/**
 * After a block with transactions comes one without, for those who wait for a confirmation: so
 * much later.
 */
const CONFIRMATION_MS = 900;
/** Consecutive attempts without progress before a node is given up. */
const MAX_TRIES = 8;
const RETRY_MS = 250;
/** Blocks that a node can be rolled back; nodes are started with slightly more history. */
const MAX_ROLLBACK_BLOCKS = 60;

const Quantity = z.string().regex(/^0x[0-9a-f]+$/);
const Block = z.object({
  hash: z.string(),
  number: Quantity,
  timestamp: Quantity,
  baseFeePerGas: Quantity,
  transactions: z.array(z.string()),
});
const PoolTransaction = z.looseObject({ hash: z.string() });
const PoolSide = z.record(z.string(), z.record(z.string(), PoolTransaction));
const Pool = z.object({ pending: PoolSide, queued: PoolSide });
const PoolStatus = z.object({ pending: Quantity });
type Block = z.infer<typeof Block>;
type PoolTransaction = z.infer<typeof PoolTransaction>;

/**
 * The replication's view of one node. `behind`: its last step failed and is retried. `left`: it
 * cannot be brought back.
 */
interface Member {
  readonly node: AnvilNode;
  readonly bell: Bell;
  /** Null = copies blocks at once. */
  readonly delay: BlockDelay | null;
  state: "together" | "behind" | "left";
}

/** Waits for a signal or a timeout. A signal that comes while nobody waits is remembered. */
class Bell {
  readonly #runtime: Runtime;
  #isRung = false;
  #finish: (() => void) | null = null;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  ring(): void {
    this.#isRung = true;
    this.#finish?.();
  }

  async wait(ms: number): Promise<void> {
    if (!this.#isRung) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const cancel = this.#runtime.after(ms, resolve);
      this.#finish = resolve;
      await promise;
      cancel();
    }
    this.#finish = null;
    this.#isRung = false;
  }
}

/** The node is on another chain than the leader and cannot be brought back. */
class Diverged extends Error {}

/**
 * Makes the first block on every node, then keeps the nodes together until stopped: by the returned
 * function, which resolves once no further block will be made. Rejects if they do not agree on the
 * first block.
 */
export async function replicate(
  nodes: readonly AnvilNode[],
  options: ReplicationOptions,
): Promise<() => Promise<void>> {
  const replicator = new Replicator(nodes, options);
  await nodes[0]?.rpc("evm_mine");
  for (const node of nodes.slice(1)) await follow(nodes[0] ?? node, node);
  return replicator.run();
}

/** Makes blocks on the leader and lets the other nodes follow. */
class Replicator {
  readonly #options: ReplicationOptions;
  readonly #members: readonly Member[];
  #lastBlockAt: number;
  /** The newest block has transactions. */
  #isUnconfirmed = false;
  #stopped = false;

  constructor(nodes: readonly AnvilNode[], options: ReplicationOptions) {
    this.#options = options;
    this.#members = nodes.map((node, at) => {
      const delayMs = options.copyDelaysMs[at] ?? 0;
      const delay = delayMs === 0 ? null : new BlockDelay(delayMs);
      return { node, bell: new Bell(options.runtime), delay, state: "together" };
    });
    this.#lastBlockAt = options.runtime.now();
  }

  run(): () => Promise<void> {
    const sockets = this.#members.map(({ node, bell }) =>
      watchPool(
        node,
        () => bell.ring(),
        () => this.#ringAll(),
      ),
    );
    const running = this.#members.map((member) => this.#tend(member));
    return async () => {
      this.#stopped = true;
      this.#ringAll();
      for (const socket of sockets) socket.close();
      await Promise.all(running);
    };
  }

  /**
   * Each node has its own loop, so that a hanging node delays no other. A leader that does not
   * answer is replaced, and follows once it is back.
   */
  async #tend(member: Member): Promise<void> {
    while (!this.#stopped && member.node.alive() && member.state !== "left") {
      try {
        await this.#step(member);
        member.state = "together";
      } catch (error) {
        this.#noteFailure(member, error);
        await pause(this.#options.runtime, RETRY_MS);
        this.#ringAll();
      }
      await member.bell.wait(this.#idleMs(member));
    }
  }

  /** Longest time until the member has something to do without being rung for. */
  #idleMs(member: Member): number {
    const { runtime, blockTimeMs } = this.#options;
    const now = runtime.now();
    const afterMs = this.#isUnconfirmed ? CONFIRMATION_MS : blockTimeMs;
    const nextBlockMs = Math.max(RETRY_MS, this.#lastBlockAt + afterMs - now);
    if (member.delay === null || member === this.#leader()) return nextBlockMs;
    return Math.min(nextBlockMs, member.delay.waitMs(now));
  }

  async #step(member: Member): Promise<void> {
    const leader = this.#leader();
    if (leader === undefined) return;
    if (leader === member) return this.#lead(member.node);
    await copyAll(await poolOf(member.node), member.node, leader.node);
    await follow(leader.node, member.node, await this.#copyTarget(leader.node, member));
  }

  /** The newest block of the leader that the member copies by now. */
  async #copyTarget(leader: AnvilNode, { delay }: Member): Promise<number | "latest"> {
    if (delay === null) return "latest";
    const { number } = await blockAt(leader, "latest");
    return delay.release(Number(number), this.#options.runtime.now());
  }

  /** Makes a block if transactions are pending or the block time has passed. */
  async #lead(node: AnvilNode): Promise<void> {
    const { runtime, blockTimeMs, blockSpacingMs } = this.#options;
    const { pending } = PoolStatus.parse(await node.rpc("txpool_status"));
    const afterMs = this.#isUnconfirmed ? CONFIRMATION_MS : blockTimeMs;
    if (Number(pending) === 0 && runtime.now() < this.#lastBlockAt + afterMs) return;
    await pause(runtime, Math.max(0, this.#lastBlockAt + blockSpacingMs - runtime.now()));
    await node.rpc("evm_mine");
    this.#lastBlockAt = runtime.now();
    this.#isUnconfirmed = Number(pending) > 0;
    this.#ringAll();
  }

  #leader(): Member | undefined {
    const candidates = this.#members.filter(
      (member) => member.node.alive() && member.state !== "left",
    );
    return candidates.find((member) => member.state === "together") ?? candidates[0];
  }

  /** Marks the node that caused a failure: the member itself, or a leader that did not answer. */
  #noteFailure(member: Member, error: unknown): void {
    if (error instanceof Diverged)
      this.#options.onProblem(
        `${member.node.id} no longer follows the local chain and will fall behind: ` +
          `${error.message}`,
      );
    const culprit =
      error instanceof NodeSilent ? this.#members.find(({ node }) => node === error.node) : member;
    if (culprit !== undefined) culprit.state = error instanceof Diverged ? "left" : "behind";
    // The member answered while its leader did not, so it may lead. Otherwise, after a moment in
    // which every node was slow, all would wait for a leader that hangs.
    if (culprit !== member && member.state === "behind") member.state = "together";
  }

  #ringAll(): void {
    for (const member of this.#members) member.bell.ring();
  }
}

/**
 * Brings a node to this block of the leader. Undoes blocks that the leader does not have and gives
 * their transactions to the leader.
 */
async function follow(
  leader: AnvilNode,
  node: AnvilNode,
  upTo: number | "latest" = "latest",
): Promise<void> {
  let problem = "was its state changed by an anvil_* or hardhat_* call?";
  let reached = -1;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const target = await blockAt(leader, upTo);
    const own = await blockAt(node, "latest");
    if (own.hash === target.hash) return;
    const shared = await lastSharedNumber(
      leader,
      node,
      Math.min(Number(own.number), Number(target.number)),
    );
    if (shared > reached) tries = 0;
    reached = shared;
    try {
      await unwind(node, leader, shared);
      for (let number = shared + 1; number <= Number(target.number); number++) {
        const block = await findBlock(leader, number);
        if (block === null) return closeHole(leader, number);
        if (!(await replay(block, leader, node))) break;
      }
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      problem = error.message;
    }
  }
  throw new Diverged(`it cannot re-execute the newest blocks of ${leader.id}: ${problem}`);
}

/**
 * Repeats a block of the leader on the node. False = the node made another one, which must be
 * undone. Subscribers of the node are told of that one too, so one request empties the pool, fills
 * it with the transactions of the block and mines them: between its parts another transaction has
 * microseconds. Those that waited besides are sent again afterwards.
 */
async function replay(block: Block, leader: AnvilNode, node: AnvilNode): Promise<boolean> {
  const wanted = await rawsOf(block.transactions, leader);
  const waiting = await rawsOf(await poolOf(node), node);
  const [pool, ...results] = await node.rpcs([
    ["txpool_content"],
    ["anvil_dropAllTransactions"],
    ...wanted.values().map((raw) => ["eth_sendRawTransaction", raw] as const),
    ["evm_setNextBlockTimestamp", Number(block.timestamp)],
    // After a rollback the node would derive the fee from the undone block.
    ["anvil_setNextBlockBaseFeePerGas", block.baseFeePerGas],
    ["evm_mine"],
  ]);
  for (const transaction of transactionsIn(pool)) {
    if (wanted.has(transaction.hash)) continue;
    const raw = waiting.get(transaction.hash) ?? (await serialized(transaction));
    for (const to of [leader, node]) await sendRaw(raw, to);
  }
  // A refused transaction shows in the hash of the block.
  const failure = results.slice(-3).find((result) => result instanceof RpcError);
  if (failure !== undefined) throw failure;
  return (await blockAt(node, "latest")).hash === block.hash;
}

/** The hashes of all transactions that wait at a node. */
async function poolOf(node: AnvilNode): Promise<readonly string[]> {
  return transactionsIn(await node.rpc("txpool_content")).map(({ hash }) => hash);
}

function transactionsIn(pool: unknown): readonly PoolTransaction[] {
  const { pending, queued } = Pool.parse(pool);
  const bySender = [pending, queued].flatMap((side) => Object.values(side));
  return bySender.flatMap((byNonce) => Object.values(byNonce));
}

/** The signed bytes of transactions, by hash, without those that the node does not know. */
async function rawsOf(
  hashes: readonly string[],
  node: AnvilNode,
): Promise<ReadonlyMap<string, string>> {
  const raws = await node.rpcs(hashes.map((hash) => ["eth_getRawTransactionByHash", hash]));
  return new Map(
    hashes.flatMap((hash, at) => {
      const raw = raws[at];
      return typeof raw === "string" ? [[hash, raw]] : [];
    }),
  );
}

/** The signed bytes of a transaction that its node has dropped. */
async function serialized(transaction: PoolTransaction): Promise<string> {
  const { formatTransaction, serializeTransaction } = await import("viem");
  const { input, ...rest } = formatTransaction(transaction as unknown as RpcTransaction);
  return serializeTransaction({ ...rest, data: input });
}

/** Gives signed transactions to another node. */
async function copyAll(hashes: readonly string[], from: AnvilNode, to: AnvilNode): Promise<void> {
  for (const raw of (await rawsOf(hashes, from)).values()) await sendRaw(raw, to);
}

/** Ignores refusals: already known, replaced, already mined. */
async function sendRaw(raw: string, to: AnvilNode): Promise<void> {
  await to.rpc("eth_sendRawTransaction", raw).catch((error) => {
    if (!(error instanceof RpcError)) throw error;
  });
}

/** Undoes a node's blocks above `shared`, keeping their transactions. */
async function unwind(node: AnvilNode, leader: AnvilNode, shared: number): Promise<void> {
  const height = Number((await blockAt(node, "latest")).number);
  if (height === shared) return;
  for (let number = shared + 1; number <= height; number++)
    await copyAll((await blockAt(node, number)).transactions, node, leader);
  await node.rpc("anvil_rollback", height - shared);
}

async function lastSharedNumber(leader: AnvilNode, node: AnvilNode, from: number): Promise<number> {
  for (let number = from; number >= 0 && number > from - MAX_ROLLBACK_BLOCKS; number--) {
    const theirs = await findBlock(leader, number);
    if (theirs !== null && theirs.hash === (await findBlock(node, number))?.hash) return number;
  }
  throw new Diverged(
    `it has left the chain of ${leader.id} more than ${MAX_ROLLBACK_BLOCKS} blocks ago`,
  );
}

/**
 * Anvil can lose a block if `anvil_reorg` runs while it makes one. The leader then lacks a block
 * below its newest, and no node can follow past the gap: rolls the leader back to before the gap.
 */
async function closeHole(leader: AnvilNode, number: number): Promise<void> {
  const tip = Number((await blockAt(leader, "latest")).number);
  if (number <= tip && (await findBlock(leader, number)) === null)
    await leader.rpc("anvil_rollback", tip - number + 1);
}

async function blockAt(node: AnvilNode, at: number | "latest"): Promise<Block> {
  return Block.parse(await findBlock(node, at));
}

async function findBlock(node: AnvilNode, at: number | "latest"): Promise<Block | null> {
  return Block.nullable().parse(
    await node.rpc("eth_getBlockByNumber", at === "latest" ? at : `0x${at.toString(16)}`, false),
  );
}

/**
 * Calls `onChange` whenever a transaction becomes ready in the node's pool, and `onLost` once the
 * node is gone.
 */
function watchPool(node: AnvilNode, onChange: () => void, onLost: () => void): WebSocket {
  const socket = new WebSocket(node.wsUrl);
  socket.addEventListener("open", () =>
    socket.send(
      '{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newPendingTransactions"]}',
    ),
  );
  socket.addEventListener("message", onChange);
  socket.addEventListener("close", onLost);
  socket.addEventListener("error", () => {});
  return socket;
}
