// Dialogs that create, change, rotate and delete a key.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { Failure, Result } from "../../api/client.ts";
import { useApp } from "../../app/app.ts";
import { Dialog } from "../../components/dialog.tsx";
import { failureText } from "../../components/page-state.tsx";
import type { Key, KeyDialog } from "./keys-page.tsx";

/** A key is another than before; what is shown next. */
type Changed = (next: KeyDialog) => void;

const NO_DIALOG: KeyDialog = { kind: "none" };

/** An action under way, and why the last one failed. */
function useAction(): {
  readonly busy: boolean;
  readonly failure: Failure | null;
  readonly run: <T>(request: Promise<Result<T>>, then: (body: T) => void) => void;
} {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  return {
    busy,
    failure,
    run(request, then) {
      setBusy(true);
      setFailure(null);
      void request.then((result) => {
        setBusy(false);
        if (result.kind === "ok") then(result.body);
        else setFailure(result.failure);
      });
    },
  };
}

interface FormProps {
  readonly submit: () => void;
  readonly close: () => void;
  readonly action: { readonly busy: boolean; readonly failure: Failure | null };
  readonly verb: string;
  readonly danger?: boolean;
  readonly children: ComponentChildren;
}

function Form({ submit, close, action, verb, danger = false, children }: FormProps): JSX.Element {
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {children}
      {action.failure === null ? null : (
        <p class="notice bad" role="alert">
          {failureText(action.failure)}
        </p>
      )}
      <div class="dialog-foot">
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
        <button
          type="submit"
          class={danger ? "button button-danger" : "button button-primary"}
          disabled={action.busy}
        >
          {verb}
        </button>
      </div>
    </form>
  );
}

interface EditProps {
  /** Null = a new key. */
  readonly keyShown: Key | null;
  readonly profiles: readonly string[];
  readonly changed: Changed;
  readonly close: () => void;
}

/** Creates a key, or changes its name and profiles. */
export function EditKey({ keyShown, profiles, changed, close }: EditProps): JSX.Element {
  const { client, toasts } = useApp();
  const action = useAction();
  const [name, setName] = useState(keyShown?.name ?? "");
  const [first, setFirst] = useState(keyShown?.default_profile ?? "");
  const [allowed, setAllowed] = useState<readonly string[]>(keyShown?.allowed_profiles ?? []);
  const submit = (): void => {
    const body = {
      ...(name === "" ? {} : { name }),
      default_profile: first === "" ? null : first,
      allowed_profiles: allowed.length === 0 ? null : [...allowed],
    };
    if (keyShown === null)
      return action.run(client.call("POST /api/v1/keys", { body }), (made) =>
        changed({ kind: "secret", secret: secretOf(name, made, null) }),
      );
    const change = client.call("PATCH /api/v1/keys/{id}", { params: { id: keyShown.id }, body });
    return action.run(change, () => {
      toasts.show("good", "The key was changed.");
      changed(NO_DIALOG);
    });
  };
  return (
    <Dialog title={keyShown === null ? "Create a key" : "Change a key"} close={close}>
      <Form {...{ submit, close, action }} verb={keyShown === null ? "Create" : "Save"}>
        <div class="field">
          <label for="key-name">Name</label>
          <input
            id="key-name"
            class="input"
            value={name}
            maxLength={100}
            placeholder="For you, to tell keys apart"
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
        <ProfileFields {...{ profiles, first, setFirst, allowed, setAllowed }} />
      </Form>
    </Dialog>
  );
}

interface ProfileFieldsProps {
  readonly profiles: readonly string[];
  readonly first: string;
  readonly setFirst: (slug: string) => void;
  readonly allowed: readonly string[];
  readonly setAllowed: (slugs: readonly string[]) => void;
}

function ProfileFields(props: ProfileFieldsProps): JSX.Element {
  const { profiles, first, setFirst, allowed, setAllowed } = props;
  return (
    <>
      <div class="field">
        <label for="key-profile">Profile of calls that name none</label>
        <select
          id="key-profile"
          class="input"
          value={first}
          onChange={(event) => setFirst(event.currentTarget.value)}
        >
          <option value="">premium, or the first allowed one</option>
          {profiles.map((slug) => (
            <option key={slug} value={slug}>
              {slug}
            </option>
          ))}
        </select>
      </div>
      <fieldset class="field">
        <legend class="muted small">Profiles that it may use; none chosen = all</legend>
        {profiles.map((slug) => (
          <label key={slug} class="check">
            <input
              type="checkbox"
              checked={allowed.includes(slug)}
              onChange={(event) =>
                setAllowed(
                  event.currentTarget.checked
                    ? [...allowed, slug]
                    : allowed.filter((other) => other !== slug),
                )
              }
            />
            {slug}
          </label>
        ))}
      </fieldset>
    </>
  );
}

const GRACES = [
  { seconds: 0, words: "At once" },
  { seconds: 3_600, words: "In an hour" },
  { seconds: 86_400, words: "In a day" },
] as const;
const USUAL_GRACE = 3_600;

interface KeyProps {
  readonly keyShown: Key;
  readonly changed: Changed;
  readonly close: () => void;
}

/** Replaces the secret of a key. */
export function RotateKey({ keyShown, changed, close }: KeyProps): JSX.Element {
  const { client } = useApp();
  const action = useAction();
  const [grace, setGrace] = useState<number>(USUAL_GRACE);
  const submit = (): void =>
    action.run(
      client.call("POST /api/v1/keys/{id}/rotate", {
        params: { id: keyShown.id },
        body: { grace_seconds: grace },
      }),
      (rotated) =>
        changed({
          kind: "secret",
          secret: secretOf(keyShown.name, rotated, rotated.previous_valid_until),
        }),
    );
  return (
    <Dialog title="Rotate a key" close={close}>
      <Form {...{ submit, close, action }} verb="Rotate">
        <p>
          <bdi>{keyShown.name}</bdi> <span class="mono">{keyShown.key_prefix}…</span> gets a new
          secret. Programs need it before the old one ends.
        </p>
        <div class="field">
          <label for="key-grace">The old secret ends</label>
          <select
            id="key-grace"
            class="input"
            value={String(grace)}
            onChange={(event) => setGrace(Number(event.currentTarget.value))}
          >
            {GRACES.map(({ seconds, words }) => (
              <option key={seconds} value={String(seconds)}>
                {words}
              </option>
            ))}
          </select>
        </div>
      </Form>
    </Dialog>
  );
}

/** Deletes a key after a question. */
export function DeleteKey({ keyShown, changed, close }: KeyProps): JSX.Element {
  const { client, toasts } = useApp();
  const action = useAction();
  const submit = (): void =>
    action.run(client.call("DELETE /api/v1/keys/{id}", { params: { id: keyShown.id } }), () => {
      toasts.show("good", "The key was deleted.");
      changed(NO_DIALOG);
    });
  return (
    <Dialog title="Delete a key" close={close}>
      <Form {...{ submit, close, action }} verb="Delete" danger>
        <p>
          <bdi>{keyShown.name}</bdi> <span class="mono">{keyShown.key_prefix}…</span> stops working
          at once, and its sockets are closed. This cannot be undone.
        </p>
      </Form>
    </Dialog>
  );
}

function secretOf(
  name: string,
  made: { readonly key: string; readonly rpc_url: string; readonly ws_url: string },
  previousUntil: string | null,
) {
  return { name, key: made.key, rpcUrl: made.rpc_url, wsUrl: made.ws_url, previousUntil };
}
