// The method table: the cost, routing, deadline and block parameter of each JSON-RPC method.
// Unlisted methods share one default row.
import type { CacheRule, Naming } from "./answer-rules.ts";

/** The kind of call; a provider may declare whole categories as unsupported. */
export type Category = (typeof CATEGORIES)[number];

export const CATEGORIES = [
  "core",
  "state",
  "network",
  "eip1559",
  "eip4844",
  "mempool",
  "logs",
  "filters",
  "subscriptions",
  "batch",
  "debug",
  "trace",
  "txpool",
  "local_only",
  "unknown",
] as const;

/**
 * Where a method names the block that it reads: a parameter with a tag, number or EIP-1898 object,
 * or a log filter object.
 */
export interface BlockParam {
  readonly kind: "block" | "filter";
  /** Index in `params`. */
  readonly at: number;
}

/**
 * How the service handles the method: routed to a provider, answered by the service, refused
 * everywhere, served on sockets only, or served by the service's own filters.
 */
export type Handling = "route" | "local" | "blocked" | "socket_only" | "filter";

/**
 * Classes of methods by how long a call may take; the configuration gives each its milliseconds.
 */
export type DeadlineClass = "cheap" | "standard" | "default" | "traceTx" | "traceBlock";

/**
 * Where the row of a method comes from: the built-in table or the configuration. Methods in neither
 * share the rows for unlisted and for blocked methods.
 */
export type Listing = "built_in" | "configured" | "unlisted";

/**
 * Kinds of data that a node must have kept to answer about an old block. Nodes drop each kind
 * separately: a refusal for one kind says nothing about the others.
 */
export const RESOURCES = [
  "state",
  "transactions",
  "receipts",
  "logs",
  "blocks",
  "proofs",
  "traces",
] as const;

/** One of the resources. */
export type Resource = (typeof RESOURCES)[number];

/**
 * The answer of a method that submits a raw transaction: the hash of the transaction, its receipt
 * (EIP-7966), or another format.
 */
export type TransactionAnswer = "hash" | "receipt" | "other";

/** One row of the method table. */
export interface Method {
  /** The name, or `unknown` for the default row. */
  readonly name: string;
  /** Dense index below `METHOD_SLOTS` into per-method arrays. 0 is the default row. */
  readonly index: number;
  readonly origin: Listing;
  readonly category: Category;
  /** Compute units with the strategy `load-balanced`. */
  readonly cu: number;
  /** A read, which may be sent to several providers. */
  readonly replaySafe: boolean;
  readonly deadline: DeadlineClass;
  readonly block: BlockParam | null;
  /** The data that a node must have kept to answer about an old block. */
  readonly resource: Resource;
  readonly handling: Handling;
  /**
   * The form of the answer if the method submits a raw transaction; null = it does not submit one.
   */
  readonly transaction: TransactionAnswer | null;
  /** Equal concurrent calls may share one answer. */
  readonly coalesce: boolean;
  /** The answer `null` means that this node lacks the object. Other nodes may have it. */
  readonly mayBeMissing: boolean;
  /** A read that may be sent to a second provider while the first one takes long. */
  readonly hedge: boolean;
  /**
   * A read with a short answer, which may be sent in one request with other calls, or right behind
   * them.
   */
  readonly batch: boolean;
  /** How its answers may be cached; null = they are not cached. */
  readonly cache: CacheRule | null;
  /**
   * Which object its answers hold, for the comparison with the request; null = they are not
   * compared.
   */
  readonly naming: Naming | null;
  /** If the call leaves out the block, every node takes the newest one. */
  readonly fillsBlock: boolean;
  /** Nodes that support EIP-1898 accept a block hash as its block parameter. */
  readonly takesHash: boolean;
  /** The method that reads the same by the hash of the block; null = there is none. */
  readonly byHashName: string | null;
}

