// Buys credit or days of Custom access: asks for the offers, shows what would be paid to whom, has
// a wallet of this browser sign it, and follows the purchase until it has settled.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import { type App, useApp } from "../../app/app.ts";
import { Card, Choices } from "../../components/card.tsx";
import { Snippet } from "../../components/copy-button.tsx";
import { failureText } from "../../components/page-state.tsx";
import { usd } from "../../format/usd.ts";
import {
  type PaidAnswer,
  type PaidRequest,
  requestOffers,
  sendPayment,
} from "../../wallet/paid-request.ts";
import { signPayment } from "../../wallet/sign-payment.ts";
import { type Wallet, watchWallets } from "../../wallet/wallets.ts";
import { amountText, type PaymentOffer } from "../../wallet/x402-offer.ts";
import { paymentCommand } from "./payment-command.ts";
import type { PaymentTerms } from "./payment-terms.ts";

interface TopUpProps {
  readonly accountId: string;
  readonly terms: PaymentTerms;
  readonly bought: () => void;
}

/** Where a purchase stands on the page. */
type Step =
  | { readonly kind: "choosing"; readonly problem: string | null }
  | { readonly kind: "asking" }
  | {
      readonly kind: "offered";
      readonly request: PaidRequest;
      readonly offers: readonly PaymentOffer[];
      readonly problem: string | null;
    }
  | { readonly kind: "paying"; readonly words: string }
  | { readonly kind: "pending"; readonly purchaseId: string }
  | { readonly kind: "settled"; readonly txHash: string | null }
  | { readonly kind: "failed"; readonly words: string };

const START: Step = { kind: "choosing", problem: null };

/** The card. */
export function TopUp({ accountId, terms, bought }: TopUpProps): JSX.Element {
  const app = useApp();
  const [step, setStep] = useState<Step>(START);
  const show = (answer: PaidAnswer, request: PaidRequest): void => {
    setStep(stepAfter(answer, request));
    if (answer.kind === "settled" || answer.kind === "pending") bought();
  };
  const requestOffer = (request: PaidRequest): void => {
    setStep({ kind: "asking" });
    void requestOffers(request).then((answer) => show(answer, request));
  };
  const pay = (wallet: Wallet, offer: PaymentOffer, request: PaidRequest): void => {
    const back = (problem: string): void =>
      setStep({ kind: "offered", request, offers: [offer], problem });
    void payBy({ app, wallet, offer, request, back, setStep }).then((answer) => {
      if (answer !== null) show(answer, request);
    });
  };
  return (
    <Card title="Top up" lead={`${usd(terms.minUsd)} to ${usd(terms.maxUsd)} at a time`}>
      <StepView {...{ step, accountId, terms, requestOffer, pay, setStep, bought }} />
    </Card>
  );
}

interface Paying {
  readonly app: App;
  readonly wallet: Wallet;
  readonly offer: PaymentOffer;
  readonly request: PaidRequest;
  readonly back: (problem: string) => void;
  readonly setStep: (step: Step) => void;
}

/** Signs and sends; null = nothing was sent, and the page says why. */
async function payBy(paying: Paying): Promise<PaidAnswer | null> {
  const { app, wallet, offer, request, back, setStep } = paying;
  setStep({ kind: "paying", words: "Sign the payment in your wallet." });
  const signed = await signPayment(wallet, offer, app.nowMs.get());
  if (signed.kind === "not_signed") {
    back(signed.why);
    return null;
  }
  setStep({ kind: "paying", words: "The payment was sent. Its chain is confirming it." });
  return sendPayment(request, signed.header);
}

function stepAfter(answer: PaidAnswer, request: PaidRequest): Step {
  switch (answer.kind) {
    case "offers":
      return answer.offers.length === 0
        ? { kind: "choosing", problem: "No wallet of a browser can pay here: use the command." }
        : { kind: "offered", request, offers: answer.offers, problem: null };
    case "settled":
      return { kind: "settled", txHash: answer.txHash };
    case "pending":
      return { kind: "pending", purchaseId: answer.purchaseId };
    case "failed":
      return { kind: "failed", words: failureText(answer.failure) };
  }
}

interface StepViewProps extends TopUpProps {
  readonly step: Step;
  readonly requestOffer: (request: PaidRequest) => void;
  readonly pay: (wallet: Wallet, offer: PaymentOffer, request: PaidRequest) => void;
  readonly setStep: (step: Step) => void;
}

function StepView(props: StepViewProps): JSX.Element {
  const { step, setStep } = props;
  const again = (): void => setStep(START);
  switch (step.kind) {
    case "choosing":
    case "asking":
      return <Choosing {...props} />;
    case "offered":
      return <Offered {...props} step={step} again={again} />;
    case "paying":
      return <p role="status">{step.words}</p>;
    case "pending":
      return <Pending {...props} purchaseId={step.purchaseId} />;
    case "settled":
      return (
        <div class="stack" role="status">
          <p class="notice good">The payment has arrived and is credited.</p>
          {step.txHash === null ? null : (
            <p class="small muted wrap-anywhere">Transaction {step.txHash}</p>
          )}
          <Again again={again} />
        </div>
      );
    case "failed":
      return (
        <div class="stack">
          <p class="notice bad" role="alert">
            {step.words}
          </p>
          <Again again={again} />
        </div>
      );
  }
}

function Again({ again }: { readonly again: () => void }): JSX.Element {
  return (
    <p>
      <button type="button" class="button" onClick={again}>
        Buy more
      </button>
    </p>
  );
}

const KINDS = [
  { value: "credit", label: "Credit" },
  { value: "access", label: "Custom access" },
] as const;

