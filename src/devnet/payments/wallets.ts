// Wallets of the local payment chains: anvil's development accounts, whose keys are public. Never
// send anything to them on a real chain: anybody could take it. Knows no chain.
import { isLoopbackAddress } from "../../core/public-address.ts";

/** A wallet whose key is public. */
export interface LocalWallet {
  readonly address: `0x${string}`;
  readonly key: `0x${string}`;
}

/** Pays in the examples; holds tokens on both chains, and gas on the EVM chain. */
export const PAYER: LocalWallet = {
  address: "0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f",
  key: "0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
};

/** Further payers with tokens on both chains. */
export const OTHER_PAYERS: readonly LocalWallet[] = [
  {
    address: "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
    key: "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  },
  {
    address: "0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65",
    key: "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
  },
];

/** Receives payments on both chains; sends nothing. */
export const RECIPIENT: LocalWallet = {
  address: "0x14dC79964da2C08b23698B3D3cc7Ca32193d9955",
  key: "0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
};

/** Sends EIP-3009 authorizations on the EVM chain: holds gas and no tokens. */
export const SETTLEMENT: LocalWallet = {
  address: "0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc",
  key: "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
};

/** Receives, settles and closes channels on the Tempo chain. */
export const SESSION: LocalWallet = {
  address: "0x976EA74026E726554dB657fA54763abd0C3a0aa9",
  key: "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
};

/** Deploys and mints the token of the EVM chain. */
export const MINTER: LocalWallet = {
  address: "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720",
  key: "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
};

/** Whether a listener on this host can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || isLoopbackAddress(host);
}
