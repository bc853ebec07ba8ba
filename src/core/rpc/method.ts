// The method table: the cost, routing, deadline and block parameter of each JSON-RPC method.
// Unlisted methods share one default row.
import type { CacheRule, Naming } from "./answer-rules.ts";

/** The kind of call; a provider may declare whole categories as unsupported. */
export type Category =
  | "core"
  | "state"
  | "network"
  | "eip1559"
  | "eip4844"
  | "mempool"
  | "logs"
  | "filters"
  | "subscriptions"
  | "batch"
  | "debug"
  | "trace"
  | "txpool"
  | "local_only"
  | "unknown";

export const CATEGORIES: readonly Category[] = [
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
];

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

/** The origin of a method: the standard, or the chain or vendor that adds it. */
export type Family =
  | "standard"
  | "op_stack"
  | "arbitrum"
  | "zksync"
  | "linea"
  | "polygon"
  | "otterscan"
  | "erc4337"
  | "vendor"
  | "configured"
  | "unlisted";

/**
 * What a node must have kept to answer about an old block. Nodes drop each by itself, so what is
 * learned of one says nothing of another.
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
 * The answer of a method that submits a raw transaction: its hash, its receipt (EIP-7966), or
 * another format.
 */
export type TransactionAnswer = "hash" | "receipt" | "other";

/** One row of the method table. */
export interface Method {
  /** The name, or `unknown` for the default row. */
  readonly name: string;
  /** Dense index below `METHOD_SLOTS` into per-method arrays. 0 is the default row. */
  readonly index: number;
  readonly family: Family;
  readonly category: Category;
  /** Compute units with the strategy `load-balanced`. */
  readonly cu: number;
  /** A read, which may be sent to several providers. */
  readonly replaySafe: boolean;
  readonly deadline: DeadlineClass;
  readonly block: BlockParam | null;
  /** What a node must have kept to answer about an old block. */
  readonly resource: Resource;
  readonly handling: Handling;
  /** The answer if it submits a raw transaction; null = it does not submit one. */
  readonly transaction: TransactionAnswer | null;
  /** Equal concurrent calls may share one answer. */
  readonly coalesce: boolean;
  /** `null` means that the node does not have it: others may. */
  readonly mayBeMissing: boolean;
  /** A read that may be asked of a second provider while the first one takes long. */
  readonly hedge: boolean;
  /** A read with a short answer, which may be asked together with others in one request. */
  readonly batch: boolean;
  /** How its answers may be kept; null = they are not. */
  readonly cache: CacheRule | null;
  /** What its answers are and name of what was asked for; null = nothing that is known. */
  readonly naming: Naming | null;
  /** A block that is left out means the newest one at every node. */
  readonly fillsBlock: boolean;
  /** Its block parameter may be an EIP-1898 object, where the node takes one. */
  readonly takesHash: boolean;
  /** The method that asks for the same by the hash of the block; null = there is none. */
  readonly byHashName: string | null;
}

type Row = readonly [
  names: string,
  category: Category,
  cu: number,
  deadline: DeadlineClass,
  options?: {
    readonly block?: BlockParam;
    readonly replaySafe?: false;
    readonly handling?: Handling;
    readonly transaction?: TransactionAnswer;
  },
];

const blockAt = (at: number): { readonly block: BlockParam } => ({ block: { kind: "block", at } });
const filterAt = (at: number): { readonly block: BlockParam } => ({
  block: { kind: "filter", at },
});

const write = { replaySafe: false } as const;
const broadcast = (transaction: TransactionAnswer) => ({ ...write, transaction });

/** Categories of reads with short answers that are the same for all callers at one time. */
const COALESCED: ReadonlySet<Category> = new Set([
  "core",
  "state",
  "network",
  "eip1559",
  "eip4844",
] as const);

/** Transactions, receipts and blocks. */
const MAY_BE_MISSING: ReadonlySet<string> = new Set([
  "eth_getTransactionByHash",
  "eth_getTransactionReceipt",
  "eth_getRawTransactionByHash",
  "eth_getBlockByHash",
  "eth_getBlockByNumber",
  "eth_getHeaderByHash",
  "eth_getHeaderByNumber",
  "eth_getBlockReceipts",
  "eth_getBlockAccessList",
  "eth_getBlockTransactionCountByHash",
  "eth_getBlockTransactionCountByNumber",
  "eth_getTransactionByBlockHashAndIndex",
  "eth_getRawTransactionByBlockHashAndIndex",
]);

