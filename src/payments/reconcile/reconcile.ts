// Reconciliation: compares the transfers to a receiving address on a payment chain with what was
// recorded for it. Reads the chain in bounded ranges and keeps none of them. Knows no rail's
// protocol, and does nothing about a difference.
import {
  type EvmLog,
  type EvmNode,
  firstBlockSince,
  TRANSFER,
  topicOf,
} from "../rails/evm/node.ts";

/** An address of ours that receives a token on a chain. */
export interface ReceivingAddress {
  readonly node: EvmNode;
  readonly token: string;
  readonly recipient: string;
  /** Blocks that have to follow before a transfer counts. */
  readonly confirmations: number;
}

/** The transfers of one transaction: their sum in base units, and the sender of the first. */
export interface IncomingTransfer {
  readonly txHash: string;
  readonly units: bigint;
  readonly from: string;
}

/** What was recorded for one receiving address; amounts in base units. */
export interface Records {
  /**
   * The recorded amount of each of these transactions; transactions without a record are left out.
   */
  recorded(txHashes: readonly string[]): Promise<ReadonlyMap<string, bigint>>;
  /** The sum of all recorded amounts. */
  total(): Promise<bigint>;
  /** Every transaction with a record, in pages of bounded size. */
  pages(): AsyncIterable<
    readonly { readonly txHash: string; readonly units: bigint; readonly ids: readonly string[] }[]
  >;
  /** Whether something that is still under way may explain this transfer. */
  isUnderWay(transfer: IncomingTransfer): Promise<boolean>;
}

/** A transaction whose moved amount differs from the recorded one. */
export interface MoneyDifference {
  readonly chainId: number;
  readonly txHash: string;
  /** Base units: on the chain, and in our records. */
  readonly movedUnits: bigint;
  readonly recordedUnits: bigint;
  /** Purchases that name the transaction; empty = none does. */
  readonly ids: readonly string[];
}

/** The result for one receiving address. */
export interface ReceivingAddressReport {
  readonly chainId: number;
  readonly fromBlock: bigint;
  readonly toBlock: bigint;
  readonly transfers: number;
  readonly movedUnits: bigint;
  readonly recordedUnits: bigint;
  /** Transfers that something under way explains. */
  readonly underWay: number;
  /** At most `MAX_DIFFERENCES`; `differing` counts all. */
  readonly differences: readonly MoneyDifference[];
  readonly differing: number;
}

/** What a reconciliation needs. */
export interface ReconcileParts {
  readonly receiver: ReceivingAddress;
  readonly records: Records;
  /** Transfers of blocks before this time do not count, milliseconds since the epoch. */
  readonly sinceMs: number;
  readonly onProgress: (block: bigint, toBlock: bigint) => void;
}

/** Differences listed for one receiving address. */
export const MAX_DIFFERENCES = 500;
const RANGES = { maxBlocks: 10_000n, isPatient: true } as const;
const MS_PER_S = 1_000n;

/**
 * Compares a receiving address with its records. Throws `ChainFailure` if the chain cannot be read.
 */
export async function reconcile({
  receiver,
  records,
  sinceMs,
  onProgress,
}: ReconcileParts): Promise<ReceivingAddressReport> {
  const { node, confirmations } = receiver;
  const { number: head } = await node.head();
  const toBlock = head - BigInt(confirmations);
  const fromBlock = await firstBlockSince(node, BigInt(Math.floor(sinceMs)) / MS_PER_S, head);
  const found = { transfers: 0, movedUnits: 0n, matchedUnits: 0n, underWay: 0, differing: 0 };
  const differences: MoneyDifference[] = [];
  const differ = (difference: Omit<MoneyDifference, "chainId">): void => {
    found.differing++;
    if (differences.length < MAX_DIFFERENCES)
      differences.push({ chainId: node.chainId, ...difference });
  };
  const { token: address, recipient } = receiver;
  const query = { address, topics: [TRANSFER, null, topicOf(recipient)], fromBlock, toBlock };
  for await (const { logs, block } of node.logRanges(query, RANGES)) {
    const transfers = arrivalsOf(logs);
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
  // Each record is looked up only if some recorded amount was not found among the transfers.
  if (recordedUnits !== found.matchedUnits)
    await lookUp({ receiver, records, fromBlock, toBlock }, differ);
  const { transfers, movedUnits, underWay, differing } = found;
  return {
    chainId: node.chainId,
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

/** Looks for records whose transaction moved nothing, or was not in the blocks that were read. */
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
      const receipt = await receiver.node.receipt(txHash);
      const block = receipt?.block ?? null;
      // Differences within the blocks that were read are listed already, and deeper blocks may lie
      // before `sinceMs`.
      const movedUnits =
        receipt === null ? 0n : unitsOf(receipt.logs.filter((log) => isTo(log, receiver)));
      const wasRead = block !== null && movedUnits > 0n && block >= fromBlock && block <= toBlock;
      if (wasRead || movedUnits === units) continue;
      // One transaction may have paid for several records, not all of them on this page.
      const recordedUnits = (await records.recorded([txHash])).get(txHash) ?? units;
      if (recordedUnits !== movedUnits) differ({ txHash, movedUnits, recordedUnits, ids });
    }
  }
}

function arrivalsOf(logs: readonly EvmLog[]): readonly IncomingTransfer[] {
  const byTx = Map.groupBy(logs, (log) => log.txHash);
  return [...byTx].map(([txHash, its]) => ({
    txHash,
    units: unitsOf(its),
    from: `0x${(its[0]?.topics[1] ?? "").slice(-40)}`,
  }));
}

function unitsOf(logs: readonly EvmLog[]): bigint {
  return logs.reduce((sum, log) => sum + BigInt(log.data), 0n);
}

function isTo(log: EvmLog, { token, recipient }: ReceivingAddress): boolean {
  return (
    log.address === token.toLowerCase() &&
    log.topics[0] === TRANSFER &&
    log.topics[2] === topicOf(recipient)
  );
}
