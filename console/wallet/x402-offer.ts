// An x402 offer of the service, what a wallet signs for it (EIP-3009), and the payment as a header.
// Pure; what comes from outside is checked field by field.
import { memberOf, textIn } from "../api/json.ts";

/** What is asked for: a transfer of a token on a chain. */
export interface PaymentOffer {
  /** As it came; goes back with the payment. */
  readonly terms: Readonly<Record<string, unknown>>;
  readonly resource: unknown;
  readonly chainId: number;
  /** Base units of the token: six decimals. */
  readonly amount: string;
  readonly token: string;
  readonly tokenName: string;
  readonly tokenVersion: string;
  readonly recipient: string;
  readonly validForS: number;
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const DECIMALS = 6;
const MAX_VALID_S = 3_600;

/** The offers that a wallet can sign, in a `PAYMENT-REQUIRED` header; unreadable = none. */
export function readOffers(header: string | null): readonly PaymentOffer[] {
  const document = header === null ? null : decodeJson(header);
  const accepts = memberOf(document, "accepts");
  if (memberOf(document, "x402Version") !== 2 || !Array.isArray(accepts)) return [];
  const resource = memberOf(document, "resource");
  return accepts.flatMap((terms: unknown) => offerOf(terms, resource) ?? []);
}

function offerOf(terms: unknown, resource: unknown): PaymentOffer | null {
  const extra = memberOf(terms, "extra");
  const chainId = Number(/^eip155:(\d{1,15})$/.exec(textIn(memberOf(terms, "network")))?.[1]);
  const offer = {
    amount: textIn(memberOf(terms, "amount")),
    token: textIn(memberOf(terms, "asset")),
    recipient: textIn(memberOf(terms, "payTo")),
    tokenName: textIn(memberOf(extra, "name")),
    tokenVersion: textIn(memberOf(extra, "version")),
    validForS: Math.min(Number(memberOf(terms, "maxTimeoutSeconds")), MAX_VALID_S),
  };
  const isWhole =
    memberOf(terms, "scheme") === "exact" &&
    Number.isSafeInteger(chainId) &&
    /^\d{1,30}$/.test(offer.amount) &&
    ADDRESS.test(offer.token) &&
    ADDRESS.test(offer.recipient) &&
    offer.tokenName !== "" &&
    offer.validForS > 0;
  return isWhole ? { ...offer, chainId, resource, terms: Object(terms) } : null;
}

/** An amount of base units as a plain decimal. */
export function amountText(units: string): string {
  const digits = units.padStart(DECIMALS + 1, "0");
  const whole = digits.slice(0, -DECIMALS).replace(/^0+(?=\d)/, "");
  const rest = digits.slice(-DECIMALS).replace(/0+$/, "");
  return rest === "" ? whole : `${whole}.${rest}`;
}

/** A transfer that its payer authorizes by signature. */
type TransferAuthorization = Readonly<ReturnType<typeof authorizationFor>>;

/** What the payer is to sign. `nonce` = 32 random bytes. */
export function authorizationFor(
  offer: PaymentOffer,
  from: string,
  { nowMs, nonce }: { readonly nowMs: number; readonly nonce: Uint8Array },
) {
  return {
    from,
    to: offer.recipient,
    value: offer.amount,
    validAfter: "0",
    validBefore: String(Math.floor(nowMs / 1000) + offer.validForS),
    nonce: `0x${Array.from(nonce, (byte) => byte.toString(16).padStart(2, "0")).join("")}`,
  };
}

const FIELDS = [
  ["from", "address"],
  ["to", "address"],
  ["value", "uint256"],
  ["validAfter", "uint256"],
  ["validBefore", "uint256"],
  ["nonce", "bytes32"],
];
const DOMAIN_FIELDS = [
  ["name", "string"],
  ["version", "string"],
  ["chainId", "uint256"],
  ["verifyingContract", "address"],
];

/** The parameter of `eth_signTypedData_v4`. */
export function typedDataText(offer: PaymentOffer, message: TransferAuthorization): string {
  const typed = (fields: readonly (readonly string[])[]) =>
    fields.map(([name, type]) => ({ name, type }));
  return JSON.stringify({
    domain: {
      name: offer.tokenName,
      version: offer.tokenVersion,
      chainId: offer.chainId,
      verifyingContract: offer.token,
    },
    types: { EIP712Domain: typed(DOMAIN_FIELDS), TransferWithAuthorization: typed(FIELDS) },
    primaryType: "TransferWithAuthorization",
    message,
  });
}

/** The payment as the value of `PAYMENT-SIGNATURE`. */
export function paymentHeader(
  { terms, resource }: PaymentOffer,
  authorization: TransferAuthorization,
  signature: string,
): string {
  const payload = { signature, authorization };
  return encodeJson({ x402Version: 2, resource, accepted: terms, payload });
}

function encodeJson(value: unknown): string {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

function decodeJson(base64: string): unknown {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}
