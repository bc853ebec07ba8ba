// Buys credit or days of Custom access: asks for the offers, shows what would be paid to whom, has
// a wallet of this browser sign it, and follows the purchase until it has settled.

import { useEffect, useState } from "preact/hooks";
import type { PaymentTerms } from "../../api/agent-document.ts";
import { SERVICE_URL } from "../../api/client.ts";
import { useApp, useCall } from "../../app/app.ts";
import { Card, Facts } from "../../components/card.tsx";
import { Button, Choices, Field, Form, Notice } from "../../components/controls.tsx";
import { Snippet } from "../../components/copy-button.tsx";
import { failureText } from "../../components/page-state.tsx";
import { shell } from "../../format/snippets.ts";
import { usd } from "../../format/text.ts";
import { type PaidAnswer, type PaidRequest, sendPaid } from "../../wallet/paid-request.ts";
import { signPayment, type Wallet, watchWallets } from "../../wallet/wallets.ts";
import { amountText, type PaymentOffer } from "../../wallet/x402-offer.ts";

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
  | { readonly kind: "failed"; readonly words: string }
  | Extract<PaidAnswer, { readonly kind: "pending" | "settled" }>;

const START: Step = { kind: "choosing", problem: null };

/** The card. */
export function TopUp({ accountId, terms, bought }: TopUpProps) {
  const app = useApp();
  const [step, setStep] = useState<Step>(START);
  const show = (answer: PaidAnswer, request: PaidRequest): void => {
    if (answer.kind === "offers") return setStep(stepOf(answer.offers, request));
    if (answer.kind === "failed")
      return setStep({ kind: "failed", words: failureText(answer.failure) });
    setStep(answer);
    bought();
  };
  const requestOffer = (request: PaidRequest): void => {
    setStep({ kind: "asking" });
    void sendPaid(app.client, request, null).then((answer) => show(answer, request));
  };
  /** Signs and sends; where nothing was sent, the offer stays, with why. */
  const pay = async (wallet: Wallet, offer: PaymentOffer, request: PaidRequest): Promise<void> => {
    setStep({ kind: "paying", words: "Sign the payment in your wallet." });
    const signed = await signPayment(wallet, offer, app.nowMs.get());
    if (signed.kind === "not_signed")
      return setStep({ kind: "offered", request, offers: [offer], problem: signed.why });
    setStep({ kind: "paying", words: "The payment was sent. Its chain is confirming it." });
    show(await sendPaid(app.client, request, signed.header), request);
  };
  return (
    <Card
      title="Top up"
      lead={`${usd(terms.purchase_usd.min)} to ${usd(terms.purchase_usd.max)} at a time`}
    >
      <StepView {...{ step, accountId, terms, requestOffer, pay, setStep, bought }} />
    </Card>
  );
}

function stepOf(offers: readonly PaymentOffer[], request: PaidRequest): Step {
  return offers.length === 0
    ? { kind: "choosing", problem: "No wallet of a browser can pay here: use the command." }
    : { kind: "offered", request, offers, problem: null };
}

interface StepViewProps extends TopUpProps {
  readonly step: Step;
  readonly requestOffer: (request: PaidRequest) => void;
  readonly pay: (wallet: Wallet, offer: PaymentOffer, request: PaidRequest) => unknown;
  readonly setStep: (step: Step) => void;
}

function StepView(props: StepViewProps) {
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
          <Notice tone="bad">{step.words}</Notice>
          <Again again={again} />
        </div>
      );
  }
}

function Again({ again }: { readonly again: () => void }) {
  return (
    <p>
      <Button press={again}>Buy more</Button>
    </p>
  );
}

const KINDS = [
  { value: "credit", label: "Credit" },
  { value: "access", label: "Custom access" },
] as const;

