// Vendors with addresses that only the file can say, bundlers, log services, and vendors that have
// closed, one row each. What the fields mean stands in `vendor.ts`.
import { pricesOf, type Vendor, wordsOf } from "./vendor.ts";
import { VENDOR_CHAINS } from "./vendor-chains.ts";
import { VENDOR_PRICES } from "./vendor-prices.ts";

const LOOKED_AT = "2026-11-29";
const ERPC = "https://github.com/erpc/erpc/tree/main/thirdparty";

/** The vendors by the word that `vendor:` names them with. */
export const SERVICE_VENDORS: Readonly<Record<string, Vendor>> = {
  quicknode: {
    name: "Quicknode",
    domain: "quiknode.pro",
    chains: "endpoints",
    http: "{endpoint}",
    ws: "{endpoint}",
    key: "none",
    credits: pricesOf(VENDOR_PRICES.quicknode),
    otherCredits: 20,
    plans: {
      free: { rps: 15, monthly: 10_000_000, blocks: 5 },
      build: { blocks: { 1329: 2_000, other: 10_000 } },
      scale: { blocks: { 1329: 2_000, other: 10_000 } },
      business: { blocks: { 1329: 2_000, other: 10_000 } },
    },
    sources: [
      "https://www.quicknode.com/docs/kaia/eth_getLogs",
      "https://www.quicknode.com/docs/sei/eth_getLogs",
      "https://docs.near.org/api/rpc/providers",
      `${ERPC}/quicknode.go`,
    ],
    lookedAt: LOOKED_AT,
  },
  chainstack: {
    name: "Chainstack",
    domain: "chainstack.com",
    chains: "endpoints",
    http: "{endpoint}",
    ws: "{endpoint}",
    key: "none",
    plans: {
      developer: { rps: 25, blocks: 100 },
      growth: { rps: 250, blocks: 10_000 },
      pro: { rps: 400, blocks: 10_000 },
      business: { rps: 600, blocks: 10_000 },
      enterprise: { blocks: 10_000 },
    },
    sources: [
      "https://docs.chainstack.com/docs/rps-plan-limits",
      "https://docs.chainstack.com/docs/limits",
    ],
    lookedAt: LOOKED_AT,
  },
  getblock: {
    name: "GetBlock",
    domain: "getblock.io",
    chains: "endpoints",
    http: "{endpoint}",
    key: "none",
    plans: {
      free: { rps: 20 },
      starter: { rps: 100 },
      advanced: { rps: 300 },
      pro: { rps: 500 },
    },
    sources: [
      "https://docs.getblock.io/getting-started/authentication-with-access-tokens",
      "https://docs.getblock.io/getting-started/plans-and-limits/cu-and-rate-limits",
    ],
    lookedAt: LOOKED_AT,
  },
  conduit: {
    name: "Conduit",
    domain: "conduit.xyz",
    chains: "endpoints",
    http: "{endpoint}/{key}",
    key: "optional",
    keyless: "{endpoint}",
    plans: {},
    sources: [`${ERPC}/conduit.go`],
    lookedAt: LOOKED_AT,
  },
  envio: {
    name: "Envio HyperRPC",
    domain: "hypersync.xyz",
    chains: wordsOf(VENDOR_CHAINS.envio),
    http: "https://{id}.rpc.hypersync.xyz/{key}",
    key: "optional",
    keyless: "https://{id}.rpc.hypersync.xyz",
    kind: "logs",
    archival: true,
    methods: [
      ...["eth_chainId", "eth_blockNumber", "eth_getBlockByNumber", "eth_getBlockByHash"],
      ...["eth_getTransactionByHash", "eth_getTransactionByBlockHashAndIndex"],
      ...["eth_getTransactionByBlockNumberAndIndex", "eth_getTransactionReceipt"],
      ...["eth_getBlockReceipts", "eth_getLogs"],
    ],
    plans: {},
    sources: [
      `${ERPC}/envio.go`,
      "https://docs.envio.dev/docs/HyperRPC/hyperrpc-supported-networks",
    ],
    lookedAt: LOOKED_AT,
  },
  pimlico: {
    name: "Pimlico",
    domain: "pimlico.io",
    chains: wordsOf(VENDOR_CHAINS.pimlico),
    http: "https://api.pimlico.io/v2/{id}/rpc?apikey={key}",
    key: "optional",
    keyless: "https://public.pimlico.io/v2/{id}/rpc",
    kind: "bundler",
    methods: [
      ...["eth_sendUserOperation", "eth_estimateUserOperationGas", "eth_supportedEntryPoints"],
      ...["eth_getUserOperationReceipt", "eth_getUserOperationByHash"],
      ...["pimlico_sendCompressedUserOperation", "pimlico_getUserOperationGasPrice"],
      ...["pimlico_getUserOperationStatus", "pm_sponsorUserOperation", "pm_getPaymasterData"],
      "pm_getPaymasterStubData",
    ],
    plans: {},
    sources: [`${ERPC}/pimlico.go`],
    lookedAt: LOOKED_AT,
  },
  etherspot: {
    name: "Etherspot",
    domain: "etherspot.io",
    chains: wordsOf(VENDOR_CHAINS.etherspot),
    http: "https://{slug}.etherspot.io/v2/{id}?api-key={key}",
    key: "required",
    kind: "bundler",
    methods: [
      ...["eth_sendUserOperation", "eth_estimateUserOperationGas", "eth_supportedEntryPoints"],
      ...["eth_getUserOperationReceipt", "eth_getUserOperationByHash"],
      ...["skandha_config", "skandha_feeHistory", "skandha_getGasPrice"],
    ],
    plans: {},
    sources: [
      "https://github.com/etherspot/etherspot-modular-sdk/tree/master/src/sdk/network",
      `${ERPC}/etherspot.go`,
    ],
    lookedAt: LOOKED_AT,
  },
  blastapi: {
    name: "Blast API",
    domain: "blastapi.io",
    chains: new Map(),
    http: "https://{slug}.blastapi.io/{key}",
    key: "required",
    plans: {},
    sources: ["https://github.com/forta-network/docs/issues/285"],
    lookedAt: LOOKED_AT,
    sunset: "2025-10-31",
  },
};
