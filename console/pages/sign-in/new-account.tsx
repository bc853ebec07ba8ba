// Creates an account with its first key: both secrets are shown once, and the management token
// signs in to it.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useAction } from "../../api/resource.ts";
import { useAgentDocument, useApp } from "../../app/app.ts";
import { Card } from "../../components/card.tsx";
import { ActionNotice, Button, Field, Form } from "../../components/controls.tsx";
import { Snippet, Snippets } from "../../components/copy-button.tsx";

type Made = AnswerOf<"POST /api/v1/keys">;

interface NewAccountProps {
  /** Signs in to the account, and goes to a page of it. */
  readonly signIn: (token: string, page: string) => void;
}

/** The card. */
export function NewAccount({ signIn }: NewAccountProps) {
  const { client } = useApp();
  const [name, setName] = useState("");
  const [made, setMade] = useState<Made | null>(null);
  const action = useAction();
  const create = (): void =>
    action.run(client.call("POST /api/v1/keys", { body: name === "" ? {} : { name } }), setMade);
  if (made !== null) return <Secrets made={made} signIn={signIn} />;
  return (
    <Card title="No account yet?" lead="An account has keys, and one balance that they spend.">
      <Form submit={create} class="stack sign-in">
        <Field
          label="Name of its first key"
          maxLength={100}
          placeholder="For you, to tell keys apart"
          value={name}
          change={setName}
        />
        <ActionNotice failure={action.failure} />
        <p>
          <Button look="primary" disabled={action.busy}>
            Create an account
          </Button>
        </p>
      </Form>
    </Card>
  );
}

function Secrets({ made, signIn }: NewAccountProps & { readonly made: Made }) {
  const { management_token: token = "" } = made;
  const terms = useAgentDocument();
  const call = { url: made.rpc_url, method: "eth_blockNumber", params: [] };
  return (
    <Card title="The account is ready" lead={<span class="mono">{made.account_id}</span>}>
      <div class="stack">
        <p class="notice warn">
          Both secrets are shown only now. Without the token nobody can manage the account.
        </p>
        <h3>Management token, which signs in here</h3>
        <Snippet text={token} what="the management token" />
        <h3>First key, which programs call with</h3>
        <Snippet text={made.key} what="the key" />
        <Snippets call={call} />
        <p class="page-actions">
          <Button look="primary" press={() => signIn(token, "/account")}>
            I have saved both
          </Button>
          {terms.data?.payments.enabled === true && (
            <Button press={() => signIn(token, "/account/payments")}>
              I have saved both: pay by wallet
            </Button>
          )}
        </p>
      </div>
    </Card>
  );
}
