// `svc pay`: pays an offer by MPP `evm` (EIP-3009), which the stock command line does not support
// on the local chain. Announces the payment before it signs, signs once, and repeats the same
// payment if the answer is late. Never prints a key or a signature.
import { Challenge, Receipt } from "mppx";
import { charge } from "mppx/evm/client";
import { createClient, formatUnits, getAddress, type Hex, http, isAddress, parseAbi } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { getChainId, readContract } from "viem/actions";
import { z } from "zod";
import { parseUsd } from "../../core/billing/price.ts";
import { DEVNET_CHAIN } from "../../core/provider/chain.ts";
import { LOCAL_TOKEN } from "./local-contracts.ts";
import { PAYER } from "./wallets.ts";

/** The request to pay for, the wallet, and the limits. */
export interface PayOptions {
  readonly url: string;
  readonly method: string;
  /** JSON; null = no body. */
  readonly data: string | null;
  /** Secret. Null = the wallet of the local chain, accepted on that chain only. */
  readonly key: Hex | null;
  /** A node of the offer's chain, from which the token's facts are read; null = none. */
  readonly rpcUrl: string | null;
  readonly maxUsd: string;
  /** Waits, and keeps the process alive. */
  readonly pause: (ms: number) => Promise<unknown>;
  /** Prints the body of the answer. */
  readonly print: (text: string) => void;
  /** Reports progress, one line each. */
  readonly say: (line: string) => void;
}

const REQUEST_TIMEOUT_MS = 60_000;
const MAX_TRIES = 6;
const RETRY_MS = 2_000;
const MAX_RETRY_MS = 10_000;
const UNAVAILABLE = 503;
const PAYMENT_REQUIRED = 402;
const NANO_DECIMALS = 9;

/** Sends a request and pays for it. False = it failed, and the reason was reported. */
export async function pay(options: PayOptions): Promise<boolean> {
  const { say, print } = options;
  const first = await send(options, null);
  if (first === null) return fail(options, "the server does not answer: check the URL");
  if (first.status !== PAYMENT_REQUIRED) {
    print(await first.text());
    say(`nothing was paid: the server answered ${first.status} and asked for no payment`);
    return first.ok;
  }
  const offer = offerIn(first.headers);
  await first.body?.cancel();
  if (!("challenge" in offer))
    return fail(
      options,
      `no offer by MPP evm: ${offer.join(", ") || "none at all"}. mppx pays other ones`,
    );
  const token = await tokenOf(offer, options.rpcUrl);
  if (token === null)
    return fail(
      options,
      `name a node of chain ${offer.chainId} with --rpc: what is signed has to be asked there`,
    );
  if (typeof token === "string") return fail(options, token);
  const key = options.key ?? (offer.chainId === DEVNET_CHAIN.chainId ? PAYER.key : null);
  if (key === null)
    return fail(
      options,
      `the offer is for chain ${offer.chainId}: give the wallet's key in SVC_PAY_KEY or in a ` +
        "file named by --key-file",
    );
  // The library's message is dropped, since it may contain the key.
  const account = orElse(() => privateKeyToAccount(key), null);
  if (account === null) return fail(options, "the wallet's key is no private key");
  const tooMuch = refusalOf(offer, token, options.maxUsd);
  if (tooMuch !== null) return fail(options, tooMuch);
  say(
    `paying ${formatUnits(offer.amount, token.decimals)} ${JSON.stringify(token.name)} to ` +
      `${offer.recipient} on chain ${offer.chainId}`,
  );
  return settle(options, await credentialFor(offer, token, account));
}

/**
 * Sends the signed payment; repeats it while the server reports it as pending or the answer was
 * lost.
 */
async function settle(options: PayOptions, credential: string): Promise<boolean> {
  const { say, print, pause } = options;
  for (let tries = 1; ; tries++) {
    const response = await send(options, credential);
    if (response !== null && (response.status !== UNAVAILABLE || tries === MAX_TRIES)) {
      print(await response.text());
      if (!response.ok) return fail(options, `not paid: the server answered ${response.status}`);
      say(`paid: ${referenceIn(response)}`);
      return true;
    }
    await response?.body?.cancel();
    if (tries === MAX_TRIES)
      return fail(
        options,
        "the server does not answer any more. The payment may be under way: do not sign " +
          "another one before you know",
      );
    say("the payment is under way: asking again with the same one");
    const seconds = Number(response?.headers.get("retry-after") ?? 0);
    await pause(Math.min(MAX_RETRY_MS, seconds > 0 ? seconds * 1_000 : RETRY_MS));
  }
}

/** Null = no answer arrived. */
async function send(
  { url, method, data }: PayOptions,
  credential: string | null,
): Promise<Response | null> {
  const headers = {
    ...(data === null ? {} : { "content-type": "application/json" }),
    ...(credential === null ? {} : { authorization: credential }),
  };
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  return fetch(url, { method, headers, body: data, redirect: "manual", signal }).catch(() => null);
}

