// The rounds of one client: it deploys a counter, then again and again reads its nonce, sends,
// waits for the receipt and reads. Every value that one node alone would not have said is counted
// by kind. Knows no client library; the programs in Python and Go count the same kinds.
import type { RoundsTask } from "./protocol.ts";

/** A transaction of the rounds; its sender's client fills in the rest. */
export interface RoundTransaction {
  readonly nonce: number;
  /** Null = creates a contract. */
  readonly to: string | null;
  readonly data: string;
}

export interface RoundReceipt {
  readonly succeeded: boolean;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly contractAddress: string | null;
}

export interface Head {
  readonly number: number;
  /** Null = the client tells numbers only. */
  readonly hash: string | null;
}

/** A client library with an account of its own. Nothing of it may come from the client's cache. */
export interface RoundsClient {
  nonce(tag: "latest" | "pending"): Promise<number>;
  /** Signs and sends; returns the hash. */
  send(transaction: RoundTransaction): Promise<string>;
  isKnown(transaction: string): Promise<boolean>;
  /** Waits for a receipt as users of this client do. */
  receipt(transaction: string, timeoutMs: number): Promise<RoundReceipt>;
  height(): Promise<number>;
  /** The hash of a block; null = not found. */
  block(at: number | string): Promise<string | null>;
  /** What a call without data returns; null = nothing. */
  call(to: string): Promise<bigint | null>;
  code(of: string): Promise<string>;
  /** How many logs a contract has emitted in these blocks. */
  logs(address: string, fromBlock: number, toBlock: number | "latest"): Promise<number>;
  estimate(to: string, data: string): Promise<number>;
  /** Hears of new heads until the client is closed; null = not on this wire. */
  readonly heads: ((onHead: (head: Head) => void) => Promise<unknown>) | null;
  close(): unknown;
}

/** What the rounds came to. */
export interface RoundsResult {
  readonly rounds: number;
  /** Wrong values by kind; empty = everything was what one node says. */
  readonly wrong: Readonly<Record<string, number>>;
  /** The first error that a client threw; null = none. */
  readonly firstError: string | null;
}

const RECEIPT_MS = 10_000;
const ASK_MS = 15_000;
const RECOVERY_MS = 10_000;
const RECOVERY_POLL_MS = 200;
/** So many transactions may get lost before the rest is left out. */
const MAX_LOST = 10;
/** More than a call costs that only finds no contract. */
const LEAST_GAS = 25_000;
const NONCE_WORDS =
  /nonce too low|lower than the current nonce|nonce has already been used|nonce too high|nonce gap/i;

/** Runs all rounds of a task. */
export async function runRounds(client: RoundsClient, task: RoundsTask): Promise<RoundsResult> {
  const rounds = new Rounds(client);
  try {
    return await rounds.run(task);
  } finally {
    await client.close();
  }
}

/** The result as a note of the table: `100 rounds` or what was wrong. */
export function noteOf({ rounds, wrong, firstError }: RoundsResult): string {
  const kinds = Object.entries(wrong).map(([kind, count]) => `${kind} ${count}`);
  if (kinds.length === 0) return `${rounds} rounds`;
  const example = firstError === null ? "" : ` (${firstError})`;
  return `${rounds} rounds: ${kinds.join(", ")}${example}`;
}

class Rounds {
  readonly #client: RoundsClient;
  readonly #wrong = new Map<string, number>();
  #firstError: string | null = null;
  /** Transactions of the account so far: its nonce. */
  #sent = 0;
  #counted = 0;
  /** Transactions without a receipt, and those that could not be sent again either. */
  #lost = 0;
  #contract = "";
  #height = 0;
  #headCheck: Promise<void> | null = null;

  constructor(client: RoundsClient) {
    this.#client = client;
  }

