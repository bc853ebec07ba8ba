// Dialogs that create, change, rotate and delete a key, and the one that shows its secret once.
import { useState } from "preact/hooks";
import type { Result } from "../../api/client.ts";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useApp } from "../../app/app.ts";
import {
  Button,
  Check,
  Dialog,
  Field,
  named,
  Question,
  Select,
} from "../../components/controls.tsx";
import { Snippet, Snippets } from "../../components/copy-button.tsx";
import { Name, Time } from "../../components/inline.tsx";

/** A key as the API lists it. */
export type Key = AnswerOf<"GET /api/v1/keys">["keys"][number];

/** What is shown once. */
type ShownSecret = Pick<AnswerOf<"POST /api/v1/keys/{id}/rotate">, "key" | "rpc_url" | "ws_url"> & {
  /** Until when the secret before works; absent = there was none. */
  readonly previous_valid_until?: string | null;
};

/** Which dialog is open. */
export type KeyDialog =
  | { readonly kind: "none" }
  | { readonly kind: "create" }
  | { readonly kind: "edit" | "rotate" | "delete"; readonly key: Key }
  | { readonly kind: "secret"; readonly secret: ShownSecret };

const NO_DIALOG: KeyDialog = { kind: "none" };

interface OpenDialogProps {
  readonly dialog: KeyDialog;
  /** A key is another than before; what is shown next. */
  readonly changed: (next: KeyDialog) => void;
  readonly close: () => void;
  readonly profiles: readonly string[];
}

/** The dialog that is open. */
export function OpenDialog(props: OpenDialogProps) {
  const { dialog, close } = props;
  switch (dialog.kind) {
    case "none":
      return null;
    case "create":
      return <EditKey {...props} keyShown={null} />;
    case "edit":
      return <EditKey {...props} keyShown={dialog.key} />;
    case "rotate":
      return <RotateKey {...props} keyShown={dialog.key} />;
    case "delete":
      return <DeleteKey {...props} keyShown={dialog.key} />;
    case "secret":
      return <SecretDialog secret={dialog.secret} close={close} />;
  }
}

interface EditProps extends OpenDialogProps {
  /** Null = a new key. */
  readonly keyShown: Key | null;
}

/** Creates a key, or changes its name and profiles. */
function EditKey({ keyShown, profiles, changed, close }: EditProps) {
  const { client } = useApp();
  const [name, setName] = useState(keyShown?.name ?? "");
  const [first, setFirst] = useState(keyShown?.default_profile ?? "");
  const [allowed, setAllowed] = useState<readonly string[]>(keyShown?.allowed_profiles ?? []);
  const body = {
    ...(name === "" ? {} : { name }),
    default_profile: first === "" ? null : first,
    allowed_profiles: allowed.length === 0 ? null : [...allowed],
  };
  const send = (): Promise<Result<Key | ShownSecret>> =>
    keyShown === null
      ? client.call("POST /api/v1/keys", { body })
      : client.call("PATCH /api/v1/keys/{id}", { params: { id: keyShown.id }, body });
  const texts =
    keyShown === null
      ? { title: "Create a key", verb: "Create" }
      : { title: "Change a key", verb: "Save", said: "The key was changed." };
  return (
    <Question
      {...{ ...texts, send, close }}
      done={(key) => changed("rpc_url" in key ? { kind: "secret", secret: key } : NO_DIALOG)}
    >
      <Field
        label="Name"
        value={name}
        maxLength={100}
        placeholder="For you, to tell keys apart"
        change={setName}
      />
      <Select
        label="Profile of calls that name none"
        value={first}
        options={[{ value: "", label: "premium, or the first allowed one" }, ...named(profiles)]}
        choose={setFirst}
      />
      <fieldset class="field">
        <legend class="muted small">Profiles that it may use; none chosen = all</legend>
        {profiles.map((slug) => (
          <Check
            key={slug}
            label={slug}
            checked={allowed.includes(slug)}
            change={(checked) =>
              setAllowed(checked ? [...allowed, slug] : allowed.filter((other) => other !== slug))
            }
          />
        ))}
      </fieldset>
    </Question>
  );
}

const GRACES = [
  { value: "0", label: "At once" },
  { value: "3600", label: "In an hour" },
  { value: "86400", label: "In a day" },
];

interface KeyProps extends OpenDialogProps {
  readonly keyShown: Key;
}

/** Replaces the secret of a key. */
function RotateKey({ keyShown, changed, close }: KeyProps) {
  const { client } = useApp();
  const [grace, setGrace] = useState("3600");
  const request = { params: { id: keyShown.id }, body: { grace_seconds: Number(grace) } };
  return (
    <Question
      title="Rotate a key"
      verb="Rotate"
      send={() => client.call("POST /api/v1/keys/{id}/rotate", request)}
      done={(secret) => changed({ kind: "secret", secret })}
      close={close}
    >
      <p>
        <Name text={keyShown.name} /> <span class="mono">{keyShown.key_prefix}…</span> gets a new
        secret. Programs need it before the old one ends.
      </p>
      <Select label="The old secret ends" options={GRACES} value={grace} choose={setGrace} />
    </Question>
  );
}

/** Deletes a key after a question. */
function DeleteKey({ keyShown, changed, close }: KeyProps) {
  const { client } = useApp();
  return (
    <Question
      title="Delete a key"
      verb="Delete"
      danger
      send={() => client.call("DELETE /api/v1/keys/{id}", { params: { id: keyShown.id } })}
      said="The key was deleted."
      done={() => changed(NO_DIALOG)}
      close={close}
    >
      <p>
        <Name text={keyShown.name} /> <span class="mono">{keyShown.key_prefix}…</span> stops working
        at once, and its sockets are closed. This cannot be undone.
      </p>
    </Question>
  );
}

interface SecretProps {
  readonly secret: ShownSecret;
  readonly close: () => void;
}

/** The secret of a key with addresses and programs that are ready to use. */
function SecretDialog({ secret, close }: SecretProps) {
  const { key, rpc_url: rpcUrl, ws_url: wsUrl, previous_valid_until: until = null } = secret;
  const call = { url: rpcUrl, method: "eth_blockNumber", params: [] };
  return (
    <Dialog title={until === null ? "The key is ready" : "The new secret"} close={close}>
      <div class="stack">
        <p class="notice warn">
          The secret is shown only now. Store it where your programs read secrets: anybody who has
          it can spend the balance of the account.
        </p>
        <Named name="Secret" text={key} what="the secret" />
        <Named name="HTTP URL" text={rpcUrl} what="the HTTP URL" />
        <Named name="WebSocket URL" text={wsUrl} what="the WebSocket URL" />
        {until === null ? null : (
          <p class="muted small">
            The old secret ends <Time at={until} />.
          </p>
        )}
        <h3>First call</h3>
        <Snippets call={call} />
        <Saved close={close} />
      </div>
    </Dialog>
  );
}

/** Closes a dialog that shows a secret. */
export function Saved({ close }: Pick<SecretProps, "close">) {
  return (
    <div class="dialog-foot">
      <Button look="primary" press={close}>
        I have saved it
      </Button>
    </div>
  );
}

interface NamedProps {
  readonly name: string;
  readonly text: string;
  readonly what: string;
}

function Named({ name, text, what }: NamedProps) {
  return (
    <div class="field">
      <span class="muted small">{name}</span>
      <Snippet text={text} what={what} />
    </div>
  );
}
