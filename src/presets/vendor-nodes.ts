// Vendors of nodes whose addresses follow from a chain and a key, one row each. A limit that no
// document tells is left out; habits that the built-in classification of errors knows are not
// repeated. What the fields mean stands in `vendor.ts`.
import { pricesOf, type Vendor, wordsOf } from "./vendor.ts";
import { VENDOR_CHAINS } from "./vendor-chains.ts";
import { VENDOR_PRICES } from "./vendor-prices.ts";

const LOOKED_AT = "2026-11-29";
const ERPC = "https://github.com/erpc/erpc/tree/main/thirdparty";

/** Alchemy's chains without a bound on the blocks of `eth_getLogs` in paid plans. */
const ALCHEMY_WIDE = [1, 8453, 10, 42161, 137, 480, 56, 999, 143, 1329];

/** The vendors by the word that `vendor:` names them with. */
export const NODE_VENDORS: Readonly<Record<string, Vendor>> = {
  alchemy: {
    name: "Alchemy",
    domain: "alchemy.com",
    chains: wordsOf(VENDOR_CHAINS.alchemy),
    http: "https://{slug}.g.alchemy.com/v2/{key}",
    ws: "wss://{slug}.g.alchemy.com/v2/{key}",
    key: "required",
    credits: pricesOf(VENDOR_PRICES.alchemy),
    otherCredits: 20,
    plans: {
      free: { monthly: 30_000_000, blocks: 10 },
      payg: { blocks: alchemyBlocks(10_000) },
      enterprise: { blocks: alchemyBlocks(null) },
    },
    sources: [
      `${ERPC}/alchemy.go`,
      "https://www.alchemy.com/docs/reference/compute-unit-costs",
      "https://www.alchemy.com/docs/chains/boba/boba-api-endpoints/eth-get-logs",
      "https://github.com/alchemyplatform/aa-sdk/discussions/2414",
    ],
    lookedAt: LOOKED_AT,
  },
  infura: {
    name: "Infura",
    domain: "infura.io",
    chains: wordsOf(VENDOR_CHAINS.infura),
    http: "https://{slug}.infura.io/v3/{key}",
    ws: "wss://{slug}.infura.io/ws/v3/{key}",
    httpOnly: [
      ...[97, 130, 143, 300, 1301, 1328, 1329, 1923, 1924, 5003, 5611, 10143, 42220, 43111],
      ...[534351, 534352, 743111, 11142220, 168587773, 11297108099, 11297108109],
    ],
    key: "required",
    credits: pricesOf(VENDOR_PRICES.infura),
    otherCredits: 80,
    plans: { free: { daily: 3_000_000 }, developer: { daily: 15_000_000 } },
    sources: [
      "https://docs.metamask.io/services/get-started/endpoints",
      "https://docs.metamask.io/services/get-started/pricing",
      "https://docs.metamask.io/services/get-started/pricing/credit-cost",
    ],
    lookedAt: LOOKED_AT,
  },
  drpc: {
    name: "dRPC",
    domain: "drpc.org",
    chains: wordsOf(VENDOR_CHAINS.drpc),
    http: "https://lb.drpc.org/ogrpc?network={slug}&dkey={key}",
    ws: "wss://lb.drpc.org/ogws?network={slug}&dkey={key}",
    key: "required",
    credits: pricesOf(VENDOR_PRICES.drpc),
    otherCredits: 100,
    plans: { free: { rps: 100, monthly: 210_000_000 }, growth: { price: 0.3 } },
    sources: [
      `${ERPC}/drpc.go`,
      "https://github.com/drpcorg/drpc-nextra/blob/main/pages/pricing/compute-units.mdx",
      "https://github.com/drpcorg/drpc-nextra/blob/main/pages/howitworks/ratelimiting.mdx",
    ],
    lookedAt: LOOKED_AT,
  },
  ankr: {
    name: "Ankr",
    domain: "ankr.com",
    chains: wordsOf(VENDOR_CHAINS.ankr),
    http: "https://rpc.ankr.com/{slug}/{key}",
    ws: "wss://rpc.ankr.com/{slug}/ws/{key}",
    key: "required",
    otherCredits: 200,
    plans: { payg: { price: 0.1 } },
    sources: [
      `${ERPC}/ankr.go`,
      "https://www.ankr.com/docs/rpc-service/pricing/",
      "https://www.ankr.com/docs/changelog/chain-list-cleanup-2026-09-15/",
      "https://www.ankr.com/docs/changelog/fuel-kusama-0g-galileo-retired/",
    ],
    lookedAt: LOOKED_AT,
  },
  blockpi: {
    name: "BlockPI",
    domain: "blockpi.network",
    chains: wordsOf(VENDOR_CHAINS.blockpi),
    http: "https://{slug}.blockpi.network/v1/rpc/{key}",
    ws: "wss://{slug}.blockpi.network/v1/ws/{key}",
    key: "required",
    credits: pricesOf(VENDOR_PRICES.blockpi),
    plans: {
      free: { rps: 20, monthly: 50_000_000 },
      payg: { rps: 20, price: 0.2 },
      elementary: { rps: 1_000 },
      premium: { rps: 2_500 },
    },
    sources: [
      `${ERPC}/blockpi.go`,
      "https://docs.blockpi.io/pricing/pricing-and-rate-limit",
      "https://docs.blockpi.io/pricing/request-unit-ru/evm-ru-table",
    ],
    lookedAt: LOOKED_AT,
  },
  tenderly: {
    name: "Tenderly",
    domain: "tenderly.co",
    chains: wordsOf(VENDOR_CHAINS.tenderly),
    http: "https://{slug}.gateway.tenderly.co/{key}",
    ws: "wss://{slug}.gateway.tenderly.co/{key}",
    key: "required",
    credits: pricesOf(VENDOR_PRICES.tenderly),
    plans: {},
    sources: [
      "https://docs.tenderly.co/node-rpc/rpc-reference",
      "https://docs.tenderly.co/supported-networks",
      "https://docs.tenderly.co/node-rpc/pricing",
    ],
    lookedAt: LOOKED_AT,
  },
  onfinality: {
    name: "OnFinality",
    domain: "onfinality.io",
    chains: wordsOf(VENDOR_CHAINS.onfinality),
    http: "https://{slug}.api.onfinality.io/rpc?apikey={key}",
    ws: "wss://{slug}.api.onfinality.io/ws?apikey={key}",
    key: "required",
    plans: {},
    sources: [
      `${ERPC}/onfinality.go`,
      "https://documentation.onfinality.io/support/the-enhanced-api-service",
    ],
    lookedAt: LOOKED_AT,
  },
  dwellir: {
    name: "Dwellir",
    domain: "dwellir.com",
    chains: wordsOf(VENDOR_CHAINS.dwellir),
    http: "https://{slug}.dwellir.com/{key}",
    ws: "wss://{slug}.dwellir.com/{key}",
    key: "required",
    plans: {},
    sources: [`${ERPC}/dwellir.go`],
    lookedAt: LOOKED_AT,
  },
  nodereal: {
    name: "NodeReal",
    domain: "nodereal.io",
    chains: wordsOf(VENDOR_CHAINS.nodereal),
    http: "https://{slug}.nodereal.io/v1/{key}",
    ws: "wss://{slug}.nodereal.io/ws/v1/{key}",
    key: "required",
    credits: pricesOf(VENDOR_PRICES.nodereal),
    otherCredits: 15,
    plans: {},
    sources: [
      "https://docs.nodereal.io/docs/compute-units-cus",
      "https://github.com/ethereum-lists/chains/blob/master/_data/chains/eip155-204.json",
    ],
    lookedAt: LOOKED_AT,
  },
  "1rpc": {
    name: "1RPC",
    domain: "1rpc.io",
    chains: wordsOf(VENDOR_CHAINS["1rpc"]),
    http: "https://1rpc.io/{key}/{slug}",
    key: "optional",
    keyless: "https://public.1rpc.io/{slug}",
    plans: { free: { daily: 20_000 } },
    sources: [
      "https://github.com/DefiLlama/chainlist/blob/main/constants/extraRpcs.js",
      "https://docs.near.org/api/rpc/providers",
    ],
    lookedAt: LOOKED_AT,
  },
  publicnode: {
    name: "PublicNode",
    domain: "publicnode.com",
    chains: wordsOf(VENDOR_CHAINS.publicnode),
    http: "https://{slug}.publicnode.com",
    ws: "wss://{slug}.publicnode.com",
    key: "none",
    plans: {},
    sources: [
      "https://github.com/ethereum-lists/chains/tree/master/_data/chains",
      "https://github.com/DefiLlama/chainlist/blob/main/constants/extraRpcs.js",
    ],
    lookedAt: LOOKED_AT,
  },
  thirdweb: {
    name: "thirdweb",
    domain: "thirdweb.com",
    chains: "any",
    http: "https://{id}.rpc.thirdweb.com/{key}",
    key: "optional",
    keyless: "https://{id}.rpc.thirdweb.com",
    plans: {},
    sources: [`${ERPC}/thirdweb.go`],
    lookedAt: LOOKED_AT,
  },
  routemesh: {
    name: "RouteMesh",
    domain: "routemes.sh",
    chains: "any",
    http: "https://lb.routemes.sh/rpc/{id}/{key}",
    key: "required",
    plans: {},
    sources: [`${ERPC}/routemesh.go`],
    lookedAt: LOOKED_AT,
  },
  blockdaemon: {
    name: "Blockdaemon",
    domain: "blockdaemon.com",
    chains: wordsOf(VENDOR_CHAINS.blockdaemon),
    http: "https://svc.blockdaemon.com/{slug}",
    key: "required",
    headers: { Authorization: "Bearer {key}" },
    plans: {},
    sources: [`${ERPC}/blockdaemon.go`, "https://docs.blockdaemon.com/docs/rpc-api"],
    lookedAt: LOOKED_AT,
  },
  goldsky: {
    name: "Goldsky Edge",
    domain: "goldsky.com",
    chains: "any",
    http: "https://edge.goldsky.com/standard/evm/{id}?secret={key}",
    key: "required",
    plans: {},
    sources: ["https://docs.goldsky.com/edge-rpc/platform/security"],
    lookedAt: LOOKED_AT,
  },
};

/** Blocks of `eth_getLogs` in Alchemy's paid plans, by chain. */
function alchemyBlocks(other: number | null): Readonly<Record<string, number | null>> {
  const wide = Object.fromEntries(ALCHEMY_WIDE.map((chainId) => [chainId, null]));
  const berachain = other === null ? null : 1_000;
  return { ...wide, 10143: 1_000, 80094: berachain, other };
}
