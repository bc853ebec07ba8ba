// Reconciliation: what a payment chain says has arrived at an address of ours, against what was
// recorded for it. Reads the chain in bounded ranges and keeps none of them. Knows no rail's
// protocol, and nothing of what to do about a difference.
import { z } from "zod";
import { ChainFailure, type PaymentChain, parseQuantity } from "../rails/chain.ts";

/** An address that receives, with a token, on a chain. */
export interface ReceivingAddress {
  readonly chain: PaymentChain;
  readonly token: string;
  readonly recipient: string;
  /** Blocks that have to follow before a transfer counts. */
  readonly confirmations: number;
}

/** Money of one transaction: base units, and who sent the first part of it. */
export interface IncomingTransfer {
  readonly txHash: string;
  readonly units: bigint;
  readonly from: string;
}

/** What was recorded for one till; all amounts in base units. */
export interface Records {
  /** Recorded for these transactions; those with nothing recorded are left out. */
  recorded(txHashes: readonly string[]): Promise<ReadonlyMap<string, bigint>>;
  /** Recorded for all transactions. */
  total(): Promise<bigint>;
  /**
   * Every transaction that something is recorded for, a bounded number at a time, and what it was
   * recorded as.
   */
  pages(): AsyncIterable<
    readonly { readonly txHash: string; readonly units: bigint; readonly ids: readonly string[] }[]
  >;
  /** Whether something that is under way may be what this transfer is for. */
  isUnderWay(transfer: IncomingTransfer): Promise<boolean>;
}

/** Money that moved and money that was recorded, where they differ. */
export interface MoneyDifference {
  readonly chainId: number;
  readonly txHash: string;
  /** Base units, by the chain and by our records. */
  readonly movedUnits: bigint;
  readonly recordedUnits: bigint;
  /** Purchases that name the transaction; empty = none does. */
  readonly ids: readonly string[];
}

/** What was found at one till. */
export interface ReceivingAddressReport {
  readonly chainId: number;
  readonly fromBlock: bigint;
  readonly toBlock: bigint;
  readonly transfers: number;
  readonly movedUnits: bigint;
  readonly recordedUnits: bigint;
  /** Transfers that something under way is for. */
  readonly underWay: number;
  /** At most `MAX_DIFFERENCES`; `differing` counts all. */
  readonly differences: readonly MoneyDifference[];
  readonly differing: number;
}

/** What reconciliation works with. */
export interface ReconcileParts {
  readonly receiver: ReceivingAddress;
  readonly records: Records;
  /** Transfers of blocks before this time do not count, milliseconds since the epoch. */
  readonly sinceMs: number;
  readonly onProgress: (block: bigint, toBlock: bigint) => void;
}

/** Differences that one till lists. */
export const MAX_DIFFERENCES = 500;
const MAX_RANGE = 10_000n;
const MS_PER_S = 1_000n;

/** Compares a till with its records. Throws `ChainFailure` where the chain cannot be read. */
export async function reconcile({
  receiver,
  records,
  sinceMs,
  onProgress,
}: ReconcileParts): Promise<ReceivingAddressReport> {
  const { chain, confirmations } = receiver;
  const head = await chain.get("eth_blockNumber", [], parseQuantity);
  const toBlock = head - BigInt(confirmations);
  const fromBlock = await firstBlockSince(chain, BigInt(Math.floor(sinceMs)) / MS_PER_S, head);
  const found = { transfers: 0, movedUnits: 0n, matchedUnits: 0n, underWay: 0, differing: 0 };
  const differences: MoneyDifference[] = [];
  const differ = (difference: Omit<MoneyDifference, "chainId">): void => {
    found.differing++;
    if (differences.length < MAX_DIFFERENCES)
      differences.push({ chainId: chain.chainId, ...difference });
  };
  for await (const { transfers, block } of transfersBetween(receiver, fromBlock, toBlock)) {
    const recorded = await records.recorded(transfers.map((transfer) => transfer.txHash));
    for (const transfer of transfers) {
      const recordedUnits = recorded.get(transfer.txHash) ?? 0n;
      found.transfers++;
      found.movedUnits += transfer.units;
      found.matchedUnits += recordedUnits;
      if (recordedUnits === transfer.units) continue;
      if (recordedUnits === 0n && (await records.isUnderWay(transfer))) found.underWay++;
      else differ({ txHash: transfer.txHash, movedUnits: transfer.units, recordedUnits, ids: [] });
    }
    onProgress(block, toBlock);
  }
  const recordedUnits = await records.total();
  // Only where something is recorded that was not met, each record is looked up.
  if (recordedUnits !== found.matchedUnits)
    await lookUp({ receiver, records, fromBlock, toBlock }, differ);
  const { transfers, movedUnits, underWay, differing } = found;
  return {
    chainId: chain.chainId,
    fromBlock,
    toBlock,
    transfers,
    movedUnits,
    recordedUnits,
    underWay,
    differences,
    differing,
  };
}

/**
 * Looks for records whose transaction brought nothing, or was not among the blocks that were read.
 */