/** Categories of calls that are too expensive to be asked twice, or differ between providers. */
const NOT_HEDGED: ReadonlySet<Category> = new Set([
  "logs",
  "debug",
  "trace",
  "mempool",
  "txpool",
] as const);

/** Reads whose answers are long, or may keep those beside them waiting. */
const NOT_BATCHED: ReadonlySet<string> = new Set([
  "eth_getBlockReceipts",
  "eth_getBlockAccessList",
  "eth_simulateV1",
  "eth_callMany",
  "eth_getBlobSidecars",
  "eth_getBlobSidecarByTxHash",
]);

const byBlock = (params: number, more: { named?: true; needsBlock?: true } = {}): CacheRule => ({
  kind: "block",
  params,
  ...more,
});

/** Methods whose answers may be kept. Nodes differ in which block an estimate without one takes. */
const CACHE_RULES: ReadonlyMap<string, CacheRule> = new Map(
  (
    [
      [
        { kind: "head" },
        "eth_blockNumber eth_gasPrice eth_maxPriorityFeePerGas eth_baseFee eth_blobBaseFee eth_config",
      ],
      [
        byBlock(2),
        "eth_getBalance eth_getCode eth_getTransactionCount eth_getStorageValues eth_call",
      ],
      [byBlock(3), "eth_getStorageAt eth_getProof eth_feeHistory"],
      [byBlock(2, { needsBlock: true }), "eth_estimateGas eth_createAccessList"],
      [byBlock(2, { named: true }), "eth_getBlockByNumber eth_getTransactionByBlockNumberAndIndex"],
      [byBlock(1, { named: true }), "eth_getHeaderByNumber eth_getBlockReceipts"],
      [
        byBlock(1),
        "eth_getBlockTransactionCountByNumber eth_getUncleCountByBlockNumber " +
          "eth_getBlockAccessList",
      ],
      [byBlock(2), "eth_getUncleByBlockNumberAndIndex eth_getRawTransactionByBlockNumberAndIndex"],
      [
        { kind: "hash" },
        "eth_getBlockByHash eth_getHeaderByHash eth_getBlockTransactionCountByHash " +
          "eth_getUncleCountByBlockHash eth_getTransactionByBlockHashAndIndex " +
          "eth_getUncleByBlockHashAndIndex eth_getRawTransactionByBlockHashAndIndex",
      ],
      [{ kind: "transaction" }, "eth_getTransactionByHash eth_getTransactionReceipt"],
      [{ kind: "logs" }, "eth_getLogs"],
    ] satisfies readonly (readonly [CacheRule, string])[]
  ).flatMap(([rule, names]) => names.split(" ").map((name): [string, CacheRule] => [name, rule])),
);

/** What answers are and name of what was asked for: only what holds on every chain. */
const NAMING: ReadonlyMap<string, Naming> = new Map(
  (
    [
      [
        "block",
        "eth_getBlockByNumber eth_getHeaderByNumber eth_getBlockByHash eth_getHeaderByHash",
      ],
      ["receipts", "eth_getBlockReceipts"],
      ["indexed", "eth_getTransactionByBlockNumberAndIndex eth_getTransactionByBlockHashAndIndex"],
      ["transaction", "eth_getTransactionByHash"],
      ["receipt", "eth_getTransactionReceipt"],
      ["logs", "eth_getLogs"],
      [
        "hex",
        "eth_blockNumber eth_chainId eth_gasPrice eth_maxPriorityFeePerGas eth_getBalance " +
          "eth_getTransactionCount eth_getCode eth_getStorageAt eth_call eth_estimateGas",
      ],
    ] satisfies readonly (readonly [Naming, string])[]
  ).flatMap(([naming, names]) => names.split(" ").map((name): [string, Naming] => [name, naming])),
);

/** Reads of state at one block: EIP-1898. */
const STATE_AT_BLOCK: ReadonlySet<string> = new Set([
  "eth_getBalance",
  "eth_getStorageAt",
  "eth_getStorageValues",
  "eth_getTransactionCount",
  "eth_getCode",
  "eth_call",
  "eth_getProof",
]);

