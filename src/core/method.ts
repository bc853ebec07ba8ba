// The method table: the one source of what a JSON-RPC method costs, may be sent to, waits for and reads. Unlisted methods get one default row.

/** What kind of call it is; providers may declare whole categories unsupported. */
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

/** Where a method names the block it reads: a parameter holding a tag, number or EIP-1898 object, or a log filter object. */
export interface BlockParam {
  readonly kind: "block" | "filter";
  /** Index in `params`. */
  readonly at: number;
}

/** How the service treats the method: routed to a provider, answered here, refused everywhere, or only served on a socket. */
export type Handling = "route" | "local" | "blocked" | "socket_only";

/** Classes of methods by how long a call may take; the configuration gives each its milliseconds. */
export type DeadlineClass = "cheap" | "standard" | "default" | "traceTx" | "traceBlock";

/** One row of the method table. */
export interface Method {
  /** The name, or `unknown` for the default row. */
  readonly name: string;
  /** Dense position: the key of per-method arrays. 0 is the default row. */
  readonly index: number;
  readonly category: Category;
  /** Compute units at load-balanced. */
  readonly cu: number;
  /** A read that may be sent to several providers. */
  readonly replaySafe: boolean;
  readonly deadline: DeadlineClass;
  readonly block: BlockParam | null;
  readonly handling: Handling;
}

type Row = readonly [
  names: string,
  category: Category,
  cu: number,
  deadline: DeadlineClass,
  options?: { readonly block?: BlockParam; readonly replaySafe?: false; readonly handling?: Handling },
];

const blockAt = (at: number): { readonly block: BlockParam } => ({ block: { kind: "block", at } });
const filterAt = (at: number): { readonly block: BlockParam } => ({ block: { kind: "filter", at } });