function Choosing({ step, accountId, terms, requestOffer }: StepViewProps) {
  const [kind, setKind] = useState<"credit" | "access">("credit");
  const [amount, setAmount] = useState("5");
  const [days, setDays] = useState("1");
  const keys = useCall("GET /api/v1/keys", { query: { limit: 1 } });
  const keyId = keys.data?.keys[0]?.id ?? "";
  const hasRail = (wanted: string): boolean => terms.rails.some(({ kind }) => kind === wanted);
  const request: PaidRequest =
    kind === "credit"
      ? { path: `/api/v1/accounts/${accountId}/credit`, body: { usd: amount } }
      : {
          path: `/api/v1/accounts/${accountId}/custom-access`,
          body: { days: Number(days), key_id: keyId },
        };
  return (
    <Form submit={() => requestOffer(request)}>
      <div>
        <Choices label="What to buy" options={KINDS} value={kind} choose={setKind} />
      </div>
      {kind === "credit" ? (
        <Field
          label="Amount in US dollars"
          class="narrow"
          inputMode="decimal"
          required
          pattern="\d{1,9}(\.\d{1,6})?"
          title={`A decimal from ${terms.purchase_usd.min} to ${terms.purchase_usd.max}`}
          value={amount}
          change={setAmount}
        />
      ) : (
        <Field
          label={`Days, ${usd(terms.custom_access.usd_per_day)} each`}
          class="narrow"
          type="number"
          min={1}
          max={terms.custom_access.days.max}
          required
          value={days}
          change={setDays}
        />
      )}
      <Notice tone="warn">{step.kind === "choosing" ? step.problem : null}</Notice>
      <p>
        <Button look="primary" disabled={step.kind === "asking" || !hasRail("evm")}>
          Continue with a wallet
        </Button>
      </p>
      <details>
        <summary>Pay by a command instead</summary>
        <Snippet text={paymentCommand(request, !hasRail("tempo"))} what="the command" />
      </details>
    </Form>
  );
}

interface OfferedProps extends StepViewProps {
  readonly step: Extract<Step, { readonly kind: "offered" }>;
  readonly again: () => void;
}

function Offered({ step, pay, again }: OfferedProps) {
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
      <Notice tone="warn">{step.problem}</Notice>
      {wallets.length === 0 ? (
        <p class="notice warn">This browser has no wallet. Install one, or pay by the command.</p>
      ) : null}
      <p class="page-actions">
        {wallets.map((wallet) => (
          <Button key={wallet.id} look="primary" press={() => pay(wallet, offer, step.request)}>
            <span>
              Pay with <bdi>{wallet.name}</bdi>
            </span>
          </Button>
        ))}
        <Button press={again}>Back</Button>
      </p>
    </div>
  );
}

function OfferFacts({ offer }: { readonly offer: PaymentOffer }) {
  const amount = (
    <>
      {amountText(offer.amount)} <bdi>{offer.tokenName}</bdi>
    </>
  );
  return (
    <Facts
      facts={[
        ["Amount", amount],
        ["To", <code key="to">{offer.recipient}</code>],
        ["Token", <code key="token">{offer.token}</code>],
        ["Chain", offer.chainId],
      ]}
    />
  );
}

const PENDING_POLL_MS = 2_000;

function Pending({ purchaseId, setStep, bought }: StepViewProps & { readonly purchaseId: string }) {
  const request = { params: { id: purchaseId } };
  const purchase = useCall("GET /api/v1/purchases/{id}", request, PENDING_POLL_MS);
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

/** The stock command line of the protocol. */
const COMMAND = "npx -y -p mppx@0.11.0 -p viem@2.57.1 mppx";

/**
 * The command that pays from a terminal: token and wallet stand in variables, never in the text.
 * `byX402` = the service takes EIP-3009 payments alone.
 */
export function paymentCommand({ path, body }: PaidRequest, byX402: boolean): string {
  const url = new URL(path.slice(1), SERVICE_URL).href;
  return [
    "# SVC_TOKEN: your management token; MPPX_PRIVATE_KEY: the key of a wallet",
    `${COMMAND} ${shell(url)} \\`,
    `  -H "Authorization: Bearer $SVC_TOKEN" \\`,
    `  -J ${shell(JSON.stringify(body))}${byX402 ? " --protocol x402" : ""}`,
  ].join("\n");
}
