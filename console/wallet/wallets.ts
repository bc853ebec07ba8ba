// Finds the wallets of this browser: those that announce themselves (EIP-6963), and where none
// does, `window.ethereum`. What they say of themselves is text of strangers.

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

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
