// Has a wallet sign a payment: asks for its account, moves it to the chain of the offer, and asks
// for the signature. Sends nothing to the service.
import type { Wallet } from "./wallets.ts";
import { authorizationFor, type PaymentOffer, paymentHeader, typedDataText } from "./x402-offer.ts";

/** A signed payment, or why there is none, in words. */
export type Signed =
  | { readonly kind: "signed"; readonly header: string; readonly payer: string }
  | { readonly kind: "not_signed"; readonly why: string };

const REJECTED = 4001;
const UNKNOWN_CHAIN = 4902;
const NONCE_BYTES = 32;

/** Signs one payment for an offer; `nowMs` is the time of the service. */
export async function signPayment(
  { provider }: Wallet,
  offer: PaymentOffer,
  nowMs: number,
): Promise<Signed> {
  try {
    const accounts = await provider.request({ method: "eth_requestAccounts" });
    const payer: unknown = Array.isArray(accounts) ? accounts[0] : null;
    if (typeof payer !== "string" || !/^0x[0-9a-fA-F]{40}$/.test(payer))
      return notSigned("The wallet showed no account.");
    const chainId = `0x${offer.chainId.toString(16)}`;
    if ((await provider.request({ method: "eth_chainId" })) !== chainId)
      await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
    const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
    const authorization = authorizationFor(offer, payer, { nowMs, nonce });
    const signature = await provider.request({
      method: "eth_signTypedData_v4",
      params: [payer, typedDataText(offer, authorization)],
    });
    if (typeof signature !== "string" || !/^0x[0-9a-fA-F]{130,}$/.test(signature))
      return notSigned("The wallet answered something that is no signature.");
    return { kind: "signed", payer, header: paymentHeader(offer, authorization, signature) };
  } catch (error) {
    return notSigned(reasonOf(error, offer.chainId));
  }
}

function notSigned(why: string): Signed {
  return { kind: "not_signed", why };
}

function reasonOf(error: unknown, chainId: number): string {
  const code: unknown =
    typeof error === "object" && error !== null ? Reflect.get(error, "code") : null;
  if (code === REJECTED) return "You did not sign. Nothing was paid.";
  if (code === UNKNOWN_CHAIN)
    return `The wallet does not know the chain ${chainId}. Add it there, then try again.`;
  const message = error instanceof Error ? error.message : String(error);
  return `The wallet refused: ${message.slice(0, 200)}`;
}