async function lookUp(
  {
    receiver,
    records,
    fromBlock,
    toBlock,
  }: Pick<ReconcileParts, "receiver" | "records"> &
    Pick<ReceivingAddressReport, "fromBlock" | "toBlock">,
  differ: (difference: Omit<MoneyDifference, "chainId">) => void,
): Promise<void> {
  for await (const page of records.pages()) {
    for (const { txHash, units, ids } of page) {
      const receipt = await receiver.chain.get("eth_getTransactionReceipt", [txHash], (result) =>
        receiptShape.nullable().parse(result),
      );
      const block = receipt === null ? null : BigInt(receipt.blockNumber);
      // Those that differ in the blocks that were read are listed already, and deeper ones may have
      // been passed over by `sinceMs`.
      const movedUnits =
        receipt === null ? 0n : unitsOf(receipt.logs.filter((log) => isTo(log, receiver)));
      const wasRead = block !== null && movedUnits > 0n && block >= fromBlock && block <= toBlock;
      if (wasRead || movedUnits === units) continue;
      // One transaction may have paid for several, which need not stand on one page.
      const recordedUnits = (await records.recorded([txHash])).get(txHash) ?? units;
      if (recordedUnits !== movedUnits) differ({ txHash, movedUnits, recordedUnits, ids });
    }
  }
}

/** What arrived, by transaction, in order. */
async function* transfersBetween(
  receiver: ReceivingAddress,
  fromBlock: bigint,
  toBlock: bigint,
): AsyncGenerator<{ readonly transfers: readonly IncomingTransfer[]; readonly block: bigint }> {
  let range = MAX_RANGE;
  for (let from = fromBlock; from <= toBlock; ) {
    const to = from + range - 1n < toBlock ? from + range - 1n : toBlock;
    const logs = await logsBetween(receiver, from, to);
    if (logs === null) {
      if (range === 1n)
        throw new ChainFailure(`The payment chain's node gives no logs of block ${from}`);
      range /= 2n;
      continue;
    }
    yield { transfers: arrivalsOf(logs), block: to };
    from = to + 1n;
    range = range * 2n < MAX_RANGE ? range * 2n : MAX_RANGE;
  }
}

/** Null = the node refuses a range of this size. */
async function logsBetween(
  { chain, token, recipient }: ReceivingAddress,
  from: bigint,
  to: bigint,
): Promise<readonly TransferLog[] | null> {
  const filter = {
    address: token,
    topics: [TRANSFER, null, topicOf(recipient)],
    fromBlock: hex(from),
    toBlock: hex(to),
  };
  const answer = await chain
    .call("eth_getLogs", [filter], (result) => z.array(logShape).parse(result))
    .catch((error: unknown) => {
      // Also what is larger than may be read at once.
      if (error instanceof ChainFailure && to > from) return null;
      throw error;
    });
  if (answer === null || answer.kind === "node_error") return null;
  return answer.value;
}

function arrivalsOf(logs: readonly TransferLog[]): readonly IncomingTransfer[] {
  const byTx = Map.groupBy(logs, (log) => log.transactionHash);
  return [...byTx].map(([txHash, its]) => ({
    txHash,
    units: unitsOf(its),
    from: `0x${(its[0]?.topics[1] ?? "").slice(-40)}`.toLowerCase(),
  }));
}

function unitsOf(logs: readonly TransferLog[]): bigint {
  return logs.reduce((sum, log) => sum + BigInt(log.data), 0n);
}

function isTo(log: TransferLog, { token, recipient }: ReceivingAddress): boolean {
  return (
    log.address.toLowerCase() === token.toLowerCase() &&
    log.topics[0] === TRANSFER &&
    log.topics[2]?.toLowerCase() === topicOf(recipient)
  );
}

/** The first block that is not older than a time, by halving; block 0 where all are younger. */
async function firstBlockSince(
  chain: PaymentChain,
  sinceSeconds: bigint,
  head: bigint,
): Promise<bigint> {
  let low = 0n;
  let high = head;
  while (low < high) {
    const middle = (low + high) / 2n;
    const seconds = await chain.get("eth_getBlockByNumber", [hex(middle), false], (result) =>
      BigInt(blockShape.parse(result).timestamp),
    );
    if (seconds < sinceSeconds) low = middle + 1n;
    else high = middle;
  }
  return low;
}

// keccak256 of `Transfer(address,address,uint256)`, ERC-20.
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

const word = z.string().regex(/^0x[0-9a-fA-F]{64}$/);
const amount = z.string().regex(/^0x[0-9a-fA-F]{1,64}$/);
const logShape = z.object({
  address: z.string(),
  topics: z.array(word).max(4),
  data: amount,
  transactionHash: word.transform((hash) => hash.toLowerCase()),
});
type TransferLog = z.infer<typeof logShape>;
const anyLogShape = logShape.extend({ data: z.string() });
const receiptShape = z.object({ blockNumber: amount, logs: z.array(anyLogShape) });
const blockShape = z.object({ timestamp: amount });

function topicOf(address: string): string {
  return `0x${address.slice(2).toLowerCase().padStart(64, "0")}`;
}

function hex(number: bigint): string {
  return `0x${number.toString(16)}`;
}
