// The tester: one call by chain, method, strategy, pin and key; what came back and how it was
// routed; the same call as programs; and, for the operator, the same call to every provider.
import { useState } from "preact/hooks";
import type { AgentDocument } from "../../api/agent-document.ts";
import { SERVICE_URL } from "../../api/client.ts";
import { useAction } from "../../api/resource.ts";
import { ForOperator, useAgentDocument } from "../../app/app.ts";
import { Card, PageHead } from "../../components/card.tsx";
import { Button, Form, Notice, Question } from "../../components/controls.tsx";
import { Snippets } from "../../components/copy-button.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { AnswerCard } from "./answer-card.tsx";
import { MethodFields, TargetFields, useCallFields } from "./call-fields.tsx";
import { CompareCard } from "./compare-card.tsx";
import { needsConfirmation } from "./method-forms.ts";
import { pathOf, sendCall, type TestAnswer } from "./rpc-call.ts";

/** The page. */
export function TesterPage() {
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

function Tester({ instance }: { readonly instance: AgentDocument }) {
  const fields = useCallFields(instance);
  const { call, key, why } = fields;
  const { method, params } = call;
  const action = useAction();
  const [answer, setAnswer] = useState<TestAnswer | null>(null);
  const [isConfirming, setConfirming] = useState(false);
  const send = () => {
    setAnswer(null);
    return sendCall(call, key);
  };
  return (
    <>
      <Card title="Call">
        <Form
          submit={() =>
            needsConfirmation(method) ? setConfirming(true) : action.run(send(), setAnswer)
          }
        >
          <TargetFields {...{ instance, fields }} />
          <MethodFields fields={fields} />
          <Notice tone="bad">{why}</Notice>
          <p>
            <Button look="primary" disabled={action.busy || why !== ""}>
              {action.busy ? "Waiting for the answer" : "Send"}
            </Button>
          </p>
        </Form>
      </Card>
      {action.failure && (
        <Card title="Answer">
          <Empty title="No answer came">{action.failure.message}</Empty>
        </Card>
      )}
      {answer && !action.failure && <AnswerCard answer={answer} />}
      <ForOperator>
        <CompareCard {...{ call, why }} />
      </ForOperator>
      <Card
        title="The same call in a program"
        lead="A key is not part of it: send yours as a header"
      >
        <Snippets call={{ url: new URL(pathOf(call), SERVICE_URL).href, method, params }} />
      </Card>
      {isConfirming && (
        <Question
          title="This changes the chain"
          verb="Send the transaction"
          danger
          send={send}
          done={(came) => {
            setConfirming(false);
            setAnswer(came);
          }}
          close={() => setConfirming(false)}
        >
          <p>
            <span class="mono">{method}</span> hands a signed transaction to the chain. It cannot be
            taken back, and it may cost money.
          </p>
        </Question>
      )}
    </>
  );
}