/** What is asked for by the number of a block can be asked for by its hash. */
const BY_HASH: ReadonlyMap<string, string> = new Map([
  ["eth_getBlockByNumber", "eth_getBlockByHash"],
  ["eth_getBlockTransactionCountByNumber", "eth_getBlockTransactionCountByHash"],
  ["eth_getTransactionByBlockNumberAndIndex", "eth_getTransactionByBlockHashAndIndex"],
]);

/**
 * The resource of each category, where a method is not named below. `unknown`: of what nobody
 * knows, the one that is dropped first.
 */
const RESOURCE_OF: Readonly<Record<Category, Resource>> = {
  core: "blocks",
  state: "state",
  network: "blocks",
  eip1559: "blocks",
  eip4844: "blocks",
  mempool: "transactions",
  logs: "logs",
  filters: "logs",
  subscriptions: "logs",
  batch: "state",
  debug: "traces",
  trace: "traces",
  txpool: "transactions",
  local_only: "state",
  unknown: "state",
};

/** Methods that read another resource than most of their category. */
const OWN_RESOURCES: ReadonlyMap<string, Resource> = new Map(
  (
    [
      ["proofs", "eth_getProof linea_getProof zks_getProof"],
      [
        "state",
        "debug_storageRangeAt debug_accountRange debug_codeByHash debug_getModifiedAccountsByHash " +
          "debug_getModifiedAccountsByNumber",
      ],
      [
        "transactions",
        "eth_getTransactionByHash eth_getTransactionBySenderAndNonce eth_getRawTransactionByHash " +
          "eth_getTransactionByBlockNumberAndIndex eth_getTransactionByBlockHashAndIndex " +
          "eth_getRawTransactionByBlockNumberAndIndex eth_getRawTransactionByBlockHashAndIndex " +
          "debug_getRawTransaction ots_getBlockTransactions ots_getTransactionBySenderAndNonce",
      ],
      [
        "receipts",
        "eth_getTransactionReceipt eth_getBlockReceipts debug_getRawReceipts " +
          "debug_getBlockReceipts klay_getBlockReceipts parity_getBlockReceipts " +
          "erigon_getBlockReceiptsByBlockHash alchemy_getTransactionReceipts",
      ],
      ["logs", "erigon_getLogsByHash"],
      [
        "blocks",
        "debug_getRawBlock debug_getRawHeader debug_getRawBlockAccessList debug_getBadBlocks " +
          "erigon_getHeaderByNumber erigon_getHeaderByHash erigon_getBlockByTimestamp " +
          "ots_getBlockDetails ots_getBlockDetailsByHash bor_getAuthor bor_getSnapshot " +
          "bor_getSnapshotProposerSequence clique_getSigners",
      ],
    ] satisfies readonly (readonly [Resource, string])[]
  ).flatMap(([resource, names]) =>
    names.split(" ").map((name): [string, Resource] => [name, resource]),
  ),
);

