// The tester: one call by chain, method, strategy, pin and key; what came back and how it was
// routed; the same call as programs; and, for the operator, the same call to every provider.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AgentDocument } from "../../api/agent-document.ts";
import { SERVICE_URL } from "../../api/client.ts";
import { ForOperator, useAgentDocument, useApp, useQuery, useStore } from "../../app/app.ts";
import { Card, PageHead } from "../../components/card.tsx";
import { Button, Form, Notice, Question } from "../../components/controls.tsx";
import { Snippets } from "../../components/copy-button.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { AnswerCard } from "./answer-card.tsx";
import { MethodFields, TargetFields } from "./call-fields.tsx";
import { CompareCard } from "./compare-card.tsx";
import { METHOD_FORMS, needsConfirmation, paramsOfForm, paramsOfJson } from "./method-forms.ts";
import { pathOf, sendCall, type TestAnswer, type TestCall } from "./rpc-call.ts";

/** The page. */
export function TesterPage(): JSX.Element {
  const document = useAgentDocument();
  return (
    <>
      <PageHead
        title="Tester"
        lead="Sends a call as a program would, and shows how it was routed."
      />
      <Loaded resource={document}>{(data) => <Tester instance={data} />}</Loaded>
    </>
  );
}

/** How parameters are written. */
export type ParamsForm = "fields" | "json";

function Tester({ instance }: { readonly instance: AgentDocument }): JSX.Element {
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
        <Form submit={() => (needsConfirmation(name) ? setConfirming(true) : send())}>
          <TargetFields {...{ instance, target, keyText: key, setKey }} />
          <MethodFields
            {...{ name, fields: fields ?? [], filled, form, json, setTexts, setJson, setAsJson }}
            choose={(next) => {
              setMethod(next);
              setTexts([]);
            }}
          />
          <Notice tone="bad">{read.kind === "wrong" ? read.why : ""}</Notice>
          <p>
            <Button look="primary" disabled={busy || read.kind === "wrong"}>
              {busy ? "Waiting for the answer" : "Send"}
            </Button>
          </p>
        </Form>
      </Card>
      {answer === null ? null : <AnswerCard answer={answer} />}
      <ForOperator>
        <CompareCard call={call} />
      </ForOperator>
      <Programs call={call} />
      {isConfirming ? (
        <Question
          title="This changes the chain"
          verb="Send the transaction"
          danger
          action={{ busy, failure: null }}
          submit={send}
          close={() => setConfirming(false)}
        >
          <p>
            <span class="mono">{name}</span> hands a signed transaction to the chain. It cannot be
            taken back, and it may cost money.
          </p>
        </Question>
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

function useTarget({ chains, strategies }: AgentDocument): Target {
  const { router } = useApp();
  const { query } = useStore(router.place);
  return {
    value: {
      chain: query["chain"] || (chains[0]?.name ?? ""),
      strategy: query["strategy"] || (strategies[0] ?? "load-balanced"),
      profile: query["profile"] || null,
      provider: query["provider"] || null,
    },
    set: (field, value) => router.setQuery({ [field]: value }),
  };
}