/** Columns that a row may leave out. */
interface RowOptions {
  readonly block?: BlockParam;
  readonly replaySafe?: false;
  readonly handling?: Handling;
  readonly transaction?: TransactionAnswer;
}

/** The columns that the table states. The other columns of a method follow from these. */
interface Row extends RowOptions {
  readonly name: string;
  readonly category: Category;
  readonly cu: number;
  readonly deadline: DeadlineClass;
}

/** Makes rows that differ only in their names. */
function rows(
  category: Category,
  cu: number,
  deadline: DeadlineClass,
  options: RowOptions = {},
): (names: TemplateStringsArray) => readonly Row[] {
  return ([names]) => namesIn(names).map((name) => ({ name, category, cu, deadline, ...options }));
}

const blockAt = (at: number): { readonly block: BlockParam } => ({ block: { kind: "block", at } });
const filterAt = (at: number): { readonly block: BlockParam } => ({
  block: { kind: "filter", at },
});

const write = { replaySafe: false } as const;
/** Served by the service's own filters. Not replay-safe: a call creates or changes a filter. */
const ownFilter = { replaySafe: false, handling: "filter" } as const;
const broadcast = (transaction: TransactionAnswer) => ({ ...write, transaction });

/** Splits a text into names at white space. */
function namesIn(text = ""): readonly string[] {
  return text.trim().split(/\s+/);
}

/** Pairs each name in a text with the same value. */
function each<const Value>(
  value: Value,
): (names: TemplateStringsArray) => readonly [string, Value][] {
  return ([names]) => namesIn(names).map((name) => [name, value]);
}

/**
 * Categories of reads with short answers. At a given time the answers are the same for all callers.
 */
const COALESCED: ReadonlySet<Category> = new Set([
  "core",
  "state",
  "network",
  "eip1559",
  "eip4844",
]);

/** Methods that answer `null` for a transaction, receipt or block that the node lacks. */
const MAY_BE_MISSING: ReadonlySet<string> = new Set(
  namesIn(`eth_getTransactionByHash eth_getTransactionReceipt eth_getRawTransactionByHash
    eth_getBlockByHash eth_getBlockByNumber eth_getHeaderByHash eth_getHeaderByNumber
    eth_getBlockReceipts eth_getBlockAccessList eth_getBlockTransactionCountByHash
    eth_getBlockTransactionCountByNumber eth_getTransactionByBlockHashAndIndex
    eth_getRawTransactionByBlockHashAndIndex`),
);

/**
 * Categories of calls that are too expensive to send twice, or whose answers differ between
 * providers.
 */
const NOT_HEDGED: ReadonlySet<Category> = new Set(["logs", "debug", "trace", "mempool", "txpool"]);

/** Reads with long or slow answers, which would delay the other calls of their batch. */
const NOT_BATCHED: ReadonlySet<string> = new Set(
  namesIn(`eth_getBlockReceipts eth_getBlockAccessList eth_simulateV1 eth_callMany
    eth_getBlobSidecars eth_getBlobSidecarByTxHash`),
);

const byBlock = (params: number, more: { named?: true; needsBlock?: true } = {}): CacheRule => ({
  kind: "block",
  params,
  ...more,
});

/**
 * Methods whose answers may be cached. Gas estimates and access lists need a named block, since
 * nodes differ in the block that they take otherwise.
 */
