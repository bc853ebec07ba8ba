// An EIP-3009 authorization: a payer's signed order to a token to move an amount, which anybody may
// submit. Reads it from MPP and x402 payments, recovers its signer, and writes it as text for the
// store. Calls no chain, and knows no price.
import { authorizationTypes } from "mppx/evm";
import { getAddress, type Hex, keccak256, recoverTypedDataAddress, stringToBytes } from "viem";
import { z } from "zod";
import type { PaymentCredential } from "../rail.ts";

/** The EIP-712 domain of a token. */
export interface TokenDomain {
  readonly chainId: number;
  readonly verifyingContract: Hex;
  readonly name: string;
  readonly version: string;
}

const MAX_UINT256 = 2n ** 256n - 1n;
const MAX_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

const uint256 = z
  .string()
  .regex(/^\d{1,78}$/)
  .transform((text) => BigInt(text))
  .refine((value) => value <= MAX_UINT256);
const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .transform((text) => getAddress(text.toLowerCase()));
const bytes = (count: number) =>
  z
    .string()
    .regex(new RegExp(`^0x[0-9a-fA-F]{${count * 2}}$`))
    .transform((text): Hex => `0x${text.slice(2).toLowerCase()}`);
const signature = bytes(65).transform(withCanonicalParity);
const order = z.object({
  from: address,
  to: address,
  value: uint256,
  /** Seconds of the chain's clock; valid strictly between both. */
  validAfter: uint256,
  validBefore: uint256,
  nonce: bytes(32),
});
const authorizationShape = order.extend({ signature });
const mppPayload = authorizationShape
  .extend({ type: z.literal("authorization") })
  .transform(({ type: _, ...authorization }) => authorization);
const x402Payload = z
  .object({ authorization: order, signature })
  .transform(({ authorization, signature }) => ({ ...authorization, signature }));
const material = z.object({
  token: address,
  authorization: authorizationShape,
  /** When it was read, on the wall clock, milliseconds; it was signed not long before. */
  readAtMs: z.int(),
});

/** The signed order and its signature. Secret: anybody who has it can carry it out. */
export type Authorization = Readonly<z.output<typeof authorizationShape>>;

/** What the rail keeps of a payment, so that later changes of settings do not affect it. */
export type EvmMaterial = Readonly<z.output<typeof material>>;

/** The authorization in a payment; null = there is none that could be carried out. */
export function parseAuthorization(credential: PaymentCredential): Authorization | null {
  const shape = credential.protocol === "mpp" ? mppPayload : x402Payload;
  return shape.safeParse(credential.payload).data ?? null;
}

/**
 * Payer and nonce of a payment, unchecked; null = it does not name them. Under MPP the nonce is
 * that of the challenge, which only the payer knows: data copied from the chain finds nobody's
 * payment.
 */
export function parsePayer(
  credential: PaymentCredential,
): Pick<Authorization, "from" | "nonce"> | null {
  if (credential.protocol === "mpp") {
    const read = order.pick({ from: true }).safeParse(credential.payload);
    return read.success ? { from: read.data.from, nonce: nonceOf(credential.challenge) } : null;
  }
  const read = z
    .object({ authorization: order.pick({ from: true, nonce: true }) })
    .safeParse(credential.payload);
  return read.success ? read.data.authorization : null;
}

/** The nonce that binds an authorization to an MPP challenge. */
export function nonceOf({ id, realm }: { readonly id: string; readonly realm: string }): Hex {
  return keccak256(stringToBytes(`${id}${realm}`));
}

/**
 * The address that signed; null = the token would recover none, or accept another form only.
 * Contract wallets are not supported.
 */
export async function signerOf(
  authorization: Authorization,
  domain: TokenDomain,
): Promise<Hex | null> {
  const { signature, ...message } = authorization;
  if (
    BigInt(`0x${signature.slice(66, 130)}`) > MAX_S ||
    !["1b", "1c"].includes(signature.slice(130))
  )
    return null;
  const [types, primaryType] = [authorizationTypes, "TransferWithAuthorization" as const];
  try {
    return await recoverTypedDataAddress({ domain, types, primaryType, message, signature });
  } catch {
    // The numbers are on no curve.
    return null;
  }
}

/** As text for the store. */
export function materialText(material: EvmMaterial): string {
  return JSON.stringify(material, (_, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
}

/** Reads text that `materialText` wrote; throws on any other. */
export function parseMaterial(text: string): EvmMaterial {
  return material.parse(JSON.parse(text));
}

/** Some signers write the parity as 0 or 1, which tokens refuse. */
function withCanonicalParity(signature: Hex): Hex {
  const parity = Number.parseInt(signature.slice(130), 16);
  return parity > 1 ? signature : `0x${signature.slice(2, 130)}${(parity + 27).toString(16)}`;
}