// Sources: ethereum/execution-apis (eth_*), geth (debug_*, txpool_*), reth (debug_*, trace_*),
// OpenEthereum/Erigon/Nethermind (trace_*).
const STANDARD: readonly Row[] = [
  ["eth_blockNumber eth_syncing", "core", 1, "cheap"],
  ["eth_chainId", "core", 1, "cheap", { handling: "local" }],
  ["net_version", "network", 1, "cheap", { handling: "local" }],
  ["net_listening web3_clientVersion", "network", 1, "cheap"],
  ["net_peerCount eth_protocolVersion web3_sha3 rpc_modules", "network", 3, "cheap"],
  ["eth_gasPrice", "core", 3, "cheap"],
  ["eth_maxPriorityFeePerGas", "eip1559", 3, "cheap"],
  ["eth_feeHistory", "eip1559", 3, "standard", blockAt(1)],
  ["eth_baseFee", "eip1559", 3, "cheap"],
  ["eth_blobBaseFee", "eip4844", 3, "cheap"],
  ["eth_getBlockByNumber", "core", 5, "standard", blockAt(0)],
  ["eth_getBlockByHash", "core", 5, "standard"],
  [
    "eth_getBlockTransactionCountByNumber eth_getUncleCountByBlockNumber eth_getHeaderByNumber",
    "core",
    3,
    "standard",
    blockAt(0),
  ],
  [
    "eth_getTransactionByBlockNumberAndIndex eth_getUncleByBlockNumberAndIndex",
    "core",
    3,
    "standard",
    blockAt(0),
  ],
  ["eth_getRawTransactionByBlockNumberAndIndex", "core", 3, "standard", blockAt(0)],
  [
    "eth_getBlockTransactionCountByHash eth_getUncleCountByBlockHash eth_getHeaderByHash",
    "core",
    3,
    "standard",
  ],
  [
    "eth_getTransactionByBlockHashAndIndex eth_getUncleByBlockHashAndIndex " +
      "eth_getRawTransactionByHash",
    "core",
    3,
    "standard",
  ],
  [
    "eth_getTransactionByHash eth_getTransactionReceipt eth_getTransactionBySenderAndNonce",
    "core",
    3,
    "standard",
  ],
  ["eth_getRawTransactionByBlockHashAndIndex", "core", 3, "standard"],
  // EIP-7928: by number, tag or hash.
  ["eth_getBlockAccessList", "core", 3, "default", blockAt(0)],
  ["eth_config eth_capabilities eth_mining eth_hashrate", "core", 3, "cheap"],
  ["eth_getBlockReceipts", "core", 15, "default", blockAt(0)],
  ["eth_getBalance eth_getCode eth_getTransactionCount", "state", 3, "standard", blockAt(1)],
  ["eth_getStorageAt eth_getProof", "state", 3, "standard", blockAt(2)],
  ["eth_getStorageValues eth_getAccount eth_getAccountInfo", "state", 3, "standard", blockAt(1)],
  [
    "eth_call eth_estimateGas eth_createAccessList eth_simulateV1 eth_callMany",
    "state",
    3,
    "default",
    blockAt(1),
  ],
  ["eth_fillTransaction", "state", 3, "default"],
  ["eth_sendRawTransaction", "core", 5, "default", broadcast("hash")],
  // EIP-7966 waits for the receipt.
  ["eth_sendRawTransactionSync", "core", 3, "traceTx", broadcast("receipt")],
  ["eth_getLogs", "logs", 15, "default", filterAt(0)],
  [
    "eth_newFilter",
    "filters",
    5,
    "default",
    { ...filterAt(0), replaySafe: false, handling: "filter" },
  ],
  [
    "eth_newBlockFilter eth_newPendingTransactionFilter eth_uninstallFilter",
    "filters",
    3,
    "default",
    { replaySafe: false, handling: "filter" },
  ],
  ["eth_getFilterChanges", "filters", 5, "default", { replaySafe: false, handling: "filter" }],
  ["eth_getFilterLogs", "filters", 15, "default", { handling: "filter" }],
  ["eth_subscribe eth_unsubscribe", "subscriptions", 3, "default", { handling: "socket_only" }],
  ["eth_pendingTransactions", "mempool", 3, "default"],
  ["txpool_status txpool_inspect txpool_content txpool_contentFrom", "txpool", 3, "default"],
  ["debug_traceCall debug_traceCallMany", "debug", 50, "traceTx", blockAt(1)],
  ["debug_traceTransaction", "debug", 50, "traceTx"],
  ["debug_storageRangeAt", "debug", 3, "traceTx"],
  ["debug_accountRange", "debug", 3, "traceTx", blockAt(0)],
  ["debug_codeByHash", "debug", 3, "traceTx", blockAt(1)],
  ["debug_traceBlockByNumber debug_traceChain", "debug", 100, "traceBlock", blockAt(0)],
  ["debug_traceBlockByHash debug_traceBlock", "debug", 100, "traceBlock"],
  // These two carry a block out again.
  ["debug_executionWitness", "debug", 100, "traceBlock", blockAt(0)],
  ["debug_intermediateRoots", "debug", 100, "traceBlock"],
  [
    "debug_getRawBlock debug_getRawHeader debug_getRawReceipts debug_getRawBlockAccessList",
    "debug",
    3,
    "traceTx",
    blockAt(0),
  ],
  ["debug_getBlockReceipts", "debug", 15, "traceTx", blockAt(0)],
  [
    "debug_getRawTransaction debug_getBadBlocks debug_getModifiedAccountsByHash " +
      "debug_getModifiedAccountsByNumber",
    "debug",
    3,
    "traceTx",
  ],
  ["trace_call", "trace", 50, "traceTx", blockAt(2)],
  ["trace_callMany", "trace", 50, "traceTx", blockAt(1)],
  [
    "trace_rawTransaction trace_replayTransaction trace_transaction trace_get",
    "trace",
    50,
    "traceTx",
  ],
  ["trace_transactionOpcodeGas trace_transactionStorageAccess", "trace", 50, "traceTx"],
  [
    "trace_block trace_replayBlockTransactions trace_blockOpcodeGas",
    "trace",
    100,
    "traceBlock",
    blockAt(0),
  ],
  ["trace_filter", "trace", 100, "traceBlock", filterAt(0)],
  ["eth_accounts", "local_only", 3, "cheap", { replaySafe: false, handling: "local" }],
  [
    "eth_coinbase eth_sign eth_signTransaction eth_sendTransaction",
    "local_only",
    3,
    "cheap",
    { replaySafe: false, handling: "blocked" },
  ],
  [
    "eth_signTypedData eth_signTypedData_v3 eth_signTypedData_v4",
    "local_only",
    3,
    "cheap",
    { replaySafe: false, handling: "blocked" },
  ],
];

