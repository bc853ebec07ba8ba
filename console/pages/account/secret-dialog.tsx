// Shows the secret of a key, once, with addresses and programs that are ready to use.
import type { JSX } from "preact";
import { Snippet } from "../../components/copy-button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Time } from "../../components/time.tsx";
import { Snippets } from "../../snippets/snippet-card.tsx";

/** What is shown once. */
export interface ShownSecret {
  readonly name: string;
  readonly key: string;
  readonly rpcUrl: string;
  readonly wsUrl: string;
  /** Until when the secret before works; null = there was none. */
  readonly previousUntil: string | null;
}

interface SecretProps {
  readonly secret: ShownSecret;
  readonly close: () => void;
}

/** The dialog. */
export function SecretDialog({ secret, close }: SecretProps): JSX.Element {
  const { key, rpcUrl, wsUrl, previousUntil } = secret;
  const call = { url: rpcUrl, method: "eth_blockNumber", params: [] };
  return (
    <Dialog
      title={previousUntil === null ? "The key is ready" : "The new secret"}
      wide
      close={close}
    >
      <div class="stack">
        <p class="notice warn">
          The secret is shown only now. Store it where your programs read secrets: anybody who has
          it can spend the balance of the account.
        </p>
        <Named name="Secret" text={key} what="the secret" />
        <Named name="HTTP URL" text={rpcUrl} what="the HTTP URL" />
        <Named name="WebSocket URL" text={wsUrl} what="the WebSocket URL" />
        {previousUntil === null ? null : (
          <p class="muted small">
            The old secret ends <Time at={previousUntil} />.
          </p>
        )}
        <h3>First call</h3>
        <Snippets call={call} />
        <div class="dialog-foot">
          <button type="button" class="button button-primary" onClick={close}>
            I have saved it
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function Named(props: {
  readonly name: string;
  readonly text: string;
  readonly what: string;
}): JSX.Element {
  return (
    <div class="field">
      <span class="muted small">{props.name}</span>
      <Snippet text={props.text} what={props.what} />
    </div>
  );
}
