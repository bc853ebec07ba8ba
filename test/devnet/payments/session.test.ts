// The stand-in of Tempo's channel reserve against the stock session client and the library's own
// chain calls: what is built on it builds on what Tempo has.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Challenge, Credential } from "mppx";
import { session } from "mppx/client";
import { Session } from "mppx/tempo";
import {
  BaseError,
  ContractFunctionRevertedError,
  createClient,
  encodeFunctionData,
  getAddress,
  type Hex,
  http,
  maxUint256,
  parseEventLogs,
  zeroAddress,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { getTransactionReceipt, signTransaction, simulateContract } from "viem/actions";
import { tempoLocalnet } from "viem/chains";
import { Abis, Transaction } from "viem/tempo";
import { z } from "zod";
import { openingsOf } from "../../../src/devnet/payments/channel-openings.ts";
import type { LocalWallet } from "../../../src/devnet/payments/wallets.ts";
import { type PaymentChains, startPaymentChains } from "../../fakes/payment-chains.ts";

const { Chain, Constants, Voucher, escrowAbi } = Session.Precompile;
const ESCROW = Constants.tip20ChannelEscrow;
const CHAIN_ID = 1337;
const DEPOSIT = 1_000_000n;
const GRACE_S = 900;

const hex = z.custom<Hex>((it) => typeof it === "string" && it.startsWith("0x"));
const Descriptor = z.object({
  payer: hex,
  payee: hex,
  operator: hex,
  token: hex,
  salt: hex,
  authorizedSigner: hex,
  expiringNonceHash: hex,
});
const OpenPayload = z.object({
  action: z.literal("open"),
  channelId: hex,
  transaction: hex,
  signature: hex,
  descriptor: Descriptor,
  cumulativeAmount: z.string(),
});
const VoucherPayload = z.object({
  action: z.literal("voucher"),
  channelId: hex,
  signature: hex,
  cumulativeAmount: z.string(),
});
type Opened = z.infer<typeof OpenPayload>;

describe("the stand-in of the channel reserve", () => {
  let chains: PaymentChains;
  before(async () => {
    chains = await startPaymentChains();
  });
  after(() => chains.close());

  const clientOf = ({ key }: LocalWallet) =>
    createClient({
      chain: tempoLocalnet,
      transport: http(chains.tempo.rpcUrl),
      account: privateKeyToAccount(key),
      pollingInterval: 20,
    });
  const stateOf = (id: Hex) => Chain.getChannelState(clientOf(chains.session), id);
  const challenge = (amount: string): Challenge.Challenge =>
    Challenge.from({
      id: `challenge-${amount}`,
      realm: "test",
      method: "tempo",
      intent: "session",
      request: {
        amount,
        currency: chains.tempo.token.address,
        recipient: chains.session.address,
        suggestedDeposit: `${DEPOSIT}`,
        methodDetails: { chainId: CHAIN_ID, escrowContract: ESCROW },
      },
    });
  /**
   * A wallet as the stock client has it: opens a channel with its first credential, and then signs
   * vouchers.
   */
  const walletOf = (who: LocalWallet) => {
    const method = session({
      account: privateKeyToAccount(who.key),
      getClient: () => clientOf(who),
    });
    return async (amount: string): Promise<unknown> => {
      const credential = await method.createCredential({
        challenge: challenge(amount) as never,
        context: {},
      });
      return Credential.deserialize(credential).payload;
    };
  };
  const broadcast = (opened: Opened, who: LocalWallet) =>
    Chain.broadcastOpenTransaction({
      chainId: CHAIN_ID,
      client: clientOf(chains.session),
      escrowContract: ESCROW,
      expectedAuthorizedSigner: opened.descriptor.authorizedSigner,
      expectedChannelId: opened.channelId,
      expectedCurrency: opened.descriptor.token,
      expectedExpiringNonceHash: opened.descriptor.expiringNonceHash,
      expectedOperator: opened.descriptor.operator,
      expectedPayee: opened.descriptor.payee,
      expectedPayer: who.address,
      serializedTransaction: opened.transaction,
    });
  const open = async (who: LocalWallet): Promise<Opened> => {
    const opened = OpenPayload.parse(await walletOf(who)("100"));
    await broadcast(opened, who);
    return opened;
  };
  const voucher = (who: LocalWallet, opened: Opened, cumulativeAmount: bigint) =>
    Voucher.signVoucher(
      clientOf(who),
      privateKeyToAccount(who.key),
      { channelId: opened.channelId, cumulativeAmount },
      ESCROW,
      CHAIN_ID,
    );
  const mined = async (who: LocalWallet, hash: Promise<Hex>) => {
    const client = clientOf(who);
    const receipt = await Chain.waitForSuccessfulReceipt(client, await hash);
    return { receipt, events: parseEventLogs({ abi: escrowAbi, logs: receipt.logs }) };
  };
  /**
   * Asked as a plain call: for Tempo transactions the node answers that all is well, whatever the
   * contract says.
   */
  const reverts = async (
    name: string,
    who: LocalWallet,
    functionName: "open" | "settle" | "topUp" | "close" | "requestClose" | "withdraw",
    args: readonly unknown[],
  ) => {
    const client = createClient({ transport: http(chains.tempo.rpcUrl) });
    const asked = simulateContract(client, {
      account: who.address,
      address: ESCROW,
      abi: Abis.tip20ChannelReserve,
      functionName,
      args,
    } as never);
    await assert.rejects(asked, (error: unknown) => {
      const reverted =
        error instanceof BaseError
          ? error.walk((it) => it instanceof ContractFunctionRevertedError)
          : null;
      assert.equal(
        reverted instanceof ContractFunctionRevertedError
          ? reverted.data?.errorName
          : String(error),
        name,
      );
      return true;
    });
  };

  it(
    "the library's open, with its checks of events and state, succeeds; the payer's money is in " +
      "the channel",
    async () => {
      const before = await chains.tempo.balanceOf(ESCROW);
      const opened = OpenPayload.parse(await walletOf(chains.payer)("100"));
      const { state, openDeposit, txHash } = await broadcast(opened, chains.payer);
      assert.deepEqual(
        [state, openDeposit],
        [{ settled: 0n, deposit: DEPOSIT, closeRequestedAt: 0 }, DEPOSIT],
      );
      assert.equal((await chains.tempo.balanceOf(ESCROW)) - before, DEPOSIT);
      assert.equal(
        (await getTransactionReceipt(clientOf(chains.payer), { hash: txHash })).status,
        "success",
      );
    },
  );

  it(
    "a voucher of the stock client settles, twice by its difference, and what does not grow or " +
      "is forged is refused",
    async () => {
      const wallet = walletOf(chains.payer);
      const opened = OpenPayload.parse(await wallet("100"));
      await broadcast(opened, chains.payer);
      const next = VoucherPayload.parse(await wallet("250"));
      assert.deepEqual([next.channelId, next.cumulativeAmount], [opened.channelId, "350"]);
      const recipient = clientOf(chains.session);
      const before = await chains.tempo.balanceOf(ESCROW);
      await mined(
        chains.session,
        Chain.settleOnChain(recipient, opened.descriptor, 100n, opened.signature),
      );
      const { events } = await mined(
        chains.session,
        Chain.settleOnChain(recipient, opened.descriptor, 350n, next.signature),
      );
      assert.deepEqual(events.find((it) => it.eventName === "Settled")?.args, {
        channelId: opened.channelId,
        payer: chains.payer.address,
        payee: chains.session.address,
        cumulativeAmount: 350n,
        deltaPaid: 250n,
        newSettled: 350n,
      });
      assert.equal(before - (await chains.tempo.balanceOf(ESCROW)), 350n);
      await reverts("AmountNotIncreasing", chains.session, "settle", [
        opened.descriptor,
        350n,
        next.signature,
      ]);
      await reverts("InvalidSignature", chains.session, "settle", [
        opened.descriptor,
        351n,
        next.signature,
      ]);
      await reverts("InvalidSignature", chains.session, "settle", [
        opened.descriptor,
        351n,
        "0x1234",
      ]);
      await reverts("AmountExceedsDeposit", chains.session, "settle", [
        opened.descriptor,
        DEPOSIT + 1n,
        next.signature,
      ]);
      await reverts("NotPayeeOrOperator", chains.payer, "settle", [
        opened.descriptor,
        360n,
        await voucher(chains.payer, opened, 360n),
      ]);
    },
  );

  it("a top-up grows the deposit, and the recipient's close pays both and leaves nothing", async () => {
    const opened = await open(chains.payer);
    const payer = clientOf(chains.payer);
    await mined(chains.payer, Chain.topUpOnChain(payer, opened.descriptor, 500n));
    assert.equal((await stateOf(opened.channelId)).deposit, DEPOSIT + 500n);
    const signature = await voucher(chains.payer, opened, 900n);
    const recipient = clientOf(chains.session);
    await reverts("CaptureAmountInvalid", chains.session, "close", [
      opened.descriptor,
      900n,
      901n,
      signature,
    ]);
    await reverts("InvalidSignature", chains.session, "close", [
      opened.descriptor,
      901n,
      900n,
      signature,
    ]);
    const { events } = await mined(
      chains.session,
      Chain.closeOnChain(recipient, opened.descriptor, 900n, 700n, signature),
    );
    const closed = events.find((it) => it.eventName === "ChannelClosed");
    assert.deepEqual(
      [closed?.args.settledToPayee, closed?.args.refundedToPayer],
      [700n, DEPOSIT + 500n - 700n],
    );
    assert.deepEqual(await stateOf(opened.channelId), {
      settled: 0n,
      deposit: 0n,
      closeRequestedAt: 0,
    });
    await reverts("ChannelNotFound", chains.session, "close", [
      opened.descriptor,
      900n,
      700n,
      signature,
    ]);
  });

  it(
    "a forced close: the payer gets the rest back after the grace period and not before, and a " +
      "top-up calls it off",
    async () => {
      const opened = await open(chains.payer);
      const payer = clientOf(chains.payer);
      await reverts("NotPayer", chains.session, "requestClose", [opened.descriptor]);
      const { events } = await mined(
        chains.payer,
        Chain.requestCloseOnChain(payer, opened.descriptor),
      );
      const { closeRequestedAt } = await stateOf(opened.channelId);
      const requested = events.find((it) => it.eventName === "CloseRequested");
      assert.deepEqual(
        [requested?.args.channelId, requested?.args.closeGraceEnd],
        [opened.channelId, BigInt(closeRequestedAt + GRACE_S)],
      );
      await reverts("CloseNotReady", chains.payer, "withdraw", [opened.descriptor]);
      const cancelled = await mined(chains.payer, Chain.topUpOnChain(payer, opened.descriptor, 0n));
      assert.ok(cancelled.events.some((it) => it.eventName === "CloseRequestCancelled"));
      assert.equal((await stateOf(opened.channelId)).closeRequestedAt, 0);
      await mined(chains.payer, Chain.requestCloseOnChain(payer, opened.descriptor));
      await mined(
        chains.session,
        Chain.settleOnChain(clientOf(chains.session), opened.descriptor, 100n, opened.signature),
      );
    },
  );

  it("after the grace period the payer takes the rest, and the channel is gone", async () => {
    const own = await startPaymentChains();
    try {
      const who = own.payer;
      const method = session({
        account: privateKeyToAccount(who.key),
        getClient: () => createClient({ chain: tempoLocalnet, transport: http(own.tempo.rpcUrl) }),
      });
      const credential = await method.createCredential({
        challenge: challenge("100") as never,
        context: {},
      });
      const opened = OpenPayload.parse(Credential.deserialize(credential).payload);
      const client = createClient({
        chain: tempoLocalnet,
        transport: http(own.tempo.rpcUrl),
        account: privateKeyToAccount(who.key),
        pollingInterval: 20,
      });
      await Chain.waitForSuccessfulReceipt(
        client,
        await Chain.sendTransaction(client, opened.transaction),
      );
      await Chain.waitForSuccessfulReceipt(
        client,
        await Chain.requestCloseOnChain(client, opened.descriptor),
      );
      // Wallets sign for the next seconds of the real clock, and this chain is ahead of it now: the
      // node signs, with the same well-known key.
      await own.tempo.rpc("evm_increaseTime", GRACE_S);
      const data = encodeFunctionData({
        abi: escrowAbi,
        functionName: "withdraw",
        args: [opened.descriptor],
      });
      const hash = z.string().parse(
        await own.tempo.rpc("eth_sendTransaction", {
          from: who.address,
          to: ESCROW,
          data,
          gas: "0x100000",
        }),
      );
      const { logs } = await Chain.waitForSuccessfulReceipt(client, hex.parse(hash));
      const [closed] = parseEventLogs({ abi: escrowAbi, logs, eventName: "ChannelClosed" });
      assert.deepEqual([closed?.args.settledToPayee, closed?.args.refundedToPayer], [0n, DEPOSIT]);
      assert.deepEqual(await Chain.getChannelState(client, opened.channelId), {
        settled: 0n,
        deposit: 0n,
        closeRequestedAt: 0,
      });
    } finally {
      await own.close();
    }
  });

  it(
    "channels that are opened at the same moment all have the identifiers that their wallets " +
      "signed for",
    async () => {
      const payers = [chains.payer, ...chains.otherPayers];
      const opened = await Promise.all(
        Array.from({ length: 12 }, async (_, at) => {
          const who = payers[at % payers.length] ?? chains.payer;
          return { who, opened: OpenPayload.parse(await walletOf(who)("100")) };
        }),
      );
      const results = await Promise.all(opened.map((it) => broadcast(it.opened, it.who)));
      assert.deepEqual(new Set(results.map((it) => it.state.deposit)), new Set([DEPOSIT]));
    },
  );

  it("the hash of the opening transaction is the library's, also where somebody else pays the fee", async () => {
    const account = privateKeyToAccount(chains.payer.key);
    const sponsor = privateKeyToAccount(chains.session.key);
    const salt: Hex = `0x${"cd".repeat(32)}`;
    const args = [
      chains.session.address,
      zeroAddress,
      chains.tempo.token.address as Hex,
      1n,
      salt,
      zeroAddress,
    ] as const;
    const calls = [
      { to: ESCROW, data: encodeFunctionData({ abi: escrowAbi, functionName: "open", args }) },
    ];
    const basis = {
      type: "tempo",
      chainId: CHAIN_ID,
      calls,
      gas: 900_000n,
      maxFeePerGas: 30_000_000_000n,
      validBefore: 2_000_000_000,
      nonceKey: maxUint256,
      nonce: 0,
    };
    for (const more of [
      { feeToken: chains.tempo.token.address },
      { feePayer: sponsor, feeToken: chains.tempo.token.address },
    ]) {
      const raw = hex.parse(
        await signTransaction(clientOf(chains.payer), { ...basis, ...more, account } as never),
      );
      const transaction = Transaction.deserialize(raw as never);
      const context = Session.Precompile.Channel.computeExpiringNonceHash(transaction as never, {
        sender: account.address,
      });
      const opened = openingsOf(raw);
      assert.deepEqual(
        opened.map((it) => ({ ...it, payer: getAddress(it.payer) })),
        [{ payer: account.address, salt, context }],
      );
    }
    assert.deepEqual(openingsOf("0x76c0"), []);
    assert.deepEqual(openingsOf(`0x76${ESCROW.slice(2)}`), []);
  });

  it("a channel without a recipient, to a token or without money is refused", async () => {
    const salt = `0x${"ab".repeat(32)}`;
    const { address: token } = chains.tempo.token;
    const { address: payee } = chains.session;
    await reverts("InvalidPayee", chains.payer, "open", [
      zeroAddress,
      zeroAddress,
      token,
      1n,
      salt,
      zeroAddress,
    ]);
    await reverts("InvalidPayee", chains.payer, "open", [
      token,
      zeroAddress,
      token,
      1n,
      salt,
      zeroAddress,
    ]);
    await reverts("ZeroDeposit", chains.payer, "open", [
      payee,
      zeroAddress,
      token,
      0n,
      salt,
      zeroAddress,
    ]);
  });
});
