// A chain as configured: who it is and how fast it makes blocks. Knows nothing of providers.

/** One EVM chain the instance serves; fixed from start to restart. */
export interface Chain {
  /** EIP-155 chain id. */
  readonly chainId: number;
  /** The identifier used in URLs and configuration, for example `ethereum`. */
  readonly chainName: string;
  /** Human-readable name, for example `Ethereum Mainnet`. */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly blockTimeMs: number;
}

/**
 * The chain of the local nodes. A transaction gets a block at once, else there is one every twelve
 * seconds.
 */
export const DEVNET_CHAIN: Chain = {
  chainId: 31_337,
  chainName: "local",
  name: "Local devnet (anvil)",
  aliases: [],
  blockTimeMs: 12_000,
};
