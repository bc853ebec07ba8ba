// What the operator gives to an account, after a question that says what will happen: credit, and
// days of Custom access. The service writes a line about each.

import { useMemo, useState } from "preact/hooks";
import { useApp } from "../../app/app.ts";
import { Button, Choices, Field, Question } from "../../components/controls.tsx";
import { plural, usd } from "../../format/text.ts";

interface AccountProps {
  readonly accountId: string;
  /** Something was given. */
  readonly changed: () => void;
}

/** The buttons, and the question that one of them opened. */
export function AccountActions(props: AccountProps) {
  const [open, setOpen] = useState<"credit" | "days" | null>(null);
  const close = (): void => setOpen(null);
  const asked = {
    ...props,
    close,
    changed: () => {
      close();
      props.changed();
    },
  };
  return (
    <p class="page-actions">
      <Button look="small" press={() => setOpen("credit")}>
        Credit
      </Button>
      <Button look="small" press={() => setOpen("days")}>
        Grant Custom days
      </Button>
      {open === "credit" && <CreditQuestion {...asked} />}
      {open === "days" && <DaysQuestion {...asked} />}
    </p>
  );
}

interface QuestionProps extends AccountProps {
  readonly close: () => void;
}

const KINDS = [
  { value: "payment", label: "Money that came in" },
  { value: "grant", label: "Given for nothing" },
] as const;

function CreditQuestion({ accountId, changed, close }: QuestionProps) {
  const { client, toasts } = useApp();
  const [amount, setAmount] = useState("");
  const [kind, setKind] = useState<(typeof KINDS)[number]["value"]>("payment");
  const { reason, reference, fields } = useReasons();
  const body = { usd: amount.trim(), kind, reference, reason };
  const request = { params: { id: accountId }, body };
  const isAmount = Number(amount) > 0;
  return (
    <Question
      title="Credit an account"
      verb={isAmount ? `Credit ${usd(amount)}` : "Credit"}
      send={() => client.call("POST /api/v1/operator/accounts/{id}/credit", request)}
      done={({ credited, balance_usd: balance }) => {
        const what = credited ? "The account was credited" : "This reference was credited before";
        toasts.show("good", `${what}. Its balance is ${usd(balance)}.`);
        changed();
      }}
      close={close}
    >
      <p>
        <code>{accountId}</code> can spend it at once. It cannot be taken back here.
      </p>
      <Field
        label="Amount in US dollars"
        inputMode="decimal"
        pattern="\d{1,6}(\.\d{1,9})?"
        title="A plain decimal of at most 999,999.999999999"
        required
        value={amount}
        change={setAmount}
      />
      <Choices label="What it is for" options={KINDS} value={kind} choose={setKind} />
      {fields}
    </Question>
  );
}

function DaysQuestion({ accountId, changed, close }: QuestionProps) {
  const { client, toasts } = useApp();
  const [days, setDays] = useState("");
  const { reason, reference, fields } = useReasons();
  const body = { days: Number(days), reference, reason };
  const request = { params: { id: accountId }, body };
  return (
    <Question
      title="Grant Custom days"
      verb={Number(days) > 0 ? `Grant ${plural(Number(days), "day")}` : "Grant"}
      send={() => client.call("POST /api/v1/operator/accounts/{id}/custom-access", request)}
      done={({ until }) => {
        toasts.show(
          "good",
          `The account has Custom access until ${new Date(until).toUTCString()}.`,
        );
        changed();
      }}
      close={close}
    >
      <p>
        <code>{accountId}</code> gets them for nothing, from now or after the days that it has.
      </p>
      <Field label="Days" type="number" min={1} max={366} required value={days} change={setDays} />
      {fields}
    </Question>
  );
}

/** Why, and the reference under which it is given once, however often it is sent. */
function useReasons() {
  const made = useMemo(() => `console-${crypto.getRandomValues(new Uint32Array(3)).join("-")}`, []);
  const [reason, setReason] = useState("");
  const [reference, setReference] = useState(made);
  const fields = (
    <>
      <Field label="Why" required maxLength={200} value={reason} change={setReason} />
      <Field
        label="Reference, for which it is given once"
        required
        maxLength={100}
        pattern="[\w.:\-]+"
        title="Letters, digits and . : - _"
        value={reference}
        change={setReference}
      />
    </>
  );
  return { reason, reference, fields };
}
