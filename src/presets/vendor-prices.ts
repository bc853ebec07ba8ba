// What a request of a method costs at vendors that count credits: `method=credits`, as their own
// documents list it; the sources stand in the rows of `vendors.ts`. Methods that are not listed
// cost what the row's `otherCredits` says.

/** Credits by method, by vendor. */
export const VENDOR_PRICES = {
  alchemy: `net_version=0 eth_chainId=0 eth_syncing=0 eth_protocolVersion=0 net_listening=0
    eth_uninstallFilter=10 eth_accounts=10 eth_blockNumber=10 eth_subscribe=10 eth_unsubscribe=10
    eth_feeHistory=10 eth_maxPriorityFeePerGas=10 eth_createAccessList=10 eth_call=26
    eth_simulateV1=40 eth_getFilterLogs=60 eth_getLogs=60 eth_sendRawTransaction=40`,
  infura: "eth_getLogs=255 eth_supportedEntryPoints=10",
  drpc: `eth_accounts=0 eth_blockNumber=10 eth_call=21 eth_chainId=0 eth_coinbase=0
    eth_createAccessList=30 eth_estimateGas=60 eth_feeHistory=15 eth_gasPrice=15 eth_getBalance=11
    eth_getBlockByHash=60 eth_getBlockByNumber=60 eth_getBlockReceipts=80
    eth_getBlockTransactionCountByHash=15 eth_getBlockTransactionCountByNumber=11 eth_getCode=24
    eth_getFilterChanges=20 eth_getFilterLogs=60 eth_getLogs=60 eth_getProof=11
    eth_getStorageAt=14 eth_getTransactionByBlockHashAndIndex=19
    eth_getTransactionByBlockNumberAndIndex=13 eth_getTransactionByHash=11
    eth_getTransactionCount=11 eth_getTransactionReceipt=30 eth_hashrate=0
    eth_maxPriorityFeePerGas=16 eth_mining=0 eth_newBlockFilter=20 eth_newFilter=20
    eth_newPendingTransactionFilter=20 eth_protocolVersion=0 eth_sendRawTransaction=90
    eth_subscribe=10 eth_syncing=0 eth_uninstallFilter=10 eth_unsubscribe=10 net_listening=0
    net_peerCount=0 net_version=0 web3_clientVersion=0 web3_sha3=10 debug_traceBlockByHash=90
    debug_traceBlockByNumber=90 debug_traceCall=90 debug_traceTransaction=90 trace_block=90
    trace_call=60 trace_callMany=90 trace_filter=75 trace_get=20 trace_rawTransaction=75
    trace_replayBlockTransactions=300 trace_replayTransaction=300 trace_transaction=90
    txpool_content=1000`,
  quicknode: "debug_traceTransaction=40",
  blockpi: `eth_chainId=0 eth_syncing=0 net_listening=0 net_version=0 net_peerCount=0
    eth_uninstallFilter=10 eth_blockNumber=10 txpool_inspect=10 txpool_status=10 eth_getBalance=15
    eth_getCode=15 eth_getTransactionCount=15 eth_hashrate=15 eth_gasPrice=15
    eth_newBlockFilter=15 eth_newFilter=15 eth_newPendingTransactionFilter=15
    eth_getBlockTransactionCountByNumber=15 eth_getBlockTransactionCountByHash=15
    eth_getStorageAt=15 web3_clientVersion=15 web3_sha3=15 trace_get=15
    eth_getTransactionReceipt=15 debug_getRawTransaction=15 debug_getRawHeader=15
    eth_getBlockByNumber=20 eth_getBlockByHash=20 eth_getFilterChanges=20 eth_call=20
    eth_estimateGas=20 trace_block=20 trace_transaction=20
    eth_getTransactionByBlockHashAndIndex=30 eth_getTransactionByBlockNumberAndIndex=30
    eth_getTransactionByHash=35 debug_getRawBlock=40 eth_getLogs=50 trace_call=60
    trace_rawTransaction=60 trace_filter=60 debug_traceCall=150 debug_traceTransaction=150
    debug_traceBlockByHash=150 debug_traceBlockByNumber=150 eth_getBlockReceipts=150
    eth_sendRawTransaction=200 debug_getRawReceipts=400 trace_replayTransaction=2900`,
  tenderly: `eth_call=4 eth_estimateGas=4 eth_sendRawTransaction=20 debug_traceBlockByHash=40
    debug_traceBlockByNumber=40 debug_traceCall=40 debug_traceTransaction=40 trace_block=40
    trace_transaction=40 tenderly_estimateGas=40 tenderly_estimateGasBundle=400
    tenderly_simulateTransaction=400 tenderly_traceTransaction=400`,
  nodereal: `eth_accounts=5 eth_blockNumber=5 eth_chainId=5 eth_syncing=5 net_listening=5
    net_version=5 web3_clientVersion=5 eth_subscribe=10 eth_uninstallFilter=10 eth_unsubscribe=10
    web3_sha3=10 net_peerCount=10 eth_gasPrice=15 eth_getBalance=15 eth_getBlockByNumber=15
    eth_getCode=15 eth_getStorageAt=15 eth_getTransactionByBlockHashAndIndex=15
    eth_getTransactionByBlockNumberAndIndex=15 eth_getTransactionByHash=15
    eth_getTransactionReceipt=15 eth_getBlockByHash=18 eth_getBlockTransactionCountByHash=18
    eth_getBlockTransactionCountByNumber=18 eth_getFilterChanges=18 eth_newBlockFilter=18
    eth_newFilter=18 eth_newPendingTransactionFilter=18 eth_call=20 eth_getProof=20
    eth_getTransactionCount=25 eth_getFilterLogs=50 eth_getLogs=50 eth_estimateGas=75
    eth_sendRawTransaction=150 debug_traceTransaction=280 debug_traceCall=280
    debug_traceBlockByNumber=1800 debug_traceBlockByHash=1800 eth_createAccessList=10
    eth_feeHistory=10 eth_maxPriorityFeePerGas=10`,
} as const satisfies Readonly<Record<string, string>>;