// Sources: ethereum/execution-apis (eth_*), geth (debug_*, txpool_*), OpenEthereum/Erigon/Nethermind (trace_*), Otterscan and Erigon (ots_*, erigon_* stay unlisted).
const ROWS: readonly Row[] = [
  ["eth_blockNumber eth_syncing", "core", 1, "cheap"],
  ["eth_chainId", "core", 1, "cheap", { handling: "local" }],
  ["net_version", "network", 1, "cheap", { handling: "local" }],
  ["net_listening web3_clientVersion", "network", 1, "cheap"],
  ["net_peerCount eth_protocolVersion web3_sha3", "network", 3, "cheap"],
  ["eth_gasPrice", "core", 3, "cheap"],
  ["eth_maxPriorityFeePerGas", "eip1559", 3, "cheap"],
  ["eth_feeHistory", "eip1559", 3, "standard", blockAt(1)],
  ["eth_blobBaseFee", "eip4844", 3, "cheap"],
  ["eth_getBlockByNumber", "core", 5, "standard", blockAt(0)],
  ["eth_getBlockByHash", "core", 5, "standard"],
  ["eth_getBlockTransactionCountByNumber eth_getUncleCountByBlockNumber eth_getHeaderByNumber", "core", 3, "standard", blockAt(0)],
  ["eth_getTransactionByBlockNumberAndIndex eth_getUncleByBlockNumberAndIndex", "core", 3, "standard", blockAt(0)],
  ["eth_getRawTransactionByBlockNumberAndIndex", "core", 3, "standard", blockAt(0)],
  ["eth_getBlockTransactionCountByHash eth_getUncleCountByBlockHash eth_getHeaderByHash", "core", 3, "standard"],
  ["eth_getTransactionByBlockHashAndIndex eth_getUncleByBlockHashAndIndex eth_getRawTransactionByHash", "core", 3, "standard"],
  ["eth_getTransactionByHash eth_getTransactionReceipt", "core", 3, "standard"],
  ["eth_getBlockReceipts", "core", 15, "default", blockAt(0)],
  ["eth_getBalance eth_getCode eth_getTransactionCount", "state", 3, "standard", blockAt(1)],
  ["eth_getStorageAt eth_getProof", "state", 3, "standard", blockAt(2)],
  ["eth_call eth_estimateGas eth_createAccessList eth_simulateV1", "state", 3, "default", blockAt(1)],
  ["eth_sendRawTransaction", "core", 5, "default", { replaySafe: false }],
  ["eth_sendRawTransactionSync eth_sendPrivateTransaction eth_sendBundle", "core", 3, "traceTx", { replaySafe: false }],
  ["eth_getLogs", "logs", 15, "default", filterAt(0)],
  ["eth_newFilter", "filters", 5, "default", { ...filterAt(0), replaySafe: false }],
  ["eth_newBlockFilter eth_newPendingTransactionFilter eth_uninstallFilter", "filters", 3, "default", { replaySafe: false }],
  ["eth_getFilterChanges", "filters", 5, "default", { replaySafe: false }],
  ["eth_getFilterLogs", "filters", 15, "default", { replaySafe: false }],
  ["eth_subscribe eth_unsubscribe", "subscriptions", 3, "default", { handling: "socket_only" }],
  ["eth_pendingTransactions", "mempool", 3, "default"],
  ["txpool_status txpool_inspect txpool_content txpool_contentFrom", "txpool", 3, "default"],
  ["debug_traceCall", "debug", 50, "traceTx", blockAt(1)],
  ["debug_traceTransaction", "debug", 50, "traceTx"],
  ["debug_storageRangeAt", "debug", 3, "traceTx"],
  ["debug_traceBlockByNumber", "debug", 100, "traceBlock", blockAt(0)],
  ["debug_traceBlockByHash debug_traceBlock", "debug", 100, "traceBlock"],
  ["debug_getRawBlock debug_getRawHeader debug_getRawReceipts", "debug", 3, "traceTx", blockAt(0)],
  ["debug_getRawTransaction debug_getBadBlocks", "debug", 3, "traceTx"],
  ["trace_call", "trace", 50, "traceTx", blockAt(2)],
  ["trace_callMany", "trace", 50, "traceTx", blockAt(1)],
  ["trace_rawTransaction trace_replayTransaction trace_transaction trace_get", "trace", 50, "traceTx"],
  ["trace_block trace_replayBlockTransactions", "trace", 100, "traceBlock", blockAt(0)],
  ["trace_filter", "trace", 100, "traceBlock", filterAt(0)],
  ["eth_accounts", "local_only", 3, "cheap", { replaySafe: false, handling: "local" }],
  ["eth_coinbase eth_sign eth_signTransaction eth_sendTransaction", "local_only", 3, "cheap", { replaySafe: false, handling: "blocked" }],
  ["eth_signTypedData eth_signTypedData_v3 eth_signTypedData_v4", "local_only", 3, "cheap", { replaySafe: false, handling: "blocked" }],
];

/** The row of every method that is not listed: 3 CU, sent once, ten seconds. */
export const UNKNOWN_METHOD: Method = {
  name: "unknown",
  index: 0,
  category: "unknown",
  cu: 3,
  replaySafe: false,
  deadline: "default",
  block: null,
  handling: "route",
};

/** The row of every `personal_*` method: refused, because it would use keys held by a node. */
const PERSONAL_METHOD: Method = {
  name: "personal",
  index: 1,
  category: "local_only",
  cu: 3,
  replaySafe: false,
  deadline: "cheap",
  block: null,
  handling: "blocked",
};

/** Every row, by `index`. */
export const METHODS: readonly Method[] = [UNKNOWN_METHOD, PERSONAL_METHOD, ...ROWS.flatMap(([names]) => names.split(" "))].map((row, index) =>
  typeof row === "string" ? rowOf(row, index) : row,
);

const BY_NAME: ReadonlyMap<string, Method> = new Map(METHODS.slice(2).map((method) => [method.name, method]));

/** The row of a method name; unlisted names share the default row. */
export function methodOf(name: string): Method {
  return BY_NAME.get(name) ?? (name.startsWith("personal_") ? PERSONAL_METHOD : UNKNOWN_METHOD);
}

function rowOf(name: string, index: number): Method {
  const row = ROWS.find(([names]) => names.split(" ").includes(name));
  if (row === undefined) return UNKNOWN_METHOD;
  const [, category, cu, deadline, options = {}] = row;
  return {
    name,
    index,
    category,
    cu,
    deadline,
    replaySafe: options.replaySafe ?? true,
    block: options.block ?? null,
    handling: options.handling ?? "route",
  };
}