const CACHE_RULES: ReadonlyMap<string, CacheRule> = new Map([
  ...each({ kind: "head" })`eth_blockNumber eth_gasPrice eth_maxPriorityFeePerGas eth_baseFee
    eth_blobBaseFee eth_config`,
  ...each(byBlock(1))`eth_getBlockTransactionCountByNumber eth_getUncleCountByBlockNumber
    eth_getBlockAccessList`,
  ...each(byBlock(1, { named: true }))`eth_getHeaderByNumber eth_getBlockReceipts`,
  ...each(byBlock(2))`eth_getBalance eth_getCode eth_getTransactionCount eth_getStorageValues
    eth_call eth_getUncleByBlockNumberAndIndex eth_getRawTransactionByBlockNumberAndIndex`,
  ...each(byBlock(2, { named: true }))`eth_getBlockByNumber
    eth_getTransactionByBlockNumberAndIndex`,
  ...each(byBlock(2, { needsBlock: true }))`eth_estimateGas eth_createAccessList`,
  ...each(byBlock(3))`eth_getStorageAt eth_getProof eth_feeHistory`,
  ...each({ kind: "hash" })`eth_getBlockByHash eth_getHeaderByHash
    eth_getBlockTransactionCountByHash eth_getUncleCountByBlockHash
    eth_getTransactionByBlockHashAndIndex eth_getUncleByBlockHashAndIndex
    eth_getRawTransactionByBlockHashAndIndex`,
  ...each({ kind: "transaction" })`eth_getTransactionByHash eth_getTransactionReceipt`,
  ...each({ kind: "logs" })`eth_getLogs`,
] satisfies readonly [string, CacheRule][]);

/** Which object an answer holds. Only methods whose answers have this form on every chain. */
const NAMING: ReadonlyMap<string, Naming> = new Map([
  ...each("block")`eth_getBlockByNumber eth_getHeaderByNumber eth_getBlockByHash
    eth_getHeaderByHash`,
  ...each("receipts")`eth_getBlockReceipts`,
  ...each("indexed")`eth_getTransactionByBlockNumberAndIndex eth_getTransactionByBlockHashAndIndex`,
  ...each("transaction")`eth_getTransactionByHash`,
  ...each("receipt")`eth_getTransactionReceipt`,
  ...each("logs")`eth_getLogs`,
  ...each("hex")`eth_blockNumber eth_chainId eth_gasPrice eth_maxPriorityFeePerGas eth_getBalance
    eth_getTransactionCount eth_getCode eth_getStorageAt eth_call eth_estimateGas`,
] satisfies readonly [string, Naming][]);

/** Methods that read by block number, with the method that reads the same by block hash. */
const BY_HASH: ReadonlyMap<string, string> = new Map([
  ["eth_getBlockByNumber", "eth_getBlockByHash"],
  ["eth_getBlockTransactionCountByNumber", "eth_getBlockTransactionCountByHash"],
  ["eth_getTransactionByBlockNumberAndIndex", "eth_getTransactionByBlockHashAndIndex"],
]);

/**
 * The resource of single methods and of categories. All other methods count as `state`, the data
 * that nodes drop first.
 */
const RESOURCE_OF: ReadonlyMap<string, Resource> = new Map([
  ...each("blocks")`core network eip1559 eip4844`,
  ...each("transactions")`mempool txpool`,
  ...each("logs")`logs filters subscriptions`,
  ...each("traces")`debug trace`,
  ...each("proofs")`eth_getProof linea_getProof zks_getProof`,
  ...each("state")`debug_storageRangeAt debug_accountRange debug_codeByHash
    debug_getModifiedAccountsByHash debug_getModifiedAccountsByNumber`,
  ...each("transactions")`eth_getTransactionByHash eth_getTransactionBySenderAndNonce
    eth_getRawTransactionByHash eth_getTransactionByBlockNumberAndIndex
    eth_getTransactionByBlockHashAndIndex eth_getRawTransactionByBlockNumberAndIndex
    eth_getRawTransactionByBlockHashAndIndex debug_getRawTransaction ots_getBlockTransactions
    ots_getTransactionBySenderAndNonce`,
  ...each("receipts")`eth_getTransactionReceipt eth_getBlockReceipts debug_getRawReceipts
    debug_getBlockReceipts klay_getBlockReceipts parity_getBlockReceipts
    erigon_getBlockReceiptsByBlockHash alchemy_getTransactionReceipts`,
  ...each("logs")`erigon_getLogsByHash`,
  ...each("blocks")`debug_getRawBlock debug_getRawHeader debug_getRawBlockAccessList
    debug_getBadBlocks erigon_getHeaderByNumber erigon_getHeaderByHash erigon_getBlockByTimestamp
    ots_getBlockDetails ots_getBlockDetailsByHash bor_getAuthor bor_getSnapshot
    bor_getSnapshotProposerSequence clique_getSigners`,
] satisfies readonly [string, Resource][]);

