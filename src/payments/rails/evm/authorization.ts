// An EIP-3009 authorization: a payer's signed order to a token to move an amount, which anybody may
// submit. Reads it from MPP and x402 payments, recovers its signer, and writes it as text for the
// store. Calls no chain, and knows no price.
import { authorizationTypes } from "mppx/evm";
import { getAddress, type Hex, keccak256, recoverTypedDataAddress, stringToBytes } from "viem";
import { z } from "zod";
import type { PaymentCredential } from "../rail.ts";

/** The signed order and its signature. Secret: anybody who has it can carry it out. */
export interface Authorization {
  readonly from: Hex;
  readonly to: Hex;
  readonly value: bigint;
  /** Seconds of the chain's clock; valid strictly between both. */
  readonly validAfterS: bigint;
  readonly validBeforeS: bigint;
  /** Lower case. */
  readonly nonce: Hex;
  readonly signature: Hex;
}

/** The EIP-712 domain of a token. */
export interface TokenDomain {
  readonly chainId: number;
  readonly address: Hex;
  readonly name: string;
  readonly version: string;
}

/** What the rail keeps of a payment, so that later changes of settings do not affect it. */
export interface EvmMaterial {
  readonly token: Hex;
  readonly authorization: Authorization;
  /** When it was read, on the wall clock, milliseconds; it was signed not long before. */
  readonly readAtMs: number;
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
const payer = z.object({ from: address });
const signed = z.object({
  from: address,
  to: address,
  value: uint256,
  validAfter: uint256,
  validBefore: uint256,
  nonce: bytes(32),
});
const mppPayload = signed.extend({ type: z.literal("authorization"), signature: bytes(65) });
const x402Payload = z.object({ authorization: signed, signature: bytes(65) });
const material = z.object({
  token: address,
  authorization: signed.extend({ signature: bytes(65) }),
  readAtMs: z.int(),
});

/** The authorization in a payment; null = there is none that could be carried out. */
export function parseAuthorization(credential: PaymentCredential): Authorization | null {
  if (credential.protocol === "mpp") {
    const read = mppPayload.safeParse(credential.payload);
    return read.success ? authorizationOf(read.data) : null;
  }
  const read = x402Payload.safeParse(credential.payload);
  return read.success
    ? authorizationOf({ ...read.data.authorization, signature: read.data.signature })
    : null;
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
    const read = payer.safeParse(credential.payload);
    return read.success ? { from: read.data.from, nonce: nonceOf(credential.challenge) } : null;
  }
  const read = z
    .object({ authorization: signed.pick({ from: true, nonce: true }) })
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
  const { signature } = authorization;
  if (
    BigInt(`0x${signature.slice(66, 130)}`) > MAX_S ||
    !["1b", "1c"].includes(signature.slice(130))
  )
    return null;
  try {
    return await recoverTypedDataAddress({
      domain: {
        name: domain.name,
        version: domain.version,
        chainId: domain.chainId,
        verifyingContract: domain.address,
      },
      types: authorizationTypes,
      primaryType: "TransferWithAuthorization",
      message: {
        from: authorization.from,
        to: authorization.to,
        value: authorization.value,
        validAfter: authorization.validAfterS,
        validBefore: authorization.validBeforeS,
        nonce: authorization.nonce,
      },
      signature,
    });
  } catch {
    // The numbers are on no curve.
    return null;
  }
}

/** As text for the store. */
export function materialText({ token, authorization, readAtMs }: EvmMaterial): string {
  const { from, to, value, validAfterS, validBeforeS, nonce, signature } = authorization;
  return JSON.stringify({
    token,
    authorization: {
      from,
      to,
      value: `${value}`,
      validAfter: `${validAfterS}`,
      validBefore: `${validBeforeS}`,
      nonce,
      signature,
    },
    readAtMs,
  });
}

/** Reads text that `materialText` wrote; throws on any other. */
export function parseMaterial(text: string): EvmMaterial {
  const { authorization, ...rest } = material.parse(JSON.parse(text));
  return { ...rest, authorization: authorizationOf(authorization) };
}

function authorizationOf({
  validAfter,
  validBefore,
  signature,
  ...rest
}: z.output<typeof signed> & { readonly signature: Hex }): Authorization {
  return {
    ...rest,
    validAfterS: validAfter,
    validBeforeS: validBefore,
    signature: withCanonicalParity(signature),
  };
}

/** Some signers write the parity as 0 or 1, which tokens refuse. */
function withCanonicalParity(signature: Hex): Hex {
  const parity = Number.parseInt(signature.slice(130), 16);
  return parity > 1 ? signature : `0x${signature.slice(2, 130)}${(parity + 27).toString(16)}`;
}