/**
 * Methods of chains and vendors that are replay-safe or have a block parameter. The category stays
 * `unknown` where no provider declares any.
 */
const FAMILIES: ReadonlyMap<Family, readonly Row[]> = new Map<Family, readonly Row[]>([
  ["standard", STANDARD],
  [
    "op_stack",
    [
      ["optimism_outputAtBlock", "unknown", 3, "standard", blockAt(0)],
      [
        "optimism_syncStatus optimism_rollupConfig optimism_version rollup_gasPrices rollup_getInfo",
        "unknown",
        3,
        "standard",
      ],
      ["op_supportedCapabilities", "unknown", 3, "cheap"],
      ["eth_sendRawTransactionConditional", "core", 3, "default", broadcast("hash")],
      // Mantle: waits for the preconfirmation, and answers with an event.
      ["eth_sendRawTransactionWithPreconf", "core", 3, "traceTx", broadcast("other")],
    ],
  ],
  [
    "arbitrum",
    [
      ["arbtrace_call", "trace", 50, "traceTx", blockAt(2)],
      ["arbtrace_callMany", "trace", 50, "traceTx", blockAt(1)],
      ["arbtrace_replayTransaction arbtrace_transaction arbtrace_get", "trace", 50, "traceTx"],
      ["arbtrace_block arbtrace_replayBlockTransactions", "trace", 100, "traceBlock", blockAt(0)],
      ["arbtrace_filter", "trace", 100, "traceBlock", filterAt(0)],
      ["arb_getRawBlockMetadata arb_checkPublisherHealth", "unknown", 3, "standard"],
      ["timeboost_sendExpressLaneTransaction", "unknown", 3, "default", write],
    ],
  ],
  [
    "zksync",
    [
      ["zks_estimateFee zks_estimateGasL1ToL2", "unknown", 3, "default"],
      [
        "zks_getAllAccountBalances zks_getBlockDetails zks_getRawBlockTransactions " +
          "zks_getBytecodeByHash zks_getTransactionDetails",
        "unknown",
        3,
        "standard",
      ],
      [
        "zks_getBridgeContracts zks_getBridgehubContract zks_getMainContract " +
          "zks_getTestnetPaymaster zks_getBaseTokenL1Address",
        "unknown",
        3,
        "cheap",
      ],
      [
        "zks_getFeeParams zks_getL1GasPrice zks_getProtocolVersion zks_L1BatchNumber zks_L1ChainId",
        "unknown",
        3,
        "cheap",
      ],
      [
        "zks_getL1BatchBlockRange zks_getL1BatchDetails zks_getL2ToL1LogProof " +
          "zks_getL2ToL1MsgProof zks_getProof zks_getConfirmedTokens",
        "unknown",
        3,
        "standard",
      ],
      ["zks_sendRawTransactionWithDetailedOutput", "unknown", 3, "default", broadcast("other")],
    ],
  ],
  [
    "linea",
    [
      ["linea_estimateGas", "unknown", 3, "default"],
      ["linea_getProof", "state", 3, "standard", blockAt(2)],
      ["linea_getTransactionExclusionStatusV1", "unknown", 3, "standard"],
    ],
  ],
  [
    "polygon",
    [
      [
        "bor_getAuthor bor_getSnapshot bor_getSnapshotProposerSequence",
        "unknown",
        3,
        "standard",
        blockAt(0),
      ],
      [
        "bor_getCurrentProposer bor_getCurrentValidators bor_getRootHash bor_getSignersAtHash " +
          "bor_getSnapshotAtHash eth_getRootHash",
        "unknown",
        3,
        "standard",
      ],
      [
        "zkevm_batchNumber zkevm_consolidatedBlockNumber zkevm_verifiedBatchNumber " +
          "zkevm_virtualBatchNumber",
        "unknown",
        3,
        "cheap",
      ],
      [
        "zkevm_batchNumberByBlockNumber zkevm_isBlockConsolidated zkevm_isBlockVirtualized " +
          "zkevm_getBatchByNumber",
        "unknown",
        3,
        "standard",
      ],
      [
        "zkevm_getFullBlockByHash zkevm_getFullBlockByNumber zkevm_getTransactionByL2Hash " +
          "zkevm_getTransactionReceiptByL2Hash",
        "unknown",
        3,
        "standard",
      ],
      ["zkevm_estimateCounters zkevm_estimateFee", "unknown", 3, "default", blockAt(1)],
    ],
  ],
  [
    "otterscan",
    [
      ["ots_getApiLevel", "unknown", 3, "cheap"],
      ["ots_getBlockDetails ots_getBlockTransactions", "unknown", 3, "standard", blockAt(0)],
      ["ots_hasCode", "unknown", 3, "standard", blockAt(1)],
      [
        "ots_getBlockDetailsByHash ots_getContractCreator ots_getTransactionBySenderAndNonce",
        "unknown",
        3,
        "standard",
      ],
      ["ots_searchTransactionsBefore ots_searchTransactionsAfter", "unknown", 3, "default"],
      [
        "ots_getInternalOperations ots_traceTransaction ots_getTransactionError",
        "trace",
        50,
        "traceTx",
      ],
      ["erigon_blockNumber erigon_forks", "unknown", 3, "cheap"],
      ["erigon_getHeaderByNumber", "unknown", 3, "standard", blockAt(0)],
      [
        "erigon_getBlockByTimestamp erigon_getHeaderByHash erigon_getBlockReceiptsByBlockHash " +
          "erigon_getLogsByHash",
        "unknown",
        3,
        "standard",
      ],
      ["erigon_getLogs erigon_getLatestLogs", "logs", 15, "default", filterAt(0)],
    ],
  ],
  [
    "erc4337",
    [
      [
        "eth_sendUserOperation pimlico_sendCompressedUserOperation pm_sponsorUserOperation " +
          "pimlico_sponsorUserOperation",
        "unknown",
        3,
        "default",
        write,
      ],
      [
        "eth_estimateUserOperationGas pm_getPaymasterData pm_getPaymasterStubData",
        "unknown",
        3,
        "default",
      ],
      [
        "eth_getUserOperationByHash eth_getUserOperationReceipt pimlico_getUserOperationStatus",
        "unknown",
        3,
        "standard",
      ],
      [
        "eth_supportedEntryPoints pm_supportedEntryPoints rundler_maxPriorityFeePerGas " +
          "pimlico_getUserOperationGasPrice",
        "unknown",
        3,
        "cheap",
      ],
    ],
  ],
  [
    "vendor",
    [
      [
        "eth_sendPrivateTransaction eth_sendPrivateRawTransaction eth_sendBundle " +
          "eth_sendEndOfBlockBundle eth_sendMegabundle",
        "core",
        3,
        "traceTx",
        write,
      ],
      // MegaETH: the older name of eth_sendRawTransactionSync.
      ["realtime_sendRawTransaction", "core", 3, "traceTx", broadcast("receipt")],
      [
        "eth_cancelPrivateTransaction eth_cancelBundle mev_sendBundle",
        "unknown",
        3,
        "default",
        write,
      ],
      ["eth_callBundle mev_simBundle", "unknown", 3, "default"],
      ["alchemy_getAssetTransfers alchemy_getTransactionReceipts", "unknown", 3, "default"],
      [
        "alchemy_getTokenAllowance alchemy_getTokenBalances alchemy_getTokenMetadata",
        "unknown",
        3,
        "standard",
      ],
      [
        "alchemy_simulateAssetChanges alchemy_simulateExecution tenderly_estimateGas",
        "unknown",
        3,
        "default",
      ],
      ["tenderly_simulateTransaction tenderly_simulateBundle", "unknown", 3, "default", blockAt(1)],
      ["tenderly_traceTransaction", "trace", 50, "traceTx"],
      [
        "eth_getFinalizedHeader eth_getFinalizedBlock eth_getChainConfig monad_getTxnStatus",
        "unknown",
        3,
        "standard",
      ],
      ["clique_getSigners", "unknown", 3, "standard", blockAt(0)],
      ["klay_getBlockReceipts parity_getBlockReceipts", "unknown", 15, "default", blockAt(0)],
      ["eth_getBlobSidecars", "eip4844", 3, "standard", blockAt(0)],
      ["eth_getBlobSidecarByTxHash", "eip4844", 3, "standard"],
    ],
  ],
]);