/**
 * Every listed method, by the standard, chain or vendor that it comes from. Where no provider
 * declares support for a group of methods by category, the category is `unknown`.
 */
const ROWS: readonly Row[] = [
  // Sources: ethereum/execution-apis (eth_*), geth (debug_*, txpool_*), reth (debug_*, trace_*),
  // OpenEthereum, Erigon and Nethermind (trace_*).
  ...rows("core", 1, "cheap")`eth_blockNumber eth_syncing`,
  ...rows("core", 1, "cheap", { handling: "local" })`eth_chainId`,
  ...rows("network", 1, "cheap", { handling: "local" })`net_version`,
  ...rows("network", 1, "cheap")`net_listening web3_clientVersion`,
  ...rows("network", 3, "cheap")`net_peerCount eth_protocolVersion web3_sha3 rpc_modules`,
  ...rows("core", 3, "cheap")`eth_gasPrice eth_config eth_mining eth_hashrate`,
  ...rows("core", 3, "cheap", { handling: "local" })`eth_capabilities`,
  ...rows("eip1559", 3, "cheap")`eth_maxPriorityFeePerGas eth_baseFee`,
  ...rows("eip1559", 3, "standard", blockAt(1))`eth_feeHistory`,
  ...rows("eip4844", 3, "cheap")`eth_blobBaseFee`,
  ...rows("core", 5, "standard", blockAt(0))`eth_getBlockByNumber`,
  ...rows("core", 5, "standard")`eth_getBlockByHash`,
  ...rows("core", 3, "standard", blockAt(0))`eth_getBlockTransactionCountByNumber
    eth_getUncleCountByBlockNumber eth_getHeaderByNumber eth_getTransactionByBlockNumberAndIndex
    eth_getUncleByBlockNumberAndIndex eth_getRawTransactionByBlockNumberAndIndex`,
  ...rows("core", 3, "standard")`eth_getBlockTransactionCountByHash eth_getUncleCountByBlockHash
    eth_getHeaderByHash eth_getTransactionByBlockHashAndIndex eth_getUncleByBlockHashAndIndex
    eth_getRawTransactionByHash eth_getTransactionByHash eth_getTransactionReceipt
    eth_getTransactionBySenderAndNonce eth_getRawTransactionByBlockHashAndIndex`,
  // EIP-7928: by number, tag or hash.
  ...rows("core", 3, "default", blockAt(0))`eth_getBlockAccessList`,
  ...rows("core", 15, "default", blockAt(0))`eth_getBlockReceipts`,
  ...rows("state", 3, "standard", blockAt(1))`eth_getBalance eth_getCode eth_getTransactionCount
    eth_getStorageValues eth_getAccount eth_getAccountInfo`,
  ...rows("state", 3, "standard", blockAt(2))`eth_getStorageAt eth_getProof`,
  ...rows("state", 3, "default", blockAt(1))`eth_call eth_estimateGas eth_createAccessList
    eth_simulateV1 eth_callMany`,
  ...rows("state", 3, "default")`eth_fillTransaction`,
  ...rows("core", 5, "default", broadcast("hash"))`eth_sendRawTransaction`,
  // EIP-7966: the provider answers once it has the receipt.
  ...rows("core", 3, "traceTx", broadcast("receipt"))`eth_sendRawTransactionSync`,
  ...rows("logs", 15, "default", filterAt(0))`eth_getLogs`,
  ...rows("filters", 5, "default", { ...ownFilter, ...filterAt(0) })`eth_newFilter`,
  ...rows("filters", 5, "default", ownFilter)`eth_getFilterChanges`,
  ...rows("filters", 3, "default", ownFilter)`eth_newBlockFilter eth_newPendingTransactionFilter
    eth_uninstallFilter`,
  ...rows("filters", 15, "default", { handling: "filter" })`eth_getFilterLogs`,
  ...rows("subscriptions", 3, "default", { handling: "socket_only" })`eth_subscribe
    eth_unsubscribe`,
  ...rows("mempool", 3, "default")`eth_pendingTransactions`,
  ...rows("txpool", 3, "default")`txpool_status txpool_inspect txpool_content txpool_contentFrom`,
  ...rows("debug", 50, "traceTx", blockAt(1))`debug_traceCall debug_traceCallMany`,
  ...rows("debug", 50, "traceTx")`debug_traceTransaction`,
  ...rows("debug", 3, "traceTx", blockAt(1))`debug_codeByHash`,
  ...rows("debug", 3, "traceTx", blockAt(0))`debug_accountRange debug_getRawBlock
    debug_getRawHeader debug_getRawReceipts debug_getRawBlockAccessList`,
  ...rows("debug", 3, "traceTx")`debug_storageRangeAt debug_getRawTransaction debug_getBadBlocks
    debug_getModifiedAccountsByHash debug_getModifiedAccountsByNumber`,
  ...rows("debug", 15, "traceTx", blockAt(0))`debug_getBlockReceipts`,
  // `debug_executionWitness` and `debug_intermediateRoots` execute a whole block again.
  ...rows("debug", 100, "traceBlock", blockAt(0))`debug_traceBlockByNumber debug_traceChain
    debug_executionWitness`,
  ...rows("debug", 100, "traceBlock")`debug_traceBlockByHash debug_traceBlock
    debug_intermediateRoots`,
  ...rows("trace", 50, "traceTx", blockAt(2))`trace_call`,
  ...rows("trace", 50, "traceTx", blockAt(1))`trace_callMany`,
  ...rows("trace", 50, "traceTx")`trace_rawTransaction trace_replayTransaction trace_transaction
    trace_get trace_transactionOpcodeGas trace_transactionStorageAccess`,
  ...rows("trace", 100, "traceBlock", blockAt(0))`trace_block trace_replayBlockTransactions
    trace_blockOpcodeGas`,
  ...rows("trace", 100, "traceBlock", filterAt(0))`trace_filter`,
  ...rows("local_only", 3, "cheap", { ...write, handling: "local" })`eth_accounts`,
  ...rows("local_only", 3, "cheap", { ...write, handling: "blocked" })`eth_coinbase eth_sign
    eth_signTransaction eth_sendTransaction eth_signTypedData eth_signTypedData_v3
    eth_signTypedData_v4`,
  // OP Stack.
  ...rows("unknown", 3, "standard", blockAt(0))`optimism_outputAtBlock`,
  ...rows("unknown", 3, "standard")`optimism_syncStatus optimism_rollupConfig optimism_version
    rollup_gasPrices rollup_getInfo`,
  ...rows("unknown", 3, "cheap")`op_supportedCapabilities`,
  ...rows("core", 3, "default", broadcast("hash"))`eth_sendRawTransactionConditional`,
  // Mantle: waits for the preconfirmation, and answers with an event.
  ...rows("core", 3, "traceTx", broadcast("other"))`eth_sendRawTransactionWithPreconf`,
  // Arbitrum.
  ...rows("trace", 50, "traceTx", blockAt(2))`arbtrace_call`,
  ...rows("trace", 50, "traceTx", blockAt(1))`arbtrace_callMany`,
  ...rows("trace", 50, "traceTx")`arbtrace_replayTransaction arbtrace_transaction arbtrace_get`,
  ...rows("trace", 100, "traceBlock", blockAt(0))`arbtrace_block
    arbtrace_replayBlockTransactions`,
  ...rows("trace", 100, "traceBlock", filterAt(0))`arbtrace_filter`,
  ...rows("unknown", 3, "standard")`arb_getRawBlockMetadata arb_checkPublisherHealth`,
  ...rows("unknown", 3, "default", write)`timeboost_sendExpressLaneTransaction`,
  // ZKsync.
  ...rows("unknown", 3, "default")`zks_estimateFee zks_estimateGasL1ToL2`,
  ...rows("unknown", 3, "standard")`zks_getAllAccountBalances zks_getBlockDetails
    zks_getRawBlockTransactions zks_getBytecodeByHash zks_getTransactionDetails
    zks_getL1BatchBlockRange zks_getL1BatchDetails zks_getL2ToL1LogProof zks_getL2ToL1MsgProof
    zks_getProof zks_getConfirmedTokens`,
  ...rows("unknown", 3, "cheap")`zks_getBridgeContracts zks_getBridgehubContract
    zks_getMainContract zks_getTestnetPaymaster zks_getBaseTokenL1Address zks_getFeeParams
    zks_getL1GasPrice zks_getProtocolVersion zks_L1BatchNumber zks_L1ChainId`,
  ...rows("unknown", 3, "default", broadcast("other"))`zks_sendRawTransactionWithDetailedOutput`,
  // Linea.
  ...rows("unknown", 3, "default")`linea_estimateGas`,
  ...rows("state", 3, "standard", blockAt(2))`linea_getProof`,
  ...rows("unknown", 3, "standard")`linea_getTransactionExclusionStatusV1`,
  // Polygon.
  ...rows("unknown", 3, "standard", blockAt(0))`bor_getAuthor bor_getSnapshot
    bor_getSnapshotProposerSequence`,
  ...rows("unknown", 3, "standard")`bor_getCurrentProposer bor_getCurrentValidators
    bor_getRootHash bor_getSignersAtHash bor_getSnapshotAtHash eth_getRootHash
    zkevm_batchNumberByBlockNumber zkevm_isBlockConsolidated zkevm_isBlockVirtualized
    zkevm_getBatchByNumber zkevm_getFullBlockByHash zkevm_getFullBlockByNumber
    zkevm_getTransactionByL2Hash zkevm_getTransactionReceiptByL2Hash`,
  ...rows("unknown", 3, "cheap")`zkevm_batchNumber zkevm_consolidatedBlockNumber
    zkevm_verifiedBatchNumber zkevm_virtualBatchNumber`,
  ...rows("unknown", 3, "default", blockAt(1))`zkevm_estimateCounters zkevm_estimateFee`,
  // Otterscan and Erigon.
  ...rows("unknown", 3, "cheap")`ots_getApiLevel erigon_blockNumber erigon_forks`,
  ...rows("unknown", 3, "standard", blockAt(0))`ots_getBlockDetails ots_getBlockTransactions
    erigon_getHeaderByNumber`,
  ...rows("unknown", 3, "standard", blockAt(1))`ots_hasCode`,
  ...rows("unknown", 3, "standard")`ots_getBlockDetailsByHash ots_getContractCreator
    ots_getTransactionBySenderAndNonce erigon_getBlockByTimestamp erigon_getHeaderByHash
    erigon_getBlockReceiptsByBlockHash erigon_getLogsByHash`,
  ...rows("unknown", 3, "default")`ots_searchTransactionsBefore ots_searchTransactionsAfter`,
  ...rows("trace", 50, "traceTx")`ots_getInternalOperations ots_traceTransaction
    ots_getTransactionError`,
  ...rows("logs", 15, "default", filterAt(0))`erigon_getLogs erigon_getLatestLogs`,
  // ERC-4337.
  ...rows("unknown", 3, "default", write)`eth_sendUserOperation
    pimlico_sendCompressedUserOperation pm_sponsorUserOperation pimlico_sponsorUserOperation`,
  ...rows("unknown", 3, "default")`eth_estimateUserOperationGas pm_getPaymasterData
    pm_getPaymasterStubData`,
  ...rows("unknown", 3, "standard")`eth_getUserOperationByHash eth_getUserOperationReceipt
    pimlico_getUserOperationStatus`,
  ...rows("unknown", 3, "cheap")`eth_supportedEntryPoints pm_supportedEntryPoints
    rundler_maxPriorityFeePerGas pimlico_getUserOperationGasPrice`,
  // Vendors, and chains with few methods of their own.
  // MegaETH: the older name of eth_sendRawTransactionSync.
  ...rows("core", 3, "traceTx", broadcast("receipt"))`realtime_sendRawTransaction`,
  ...rows("core", 3, "traceTx", write)`eth_sendPrivateTransaction eth_sendPrivateRawTransaction
    eth_sendBundle eth_sendEndOfBlockBundle eth_sendMegabundle`,
  ...rows("unknown", 3, "default", write)`eth_cancelPrivateTransaction eth_cancelBundle
    mev_sendBundle`,
  ...rows("unknown", 3, "default")`eth_callBundle mev_simBundle alchemy_getAssetTransfers
    alchemy_getTransactionReceipts alchemy_simulateAssetChanges alchemy_simulateExecution
    tenderly_estimateGas`,
  ...rows("unknown", 3, "standard")`alchemy_getTokenAllowance alchemy_getTokenBalances
    alchemy_getTokenMetadata eth_getFinalizedHeader eth_getFinalizedBlock eth_getChainConfig
    monad_getTxnStatus`,
  ...rows("unknown", 3, "default", blockAt(1))`tenderly_simulateTransaction
    tenderly_simulateBundle`,
  ...rows("trace", 50, "traceTx")`tenderly_traceTransaction`,
  ...rows("unknown", 3, "standard", blockAt(0))`clique_getSigners`,
  ...rows("unknown", 15, "default", blockAt(0))`klay_getBlockReceipts parity_getBlockReceipts`,
  ...rows("eip4844", 3, "standard", blockAt(0))`eth_getBlobSidecars`,
  ...rows("eip4844", 3, "standard")`eth_getBlobSidecarByTxHash`,
];