function Choosing({ step, accountId, terms, requestOffer }: StepViewProps): JSX.Element {
  const { client } = useApp();
  const [kind, setKind] = useState<"credit" | "access">("credit");
  const [amount, setAmount] = useState("5");
  const [days, setDays] = useState("1");
  const keys = useResource("a key", 0, () =>
    client.call("GET /api/v1/keys", { query: { limit: 1 } }),
  );
  const keyId = keys.data?.keys[0]?.id ?? "";
  const request: PaidRequest =
    kind === "credit"
      ? { path: `/api/v1/accounts/${accountId}/credit`, body: { usd: amount } }
      : {
          path: `/api/v1/accounts/${accountId}/custom-access`,
          body: { days: Number(days), key_id: keyId },
        };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        requestOffer(request);
      }}
    >
      <div>
        <Choices label="What to buy" options={KINDS} value={kind} choose={setKind} />
      </div>
      {kind === "credit" ? (
        <AmountField {...{ amount, setAmount, terms }} />
      ) : (
        <DaysField {...{ days, setDays, terms }} />
      )}
      {step.kind === "choosing" && step.problem !== null ? (
        <p class="notice warn" role="alert">
          {step.problem}
        </p>
      ) : null}
      <p>
        <button
          type="submit"
          class="button button-primary"
          disabled={step.kind === "asking" || !terms.byWallet}
        >
          Continue with a wallet
        </button>
      </p>
      <details>
        <summary>Pay by a command instead</summary>
        <Snippet text={paymentCommand(request, terms.byWalletOnly)} what="the command" />
      </details>
    </form>
  );
}

interface AmountProps {
  readonly amount: string;
  readonly setAmount: (text: string) => void;
  readonly terms: PaymentTerms;
}

function AmountField({ amount, setAmount, terms }: AmountProps): JSX.Element {
  return (
    <div class="field">
      <label for="amount">Amount in US dollars</label>
      <input
        id="amount"
        class="input narrow"
        inputMode="decimal"
        required
        pattern="\d{1,9}(\.\d{1,6})?"
        title={`A decimal from ${terms.minUsd} to ${terms.maxUsd}`}
        value={amount}
        onInput={(event) => setAmount(event.currentTarget.value)}
      />
    </div>
  );
}

interface DaysProps {
  readonly days: string;
  readonly setDays: (text: string) => void;
  readonly terms: PaymentTerms;
}

function DaysField({ days, setDays, terms }: DaysProps): JSX.Element {
  return (
    <div class="field">
      <label for="days">Days, {usd(terms.dayUsd)} each</label>
      <input
        id="days"
        class="input narrow"
        type="number"
        min={1}
        max={terms.maxDays}
        required
        value={days}
        onInput={(event) => setDays(event.currentTarget.value)}
      />
    </div>
  );
}

interface OfferedProps extends StepViewProps {
  readonly step: Extract<Step, { readonly kind: "offered" }>;
  readonly again: () => void;
}

function Offered({ step, pay, again }: OfferedProps): JSX.Element {
  const [wallets, setWallets] = useState<readonly Wallet[]>([]);
  const [chosen, setChosen] = useState(0);
  useEffect(() => watchWallets(window, setWallets), []);
  const offer = step.offers[chosen] ?? step.offers[0];
  if (offer === undefined) return <Again again={again} />;
  return (
    <div class="stack">
      {step.offers.length < 2 ? null : (
        <Choices
          label="Chain"
          options={step.offers.map((each, at) => ({
            value: String(at),
            label: `Chain ${each.chainId}`,
          }))}
          value={String(chosen)}
          choose={(at) => setChosen(Number(at))}
        />
      )}
      <OfferFacts offer={offer} />
      {step.problem === null ? null : (
        <p class="notice warn" role="alert">
          {step.problem}
        </p>
      )}
      {wallets.length === 0 ? (
        <p class="notice warn">This browser has no wallet. Install one, or pay by the command.</p>
      ) : null}
      <p class="page-actions">
        {wallets.map((wallet) => (
          <button
            key={wallet.id}
            type="button"
            class="button button-primary"
            onClick={() => pay(wallet, offer, step.request)}
          >
            <span>
              Pay with <bdi>{wallet.name}</bdi>
            </span>
          </button>
        ))}
        <button type="button" class="button" onClick={again}>
          Back
        </button>
      </p>
    </div>
  );
}

function OfferFacts({ offer }: { readonly offer: PaymentOffer }): JSX.Element {
  return (
    <dl class="facts">
      <dt>Amount</dt>
      <dd>
        {amountText(offer.amount)} <bdi>{offer.tokenName}</bdi>
      </dd>
      <dt>To</dt>
      <dd class="mono">{offer.recipient}</dd>
      <dt>Token</dt>
      <dd class="mono">{offer.token}</dd>
      <dt>Chain</dt>
      <dd>{offer.chainId}</dd>
    </dl>
  );
}

const PENDING_POLL_MS = 2_000;

function Pending({
  purchaseId,
  setStep,
  bought,
}: StepViewProps & { readonly purchaseId: string }): JSX.Element {
  const { client } = useApp();
  const purchase = useResource(purchaseId, PENDING_POLL_MS, (signal) =>
    client.call("GET /api/v1/purchases/{id}", { params: { id: purchaseId } }, signal),
  );
  const { state, reason, tx_hash } = purchase.data ?? {};
  useEffect(() => {
    if (state === "settled") setStep({ kind: "settled", txHash: tx_hash ?? null });
    if (state === "failed") setStep({ kind: "failed", words: `Nothing was taken: ${reason}` });
    if (state === "settled" || state === "failed") bought();
  }, [state]);
  return (
    <p class="notice warn" role="status">
      The payment is recorded and its chain has not confirmed it yet. Do not pay again; this page
      may be closed.
    </p>
  );
}