  async run({ count, bytecode }: RoundsTask): Promise<RoundsResult> {
    await this.#client.heads?.((head) => this.#onHead(head));
    const deployed = await this.#transact({ to: null, data: bytecode });
    this.#contract = deployed?.contractAddress ?? "";
    let done = 0;
    if (deployed !== null) await this.#readAfter(deployed);
    while (deployed !== null && done < count && this.#lost < MAX_LOST) {
      await this.#round(done);
      done++;
    }
    if (done < count) this.#note("rounds left out", count - done);
    await this.#headCheck;
    const wrong = Object.fromEntries([...this.#wrong].sort(([, a], [, b]) => b - a));
    return { rounds: done, wrong, firstError: this.#firstError };
  }

  async #round(n: number): Promise<void> {
    // A round's transaction is like no other, so that it cannot be taken for an earlier one.
    const data = `0x${(n + 1).toString(16).padStart(64, "0")}`;
    const receipt = await this.#transact({ to: this.#contract, data });
    if (receipt === null) {
      this.#lost++;
      return;
    }
    if (receipt.succeeded) this.#counted++;
    await this.#readAfter(receipt);
  }

  /** Sends with the nonce that the client reads, and waits. Null = no receipt was got. */
  async #transact(what: Omit<RoundTransaction, "nonce">): Promise<RoundReceipt | null> {
    const nonce = await this.#readNonce();
    const hash = await this.#send({ ...what, nonce });
    if (hash === null) return this.#recover(what);
    await this.#check("transaction not found", () => this.#client.isKnown(hash));
    const receipt = await this.#try("no receipt", () => this.#client.receipt(hash, RECEIPT_MS));
    if (receipt === null) {
      this.#lost++;
      return this.#recover(what);
    }
    this.#sent++;
    if (!receipt.succeeded) this.#note("transaction reverted");
    return receipt;
  }

  /** The pending nonce as it is told; where none is told, the true one. */
  async #readNonce(): Promise<number> {
    const [pending] = await Promise.all([
      this.#try("pending nonce", () => this.#client.nonce("pending")),
      this.#check("latest nonce", async () => (await this.#client.nonce("latest")) === this.#sent),
    ]);
    if (pending !== null && pending !== this.#sent) this.#note("pending nonce");
    return pending ?? this.#sent;
  }

  async #send(transaction: RoundTransaction): Promise<string | null> {
    try {
      return await inTime(this.#client.send(transaction));
    } catch (error) {
      this.#keep(error);
      this.#note(NONCE_WORDS.test(textOf(error)) ? "nonce error" : "not sent");
      return null;
    }
  }

  /** Sends with the true nonce until it is mined, so that the next round can begin. */
  async #recover(what: Omit<RoundTransaction, "nonce">): Promise<RoundReceipt | null> {
    const deadline = Date.now() + RECOVERY_MS;
    while (Date.now() < deadline) {
      const hash = await orNull(this.#client.send({ ...what, nonce: this.#sent }));
      const receipt = hash === null ? null : await orNull(this.#client.receipt(hash, RECEIPT_MS));
      const nonce = (await orNull(this.#client.nonce("latest"))) ?? 0;
      if (receipt !== null || nonce > this.#sent) {
        this.#sent++;
        // Mined without a receipt: the counter has counted it.
        if (receipt === null && what.to !== null) this.#counted++;
        return receipt;
      }
      await new Promise((resolve) => setTimeout(resolve, RECOVERY_POLL_MS));
    }
    return null;
  }

  /** Everything that follows from a receipt, read at once. */
  async #readAfter({ blockNumber, blockHash }: RoundReceipt): Promise<void> {
    const client = this.#client;
    const contract = this.#contract;
    const counted = this.#counted;
    const logs = counted === 0 ? 0 : 1;
    await Promise.all([
      this.#check("block number", async () => this.#isHeight(await client.height(), blockNumber)),
      this.#check("block by number", async () => (await client.block(blockNumber)) === blockHash),
      this.#check("block by hash", async () => (await client.block(blockHash)) === blockHash),
      this.#check("count", async () => (await client.call(contract)) === BigInt(counted)),
      this.#check("no code", async () => (await client.code(contract)).length > 2),
      this.#check("latest nonce", async () => (await client.nonce("latest")) === this.#sent),
      this.#check("pending nonce", async () => (await client.nonce("pending")) === this.#sent),
      this.#check(
        "logs of block",
        async () => (await client.logs(contract, blockNumber, blockNumber)) === logs,
      ),
      this.#check(
        "logs to latest",
        async () => (await client.logs(contract, blockNumber, "latest")) === logs,
      ),
      this.#check("estimate", async () => (await client.estimate(contract, "0x01")) > LEAST_GAS),
    ]);
  }

  #isHeight(height: number, atLeast: number): boolean {
    const isBack = height < this.#height;
    this.#height = Math.max(this.#height, height);
    if (isBack) this.#note("block number went back");
    return height >= atLeast;
  }

  /** One head at a time is looked into; those that come meanwhile are not. */
  #onHead(head: Head): void {
    this.#headCheck ??= this.#readHead(head).finally(() => {
      this.#headCheck = null;
    });
  }

  async #readHead({ number, hash }: Head): Promise<void> {
    await Promise.all([
      this.#check("head: block number", async () => (await this.#client.height()) >= number),
      this.#check("head: block", async () => (await this.#client.block(hash ?? number)) !== null),
    ]);
  }

  async #check(kind: string, holds: () => Promise<boolean>): Promise<void> {
    if ((await this.#try(kind, holds)) === false) this.#note(kind);
  }

  /** Null = it failed, and this was noted. */
  async #try<T>(kind: string, ask: () => Promise<T>): Promise<T | null> {
    try {
      return await inTime(ask());
    } catch (error) {
      this.#keep(error);
      this.#note(kind === "no receipt" ? kind : `${kind}: error`);
      return null;
    }
  }

  #note(kind: string, count = 1): void {
    this.#wrong.set(kind, (this.#wrong.get(kind) ?? 0) + count);
  }

  #keep(error: unknown): void {
    this.#firstError ??= textOf(error).slice(0, 80);
  }
}

function orNull<T>(asked: Promise<T>): Promise<T | null> {
  return inTime(asked).catch(() => null);
}

async function inTime<T>(asked: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${ASK_MS / 1_000} s`)), ASK_MS);
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
  }
}

function textOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, " ");
}