/**
 * The row that unlisted methods share. Not replay-safe, since an unlisted method may be a write.
 */
export const UNKNOWN_METHOD: Method = {
  name: "unknown",
  index: 0,
  origin: "unlisted",
  category: "unknown",
  cu: 3,
  replaySafe: false,
  deadline: "default",
  block: null,
  resource: "state",
  handling: "route",
  transaction: null,
  coalesce: false,
  mayBeMissing: false,
  hedge: false,
  batch: false,
  cache: null,
  naming: null,
  fillsBlock: false,
  takesHash: false,
  byHashName: null,
};

/**
 * The row that blocked methods share. A configuration may list those for operators of nodes and for
 * development nodes, but not those of wallets and those that use keys held by a node.
 */
const BLOCKED_METHOD: Method = {
  ...UNKNOWN_METHOD,
  name: "blocked",
  index: 1,
  category: "local_only",
  deadline: "cheap",
  handling: "blocked",
};

const NEVER_ALLOWED = /^(?:personal|wallet)_/;
const FOR_OPERATORS =
  /^(?:(?:admin|engine|miner|les|testing)_|debug_bundler_|debug_(?:setHead|dumpBlock|standardTrace\w*ToFile)$|eth_(?:resend|signUserOperation|getWork|submitWork|submitHashrate)$)/;