async function credentialFor(
  offer: Offer,
  { name, version }: TokenFacts,
  account: PrivateKeyAccount,
): Promise<string> {
  const method = charge({
    account,
    networks: [offer.chainId],
    currencies: [offer.currency],
    authorization: { name, version },
  });
  return method.createCredential({ challenge: offer.challenge, context: {} });
}

/** Why an offer exceeds the maximum price; null = it does not. One token counts as one dollar. */
function refusalOf({ amount }: Offer, { decimals }: TokenFacts, maxUsd: string): string | null {
  const max = parseUsd(maxUsd);
  if (max === null) return `--max-usd ${maxUsd} is no amount, like 1.50`;
  const asked = amount * 10n ** BigInt(NANO_DECIMALS);
  return asked <= max * 10n ** BigInt(decimals)
    ? null
    : `the offer is for ${formatUnits(amount, decimals)}, more than ${maxUsd}: allow it with ` +
        "--max-usd";
}

function referenceIn(response: Response): string {
  const receipt = orElse(() => Receipt.fromResponse(response), null);
  if (receipt === null) return "the server gave no receipt";
  return `receipt ${JSON.stringify(receipt.reference)} of ${receipt.timestamp}`;
}

/** What the library reads, or `other` where it throws. */
function orElse<T, E>(read: () => T, other: E): T | E {
  try {
    return read();
  } catch {
    return other;
  }
}

function fail({ say }: PayOptions, why: string): false {
  say(why);
  return false;
}

/** Facts of a token: for its EIP-712 signature, and for the user. */
interface TokenFacts {
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
const amount = z
  .string()
  .regex(/^\d{1,38}$/)
  .transform(BigInt);
const types = z.array(z.string()).refine((all) => all.includes("authorization"));
const details = z.object({
  chainId: z.int().positive(),
  credentialTypes: types,
  splits: z.array(z.unknown()).max(0).optional(),
});
/** The request of an offer that can be paid. `amount` = base units of the token. */
const requestShape = z
  .object({ amount, currency: address, recipient: address, methodDetails: details })
  .transform(({ methodDetails: { chainId }, ...request }) => ({ ...request, chainId }));

type EvmChallenge = Parameters<ReturnType<typeof charge>["createCredential"]>[0]["challenge"];

/** An offer to pay by MPP `evm`/`charge`. */
type Offer = Readonly<z.output<typeof requestShape>> & { readonly challenge: EvmChallenge };

/** The first offer that can be paid, or the names of the unsupported offers. */
function offerIn(headers: Headers): Offer | readonly string[] {
  const challenges = orElse(() => Challenge.fromHeadersList(headers), []);
  const offers = challenges.map(parseOffer).filter((offer) => offer !== null);
  if (offers[0] !== undefined) return offers[0];
  return challenges.map(({ method, intent }) => `${method}/${intent}`);
}

/**
 * Reads the facts of the token from its chain; the local chain's are built in. Null = no node was
 * given; a text for the user = the chain does not tell them.
 */
async function tokenOf(
  { chainId, currency }: Offer,
  rpcUrl: string | null,
): Promise<TokenFacts | string | null> {
  if (rpcUrl === null)
    return chainId === DEVNET_CHAIN.chainId ? { ...LOCAL_TOKEN, decimals: 6 } : null;
  const client = createClient({
    transport: http(rpcUrl, { timeout: RPC_TIMEOUT_MS, retryCount: 1 }),
  });
  // The library's messages are dropped: they contain the URL of the node, which may hold a secret.
  const wanted = `name, version and decimals of the token ${currency}`;
  const failure = `the node given by --rpc does not tell ${wanted}`;
  const found = await getChainId(client).catch(() => null);
  if (found === null) return failure;
  if (found !== chainId)
    return `the node given by --rpc is on chain ${found}, and the offer is for chain ${chainId}`;
  const token = { address: currency, abi: ABI } as const;
  const facts = await Promise.all([
    readContract(client, { ...token, functionName: "name" }),
    readContract(client, { ...token, functionName: "version" }),
    readContract(client, { ...token, functionName: "decimals" }),
  ]).catch(() => null);
  if (facts === null) return failure;
  const [name, version, decimals] = facts;
  return { name, version, decimals };
}

function parseOffer(challenge: Challenge.Challenge): Offer | null {
  const isEvm = challenge.method === "evm" && challenge.intent === "charge";
  const request = isEvm ? requestShape.safeParse(challenge.request).data : undefined;
  // The challenge is returned to the server unchanged, including unknown fields.
  return request === undefined ? null : { challenge: challenge as EvmChallenge, ...request };
}
