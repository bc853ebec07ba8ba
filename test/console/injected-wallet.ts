// A browser wallet for tests: announces itself to pages as EIP-6963 asks and answers as EIP-1193
// does. Its key stays in the test, where it signs; it signs for one chain.
import type { BrowserContext } from "playwright-core";
import { privateKeyToAccount } from "viem/accounts";
import type { LocalWallet } from "../../src/devnet/payments/wallets.ts";

/** The wallet as the test sees it. */
export interface InjectedWallet {
  /** Methods that pages asked for, in order. */
  readonly asked: readonly string[];
  /** True = the person at the wallet refuses to sign. */
  refuses: boolean;
}

type TypedData = Parameters<ReturnType<typeof privateKeyToAccount>["signTypedData"]>[0];

/** What a wallet answers, as it crosses from the test into the page. */
type Answered = { readonly result: unknown } | { readonly code: number; readonly message: string };

const USER_REJECTED: Answered = { code: 4001, message: "User rejected the request." };
const UNSUPPORTED: Answered = { code: 4200, message: "The wallet does not support this method." };
const UNKNOWN_CHAIN: Answered = { code: 4902, message: "Unrecognized chain ID." };

/** How pages find the wallet: by its announcement, or as `window.ethereum` alone. */
export type Announced = "eip6963" | "window.ethereum";

/** Puts the wallet into every page of a visitor. */
export async function injectWallet(
  context: BrowserContext,
  { wallet, chainId }: { readonly wallet: LocalWallet; readonly chainId: number },
  announced: Announced = "eip6963",
): Promise<InjectedWallet> {
  const account = privateKeyToAccount(wallet.key);
  const asked: string[] = [];
  const state: InjectedWallet = { asked, refuses: false };
  const answer = async (method: string, params: readonly unknown[]): Promise<Answered> => {
    asked.push(method);
    switch (method) {
      case "eth_requestAccounts":
      case "eth_accounts":
        return { result: [account.address] };
      case "eth_chainId":
        return { result: `0x${chainId.toString(16)}` };
      case "wallet_switchEthereumChain":
        return parseChain(params[0]) === chainId ? { result: null } : UNKNOWN_CHAIN;
      case "eth_signTypedData_v4":
        if (state.refuses) return USER_REJECTED;
        return { result: await account.signTypedData(parseTypedData(params[1])) };
      default:
        return UNSUPPORTED;
    }
  };
  await context.exposeFunction("askWallet", answer);
  await context.addInitScript(walletScript(announced));
  return state;
}

/** What runs in the page: passes requests on to the test, and shows itself in one of two ways. */
function walletScript(announced: Announced): string {
  const info = JSON.stringify({
    uuid: "350670db-19fa-4704-a166-e52e178b59d2",
    name: "Test wallet",
    icon: "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E",
    rdns: "test.wallet",
  });
  return `{
    const provider = {
      async request({ method, params = [] }) {
        const answered = await askWallet(method, params);
        if ("result" in answered) return answered.result;
        throw Object.assign(new Error(answered.message), { code: answered.code });
      },
      on() {},
      removeListener() {},
    };
    const detail = Object.freeze({ info: ${info}, provider });
    const announce = () =>
      dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
    if (${JSON.stringify(announced)} === "window.ethereum")
      Object.defineProperty(globalThis, "ethereum", { value: provider });
    else {
      addEventListener("eip6963:requestProvider", announce);
      announce();
    }
  }`;
}

function parseChain(param: unknown): number {
  const { chainId } = param as { readonly chainId: string };
  return Number(chainId);
}

function parseTypedData(param: unknown): TypedData {
  const { domain, types, primaryType, message } = JSON.parse(String(param));
  const { EIP712Domain: _, ...named } = types;
  return { domain, types: named, primaryType, message } as TypedData;
}