/** Methods that only development nodes have. Most change the node at will. */
const FOR_DEVELOPMENT = /^(?:anvil|hardhat|evm)_|^tenderly_set/;
/** Methods of development nodes that only read. */
const READS_OF_DEVELOPMENT = /^(?:anvil|hardhat)_(?:nodeInfo|metadata|dumpState|get\w+)$/;

/** The index of the first built-in row, after the rows for unlisted and for blocked methods. */
const FIRST_BUILT_IN = 2;

/** Every row of the built-in table, by `index`. */
export const METHODS: readonly Method[] = [UNKNOWN_METHOD, BLOCKED_METHOD, ...builtInRows()];

/** Most methods that a configuration may add. */
export const MAX_ADDED_METHODS = 64;
/**
 * Length of every per-method array: the built-in rows, and room for methods that a configuration
 * adds.
 */
export const METHOD_SLOTS = METHODS.length + MAX_ADDED_METHODS;

const BY_NAME: ReadonlyMap<string, Method> = new Map(
  METHODS.slice(FIRST_BUILT_IN).map((method) => [method.name, method]),
);

/** The built-in row of a method name. Unlisted names share one row, and blocked names another. */
export function methodOf(name: string): Method {
  return BY_NAME.get(name) ?? (isBlocked(name) ? BLOCKED_METHOD : UNKNOWN_METHOD);
}