/** The row of unlisted methods: 3 CU, sent once, deadline ten seconds. */
export const UNKNOWN_METHOD: Method = {
  name: "unknown",
  index: 0,
  family: "unlisted",
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
 * The row of all names that are refused unless the configuration allows them: they are for
 * operators of nodes, use keys that a node holds, or belong to a wallet.
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
/** What changes a development node at will. */
const FOR_DEVELOPMENT = /^(?:anvil|hardhat|evm)_|^tenderly_set/;
/** Of these, those that only read. */
const READS_OF_DEVELOPMENT = /^(?:anvil|hardhat)_(?:nodeInfo|metadata|dumpState|get\w+)$/;

/** Every row of the built-in table, by `index`. */
export const METHODS: readonly Method[] = [UNKNOWN_METHOD, BLOCKED_METHOD, ...builtInRows()];

/** Most methods that a configuration may add. */
export const MAX_ADDED_METHODS = 64;
/** Length of every per-method array: the built-in rows and those that configurations may add. */
export const METHOD_SLOTS = METHODS.length + MAX_ADDED_METHODS;

const BY_NAME: ReadonlyMap<string, Method> = new Map(
  METHODS.slice(2).map((method) => [method.name, method]),
);

/** The built-in row of a method name; unlisted names share the default row. */
export function methodOf(name: string): Method {
  return BY_NAME.get(name) ?? (isBlocked(name) ? BLOCKED_METHOD : UNKNOWN_METHOD);
}

/**
 * The row of a method on a chain: what only development nodes have is an unlisted method on the
 * chains of those.
 */
export function methodOn(method: Method, name: string, isDevelopment: boolean): Method {
  return isDevelopment && method === BLOCKED_METHOD && FOR_DEVELOPMENT.test(name)
    ? UNKNOWN_METHOD
    : method;
}

/**
 * Whether a method changes a development node at will: several nodes that hold one chain would no
 * longer agree.
 */
export function changesOneNode(name: string): boolean {
  return FOR_DEVELOPMENT.test(name) && !READS_OF_DEVELOPMENT.test(name);
}

/** Whether a name without a row of its own is served if the configuration lists it. */
export function mayBeConfigured(name: string): boolean {
  return methodOf(name).family === "unlisted" && !NEVER_ALLOWED.test(name);
}

/** Why a name is refused, as a part of a sentence, and what its caller can do. */
export function reasonForBlocking(name: string): {
  readonly reason: string;
  /** Absent = sign elsewhere. */
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
export function isKnownByName({ family }: Method): boolean {
  return family === "unlisted" || family === "configured";
}

function builtInRows(): readonly Method[] {
  let index = 2;
  return [...FAMILIES].flatMap(([family, rows]) =>
    rows.flatMap(([names, category, cu, deadline, options = {}]) =>
      names.split(" ").map((name): Method => {
        const { replaySafe = true, block = null, handling = "route", transaction } = options;
        const isShortRead = replaySafe && handling === "route" && COALESCED.has(category);
        return {
          name,
          index: index++,
          family,
          category,
          cu,
          deadline,
          replaySafe,
          block,
          resource: OWN_RESOURCES.get(name) ?? RESOURCE_OF[category],
          handling,
          transaction: transaction ?? null,
          coalesce: isShortRead,
          mayBeMissing: MAY_BE_MISSING.has(name),
          hedge: replaySafe && handling === "route" && !NOT_HEDGED.has(category),
          batch: isShortRead && !NOT_BATCHED.has(name),
          cache: CACHE_RULES.get(name) ?? null,
          naming: NAMING.get(name) ?? null,
          fillsBlock: STATE_AT_BLOCK.has(name) || name === "eth_getLogs",
          takesHash: STATE_AT_BLOCK.has(name),
          byHashName: BY_HASH.get(name) ?? null,
        };
      }),
    ),
  );
}
