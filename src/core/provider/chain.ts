// A chain as configured: its identity and block time. Knows no providers.

/** One EVM chain that the instance serves. Its name never stands for another chain id. */
export interface Chain {
  /** EIP-155 chain id. */
  readonly chainId: number;
  /** The identifier used in URLs and configuration, for example `ethereum`. */
  readonly chainName: string;
  /** Human-readable name, for example `Ethereum Mainnet`. */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly blockTimeMs: number;
  /** The block time is not declared: it is learned from heads. Absent = it is declared. */
  readonly learnsBlockTime?: true;
  /** Blocks taken off what a single provider reports as final; absent = the default. */
  readonly finalityDepth?: number | undefined;
}

/**
 * The chain of the devnet's local nodes. A transaction is mined at once; otherwise there is a block
 * every twelve seconds.
 */
export const DEVNET_CHAIN: Chain = {
  chainId: 31_337,
  chainName: "local",
  name: "Local devnet (anvil)",
  aliases: [],
  blockTimeMs: 12_000,
};

/** The ids of development nodes: of anvil and hardhat, and of geth in development mode. */
const DEVELOPMENT_IDS: readonly number[] = [DEVNET_CHAIN.chainId, 1_337];

/** Whether the nodes of a chain are for development: by its id, which no public network has. */
export function isDevelopmentChain({ chainId }: Pick<Chain, "chainId">): boolean {
  return DEVELOPMENT_IDS.includes(chainId);
}

// Chooses the chain in the example URL of a profile, so that the URL works without editing.

/**
 * The first chain of a profile that the `fallback` profile serves too, since calls go there when
 * credit has run out; null = there is none.
 */
export function exampleChain(
  served: readonly string[],
  fallback: readonly string[],
): string | null {
  return served.find((name) => fallback.includes(name)) ?? served[0] ?? null;
}