/**
 * The row of a method on a chain. Methods of development nodes are blocked, except on development
 * chains, where they count as unlisted.
 */
export function methodOn(method: Method, name: string, isDevelopment: boolean): Method {
  return isDevelopment && method === BLOCKED_METHOD && FOR_DEVELOPMENT.test(name)
    ? UNKNOWN_METHOD
    : method;
}

/**
 * Whether a method changes the state of one development node: several nodes that serve one chain
 * would no longer agree.
 */
export function changesOneNode(name: string): boolean {
  return FOR_DEVELOPMENT.test(name) && !READS_OF_DEVELOPMENT.test(name);
}

/** Whether a name without a row of its own is served if the configuration lists it. */
export function mayBeConfigured(name: string): boolean {
  return methodOf(name).origin === "unlisted" && !NEVER_ALLOWED.test(name);
}

/** Why a name is refused, as a part of a sentence, and what the caller can do. */
export function reasonForBlocking(name: string): {
  readonly reason: string;
  /** Absent = the caller must sign elsewhere. */
  readonly nextAction?: string;
} {
  if (name.startsWith("wallet_"))
    return { reason: "belongs to wallets", nextAction: "ask the wallet of the user" };
  if (FOR_OPERATORS.test(name))
    return { reason: "is for operators of nodes", nextAction: "ask a node of your own" };
  if (FOR_DEVELOPMENT.test(name))
    return { reason: "is for development chains", nextAction: "use a local chain" };
  return { reason: "would use keys held by a node" };
}

