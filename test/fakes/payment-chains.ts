// The local payment chains for tests: a Tempo chain and an EVM chain with funded wallets. The keys
// are anvil's development accounts: worthless.
import type { PaymentToken } from "../../src/core/billing/payment.ts";
import type { AnvilNode } from "../../src/devnet/anvil-process.ts";
import {
  startEvmChain,
  startTempoChain,
  TEMPO_CHAIN_ID,
  TEMPO_TOKEN,
} from "../../src/devnet/payments/chains.ts";
import { deployToken } from "../../src/devnet/payments/local-contracts.ts";
import {
  type LocalWallet,
  OTHER_PAYERS,
  PAYER,
  RECIPIENT,
  SESSION,
  SETTLEMENT,
} from "../../src/devnet/payments/wallets.ts";
import type {
  EvmRailSettings,
  SessionRailSettings,
  TempoRailSettings,
} from "../../src/payments/rails/rail-kind.ts";
import { realRuntime } from "../../src/runtime.ts";
import { rpcOf } from "./node-rpc.ts";

/** One running payment chain. */
export interface PaymentChain {
  readonly rpcUrl: string;
  readonly wsUrl: string;
  readonly chainId: number;
  readonly pid: number;
  /** A dollar with six decimals; `name` and `version` of its EIP-712 domain are empty on Tempo. */
  readonly token: PaymentToken;
  /**
   * Asks the node: `evm_mine`, `anvil_reorg`, `evm_increaseTime`, `anvil_setBalance`, …. Throws
   * when it answers with an error.
   */
  readonly rpc: (method: string, ...params: readonly unknown[]) => Promise<unknown>;
  /** Base units of the token that an address holds. */
  readonly balanceOf: (address: string) => Promise<bigint>;
}

/** Both payment chains and their wallets. */
export interface PaymentChains {
  readonly tempo: PaymentChain;
  readonly evm: PaymentChain;
  /**
   * While held the Tempo chain makes no block: what is sent to it waits. Afterwards it makes one a
   * second, and none in between.
   */
  readonly holdTempo: (held: boolean) => Promise<void>;
  /** Holds tokens on both chains, and gas. */
  readonly payer: LocalWallet;
  /** Hold the same; for payments at the same time. */
  readonly otherPayers: readonly LocalWallet[];
  /**
   * Receives on both chains and sends nothing. On Tempo it holds tokens already: compare
   * differences.
   */
  readonly recipient: LocalWallet;
  /** Has gas on the EVM chain. */
  readonly settlement: LocalWallet;
  /** Recipient, settler and closer of channels on the Tempo chain. */
  readonly session: LocalWallet;
  /** Rails as a configuration would name them; both chains confirm at once. */
  readonly rails: {
    readonly tempo: TempoRailSettings;
    readonly evm: EvmRailSettings;
    readonly session: SessionRailSettings;
  };
  /** Ends both nodes. */
  close(): Promise<void>;
}

const EVM_CHAIN_ID = 31_337;
const BALANCE_OF = "0x70a08231";

/**
 * Starts both chains in about 0.2 seconds; the caller ends them. Nodes end with this process in any
 * case.
 */
export async function startPaymentChains(): Promise<PaymentChains> {
  const options = { runtime: realRuntime, onProgress: () => {} };
  const starting = { tempo: startTempoChain(options), evm: startEvmChain(EVM_CHAIN_ID, options) };
  const close = async (): Promise<void> => {
    const started = await Promise.allSettled([starting.tempo, starting.evm]);
    await Promise.all(started.map((it) => it.status === "fulfilled" && it.value.end()));
  };
  try {
    const [tempoNode, evmNode] = await Promise.all([starting.tempo, starting.evm]);
    const tempo = chainOf(tempoNode, TEMPO_CHAIN_ID, {
      address: TEMPO_TOKEN,
      name: "",
      version: "",
    });
    const evm = chainOf(evmNode, EVM_CHAIN_ID, await deployToken(nodeRpc(evmNode), realRuntime));
    const wallets = {
      payer: PAYER,
      otherPayers: OTHER_PAYERS,
      recipient: RECIPIENT,
      settlement: SETTLEMENT,
      session: SESSION,
    };
    return { ...wallets, tempo, evm, holdTempo: holding(tempo), rails: railsOf(tempo, evm), close };
  } catch (error) {
    await close();
    throw error;
  }
}

function holding({ rpc }: PaymentChain): PaymentChains["holdTempo"] {
  return async (held) => {
    await rpc("evm_setIntervalMining", held ? 0 : 1);
    if (!held) await rpc("evm_mine");
  };
}

function chainOf(node: AnvilNode, chainId: number, token: PaymentToken): PaymentChain {
  const { url, wsUrl, pid } = node;
  const rpc = nodeRpc(node);
  const balanceOf = async (address: string): Promise<bigint> =>
    BigInt(
      String(
        await rpc(
          "eth_call",
          { to: token.address, data: BALANCE_OF + address.slice(2).padStart(64, "0") },
          "latest",
        ),
      ),
    );
  return { rpcUrl: url, wsUrl, pid, rpc, chainId, token, balanceOf };
}

/** Of the Tempo chain `url` is that of its front. */
function nodeRpc({ wsUrl }: AnvilNode): PaymentChain["rpc"] {
  return rpcOf(wsUrl.replace(/^ws/, "http"));
}

function railsOf(tempo: PaymentChain, evm: PaymentChain): PaymentChains["rails"] {
  const base = (it: PaymentChain) => ({
    rpcUrl: it.rpcUrl,
    chainId: it.chainId,
    token: it.token,
    recipient: RECIPIENT.address as string,
    confirmations: 0,
    local: true,
  });
  return {
    tempo: { ...base(tempo), kind: "tempo", modes: ["pull", "push"] },
    evm: {
      ...base(evm),
      kind: "evm",
      walletKey: SETTLEMENT.key,
      lowGasWei: 10n ** 16n,
      maxGasWei: 10n ** 19n,
    },
    session: {
      ...base(tempo),
      kind: "session",
      recipient: SESSION.address,
      walletKey: SESSION.key,
      escrow: null,
      depositN: 1_000_000_000n,
      settleN: 500_000_000n,
      settleMs: 600_000,
    },
  };
}
