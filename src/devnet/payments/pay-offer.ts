// Reads a server's EIP-3009 offer and the facts of its token, and checks both before anything is
// signed. Knows no key.
import { Challenge } from "mppx";
import type { charge } from "mppx/evm/client";
import { createClient, getAddress, type Hex, http, isAddress, parseAbi } from "viem";
import { getChainId, readContract } from "viem/actions";
import { z } from "zod";
import { DEVNET_CHAIN } from "../../core/provider/chain.ts";
import { LOCAL_TOKEN } from "./token.ts";

/** An offer to pay by MPP `evm`/`charge`. */
export interface Offer {
  readonly challenge: EvmChallenge;
  /** Base units of the token. */
  readonly amount: bigint;
  readonly currency: Hex;
  readonly recipient: Hex;
  readonly chainId: number;
}

type EvmChallenge = Parameters<ReturnType<typeof charge>["createCredential"]>[0]["challenge"];

/** Facts of a token: for its EIP-712 signature, and for the user. */
export interface TokenFacts {
  readonly name: string;
  readonly version: string;
  readonly decimals: number;
}

const RPC_TIMEOUT_MS = 10_000;
const ABI = parseAbi([
  "function name() view returns (string)",
  "function version() view returns (string)",
  "function decimals() view returns (uint8)",
]);

const address = z
  .string()
  .refine((text) => isAddress(text, { strict: false }))
  .transform((text) => getAddress(text));
const Asked = z.object({
  amount: z.string().regex(/^\d{1,38}$/),
  currency: address,
  recipient: address,
  methodDetails: z.object({
    chainId: z.int().positive(),
    credentialTypes: z.array(z.string()).refine((types) => types.includes("authorization")),
    splits: z.array(z.unknown()).max(0).optional(),
  }),
});

/** The first offer that can be paid, or the names of the unsupported offers. */
export function offerIn(headers: Headers): Offer | readonly string[] {
  const challenges = challengesIn(headers);
  const offers = challenges.map(parseOffer).filter((offer) => offer !== null);
  if (offers[0] !== undefined) return offers[0];
  return challenges.map(({ method, intent }) => `${method}/${intent}`);
}

/**
 * Reads the facts of the token from its chain; the local chain's are built in. Null = no node was
 * given. Throws an error for the user if the chain does not answer.
 */
export async function tokenOf(
  { chainId, currency }: Offer,
  rpcUrl: string | null,
): Promise<TokenFacts | null> {
  if (rpcUrl === null)
    return chainId === DEVNET_CHAIN.chainId ? { ...LOCAL_TOKEN, decimals: 6 } : null;
  const client = createClient({
    transport: http(rpcUrl, { timeout: RPC_TIMEOUT_MS, retryCount: 1 }),
  });
  try {
    const found = await getChainId(client);
    if (found !== chainId)
      throw new Error(
        `the node given by --rpc is on chain ${found}, and the offer is for chain ${chainId}`,
      );
    const [name, version, decimals] = await Promise.all([
      readContract(client, { address: currency, abi: ABI, functionName: "name" }),
      readContract(client, { address: currency, abi: ABI, functionName: "version" }),
      readContract(client, { address: currency, abi: ABI, functionName: "decimals" }),
    ]);
    return { name, version, decimals };
  } catch (error) {
    if (error instanceof Error && error.message.startsWith("the node given")) throw error;
    // The library's message contains the URL of the node, which may hold a secret.
    throw new Error(
      `the node given by --rpc does not tell name, version and decimals of the token ${currency}`,
    );
  }
}

function parseOffer(challenge: Challenge.Challenge): Offer | null {
  const asked =
    challenge.method === "evm" && challenge.intent === "charge"
      ? Asked.safeParse(challenge.request).data
      : undefined;
  if (asked === undefined) return null;
  const { amount, currency, recipient, methodDetails } = asked;
  // The challenge is returned to the server unchanged, including unknown fields.
  return {
    challenge: challenge as EvmChallenge,
    amount: BigInt(amount),
    currency,
    recipient,
    chainId: methodDetails.chainId,
  };
}

function challengesIn(headers: Headers): readonly Challenge.Challenge[] {
  try {
    return Challenge.fromHeadersList(headers);
  } catch {
    return [];
  }
}
