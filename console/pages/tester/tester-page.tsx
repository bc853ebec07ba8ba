// The tester: one call by chain, method, strategy, pin and key; what came back and how it was
// routed; the same call as programs; and, for the operator, the same call to every provider.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { SERVICE_URL } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import { useApp, useQuery, useStore } from "../../app/app.ts";
import { Card, PageHead } from "../../components/card.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { Snippets } from "../../snippets/snippet-card.tsx";
import { AnswerCard } from "./answer-card.tsx";
import { CompareCard } from "./compare-card.tsx";
import { type Instance, readInstance } from "./instance.ts";
import { MethodFields } from "./method-fields.tsx";
import { METHOD_FORMS, needsConfirmation, paramsOfForm, paramsOfJson } from "./method-forms.ts";
import { pathOf, sendCall, type TestAnswer, type TestCall } from "./rpc-call.ts";
import { TargetFields } from "./target-fields.tsx";

/** The page. */
export function TesterPage(): JSX.Element {
  const { client } = useApp();
  const document = useResource("agent.json", 0, () =>
    client.request<unknown>("GET", "/agent.json"),
  );
  return (
    <>
      <PageHead
        title="Tester"
        lead="Sends a call as a program would, and shows how it was routed."
      />
      <Loaded resource={document}>{(data) => <Tester instance={readInstance(data)} />}</Loaded>
    </>
  );
}

/** How parameters are written. */
export type ParamsForm = "fields" | "json";

function Tester({ instance }: { readonly instance: Instance }): JSX.Element {
  const { session } = useApp();
  const state = useStore(session.state);
  const target = useTarget(instance);
  const [method, setMethod] = useQuery("method");
  const [texts, setTexts] = useState<readonly string[]>([]);
  const [json, setJson] = useState("[]");
  const [asJson, setAsJson] = useState(false);
  const [key, setKey] = useState("");
  const [answer, setAnswer] = useState<TestAnswer | null>(null);
  const [busy, setBusy] = useState(false);
  const [isConfirming, setConfirming] = useState(false);
  const name = method === "" ? "eth_blockNumber" : method;
  const fields = METHOD_FORMS[name];
  const form: ParamsForm = fields === undefined || asJson ? "json" : "fields";
  const filled = (fields ?? []).map(({ example }, at) => texts[at] ?? example);
  const read = form === "json" ? paramsOfJson(json) : paramsOfForm(fields ?? [], filled);
  const call: TestCall = {
    ...target.value,
    method: name,
    params: read.kind === "params" ? read.params : [],
  };
  const send = (): void => {
    setConfirming(false);
    setBusy(true);
    void sendCall(call, key).then((came) => {
      setBusy(false);
      setAnswer(came);
    });
  };
  return (
    <>
      <Card title="Call">
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            if (needsConfirmation(name)) setConfirming(true);
            else send();
          }}
        >
          <TargetFields {...{ instance, target, keyText: key, setKey }} />
          <MethodFields
            {...{ name, fields: fields ?? [], filled, form, json, setTexts, setJson, setAsJson }}
            choose={(next) => {
              setMethod(next);
              setTexts([]);
            }}
          />
          {read.kind === "wrong" ? (
            <p class="notice bad" role="alert">
              {read.why}
            </p>
          ) : null}
          <p>
            <button
              type="submit"
              class="button button-primary"
              disabled={busy || read.kind === "wrong"}
            >
              {busy ? "Waiting for the answer" : "Send"}
            </button>
          </p>
        </form>
      </Card>
      {answer === null ? null : <AnswerCard answer={answer} />}
      {state?.role === "operator" ? <CompareCard call={call} /> : null}
      <Programs call={call} />
      {isConfirming ? (
        <Confirm method={name} close={() => setConfirming(false)} send={send} />
      ) : null}
    </>
  );
}

function Programs({ call }: { readonly call: TestCall }): JSX.Element {
  const url = new URL(pathOf(call), SERVICE_URL).href;
  return (
    <Card title="The same call in a program" lead="A key is not part of it: send yours as a header">
      <Snippets call={{ url, method: call.method, params: call.params }} />
    </Card>
  );
}

/** Where a call goes; chain, profile, strategy and pin stand in the address of the page. */
export interface Target {
  readonly value: Pick<TestCall, "profile" | "chain" | "strategy" | "provider">;
  readonly set: (field: "profile" | "chain" | "strategy" | "provider", text: string) => void;
}

function useTarget({ chains, strategies }: Instance): Target {
  const { router } = useApp();
  const { query } = useStore(router.place);
  const text = (name: string): string => query[name] ?? "";
  const chain = text("chain") === "" ? (chains[0]?.name ?? "") : text("chain");
  const strategy = text("strategy") === "" ? (strategies[0] ?? "load-balanced") : text("strategy");
  return {
    value: {
      chain,
      strategy,
      profile: text("profile") === "" ? null : text("profile"),
      provider: text("provider") === "" ? null : text("provider"),
    },
    set: (field, value) => router.setQuery({ [field]: value }),
  };
}

interface ConfirmProps {
  readonly method: string;
  readonly close: () => void;
  readonly send: () => void;
}

function Confirm({ method, close, send }: ConfirmProps): JSX.Element {
  return (
    <Dialog title="This changes the chain" close={close}>
      <div class="stack">
        <p>
          <span class="mono">{method}</span> hands a signed transaction to the chain. It cannot be
          taken back, and it may cost money.
        </p>
        <div class="dialog-foot">
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="button" class="button button-danger" onClick={send}>
            Send the transaction
          </button>
        </div>
      </div>
    </Dialog>
  );
}
