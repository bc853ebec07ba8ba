// Finds the wallets of this browser: those that announce themselves (EIP-6963), and where none
// does, `window.ethereum`. What they say of themselves is text of strangers.
import { memberOf } from "../api/json.ts";
import { authorizationFor, type PaymentOffer, paymentHeader, typedDataText } from "./x402-offer.ts";

/** How pages talk to a wallet (EIP-1193). */
export interface WalletProvider {
  request(call: {
    readonly method: string;
    readonly params?: readonly unknown[];
  }): Promise<unknown>;
}

/** A wallet that can be asked. */
export interface Wallet {
  readonly id: string;
  readonly name: string;
  readonly provider: WalletProvider;
}

const MAX_WALLETS = 20;
const MAX_NAME_CHARS = 60;

/** Calls `found` with all wallets known so far, now and when another one appears. */
export function watchWallets(
  window: Window,
  found: (wallets: readonly Wallet[]) => void,
): () => void {
  const announced = new Map<string, Wallet>();
  const tell = (): void => found(announced.size > 0 ? [...announced.values()] : legacy(window));
  const listen = (event: Event): void => {
    const wallet = announcedWallet(event);
    if (wallet === null || announced.size >= MAX_WALLETS) return;
    announced.set(wallet.id, wallet);
    tell();
  };
  window.addEventListener("eip6963:announceProvider", listen);
  window.dispatchEvent(new Event("eip6963:requestProvider"));
  tell();
  return () => window.removeEventListener("eip6963:announceProvider", listen);
}

function announcedWallet(event: Event): Wallet | null {
  const detail: unknown = event instanceof CustomEvent ? event.detail : null;
  const info = memberOf(detail, "info");
  const provider = memberOf(detail, "provider");
  const id = memberOf(info, "uuid");
  const name = memberOf(info, "name");
  if (!isProvider(provider) || typeof id !== "string" || typeof name !== "string") return null;
  return { id, name: name.slice(0, MAX_NAME_CHARS), provider };
}

function legacy(window: Window): readonly Wallet[] {
  const provider = memberOf(window, "ethereum");
  return isProvider(provider) ? [{ id: "ethereum", name: "Browser wallet", provider }] : [];
}

function isProvider(value: unknown): value is WalletProvider {
  return typeof memberOf(value, "request") === "function";
}

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
