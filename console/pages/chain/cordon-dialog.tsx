// Asks for a reason before a provider is cordoned.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useApp } from "../../app/app.ts";
import { Dialog } from "../../components/dialog.tsx";
import { failureText } from "../../components/page-state.tsx";
import type { ProviderName } from "./provider-actions.tsx";

interface CordonDialogProps {
  readonly name: ProviderName;
  readonly changed: () => void;
  readonly close: () => void;
}

const MAX_REASON = 200;

/** The dialog. */
export function CordonDialog({ name, changed, close }: CordonDialogProps): JSX.Element {
  const { client, toasts } = useApp();
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState("");
  const cordon = async (event: Event): Promise<void> => {
    event.preventDefault();
    const given = reason.trim();
    const body = given === "" ? name : { ...name, reason: given };
    const result = await client.call("POST /api/v1/operator/cordons", { body });
    if (result.kind === "failed") return setProblem(failureText(result.failure));
    toasts.show("good", `${name.provider} gets no more calls.`);
    changed();
    close();
  };
  return (
    <Dialog title={`Cordon ${name.provider}`} close={close}>
      <form class="stack" onSubmit={(event) => void cordon(event)}>
        <p>
          It gets no calls on {name.chain} in profile {name.profile} until it is uncordoned, also
          after a reload. Calls that are under way go on.
        </p>
        <label class="field">
          <span>Reason, for the record (optional)</span>
          <input
            class="input"
            maxLength={MAX_REASON}
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        {problem === "" ? null : (
          <p class="notice bad" role="alert">
            {problem}
          </p>
        )}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="button button-danger">
            Cordon
          </button>
        </div>
      </form>
    </Dialog>
  );
}