function isBlocked(name: string): boolean {
  return NEVER_ALLOWED.test(name) || FOR_OPERATORS.test(name) || FOR_DEVELOPMENT.test(name);
}

/**
 * Whether providers' refusals of a method are remembered by name, because it has no built-in row.
 */
export function isKnownByName({ origin }: Method): boolean {
  return origin !== "built_in";
}

function builtInRows(): readonly Method[] {
  return ROWS.map((row, at): Method => {
    const { name, category, replaySafe = true, block = null, handling = "route" } = row;
    const isRead = replaySafe && handling === "route";
    const isShortRead = isRead && COALESCED.has(category);
    const cache = CACHE_RULES.get(name) ?? null;
    const isStateAtBlock =
      category === "state" && cache?.kind === "block" && cache.needsBlock !== true;
    return {
      ...row,
      index: FIRST_BUILT_IN + at,
      origin: "built_in",
      replaySafe,
      block,
      resource: RESOURCE_OF.get(name) ?? RESOURCE_OF.get(category) ?? "state",
      handling,
      transaction: row.transaction ?? null,
      coalesce: isShortRead,
      mayBeMissing: MAY_BE_MISSING.has(name),
      hedge: isRead && !NOT_HEDGED.has(category),
      batch: isShortRead && !NOT_BATCHED.has(name),
      cache,
      naming: NAMING.get(name) ?? null,
      fillsBlock: isStateAtBlock || cache?.kind === "logs",
      takesHash: isStateAtBlock,
      byHashName: BY_HASH.get(name) ?? null,
    };
  });
}
