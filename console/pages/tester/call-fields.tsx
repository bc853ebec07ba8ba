// The fields of the tester: where a call goes, its method, and its parameters by name where the
// method has a form, else as JSON.
import type { JSX } from "preact";
import type { AgentDocument } from "../../api/agent-document.ts";
import { Check, Field, named, Select } from "../../components/controls.tsx";
import { METHOD_FORMS, type MethodField } from "./method-forms.ts";
import type { ParamsForm, Target } from "./tester-page.tsx";

interface TargetFieldsProps {
  readonly instance: AgentDocument;
  readonly target: Target;
  readonly keyText: string;
  readonly setKey: (text: string) => void;
}

/** Chain, profile, strategy, pin and key. */
export function TargetFields(props: TargetFieldsProps): JSX.Element {
  const { instance, target, keyText, setKey } = props;
  const { value, set } = target;
  return (
    <div class="filters">
      <Select
        label="Chain"
        value={value.chain}
        options={instance.chains.map(({ name, title }) => ({ value: name, label: title }))}
        choose={(text) => set("chain", text)}
      />
      <Select
        label="Profile"
        value={value.profile ?? ""}
        options={[
          { value: "", label: "The usual one" },
          ...named(instance.profiles.map(({ slug }) => slug)),
        ]}
        choose={(text) => set("profile", text)}
      />
      <Select
        label="Strategy"
        value={value.strategy}
        options={named(instance.strategies)}
        choose={(text) => set("strategy", text)}
      />
      <Field
        label="Pin to a provider"
        value={value.provider ?? ""}
        placeholder="None"
        maxLength={100}
        change={(text) => set("provider", text)}
      />
      <Field
        label={`Key${instance.features.keyless_rpc ? ", if any" : ""}`}
        type="password"
        value={keyText}
        placeholder="svc_ak_…"
        maxLength={512}
        title="Kept in memory while this page is open, and nowhere else"
        change={(text) => setKey(text.trim())}
      />
    </div>
  );
}

interface MethodFieldsProps {
  readonly name: string;
  readonly choose: (method: string) => void;
  readonly fields: readonly MethodField[];
  readonly filled: readonly string[];
  readonly setTexts: (texts: readonly string[]) => void;
  readonly form: ParamsForm;
  readonly setAsJson: (asJson: boolean) => void;
  readonly json: string;
  readonly setJson: (text: string) => void;
}

const MAX_CHARS = 200_000;

/** Method and parameters. */
export function MethodFields(props: MethodFieldsProps): JSX.Element {
  const { name, choose, form, setAsJson, json, setJson } = props;
  return (
    <>
      <div class="filters">
        <div class="field">
          <label for="method">Method</label>
          <input
            id="method"
            class="input mono"
            list="methods"
            value={name}
            maxLength={100}
            spellcheck={false}
            autocomplete="off"
            onChange={(event) => choose(event.currentTarget.value.trim())}
          />
          <datalist id="methods">
            {Object.keys(METHOD_FORMS).map((method) => (
              <option key={method} value={method} />
            ))}
          </datalist>
        </div>
        <Check
          label="Parameters as JSON"
          checked={form === "json"}
          disabled={!(name in METHOD_FORMS)}
          change={setAsJson}
        />
      </div>
      {form === "json" ? (
        <div class="field">
          <label for="params">Parameters</label>
          <textarea
            id="params"
            class="input"
            rows={5}
            value={json}
            maxLength={MAX_CHARS}
            spellcheck={false}
            onInput={(event) => setJson(event.currentTarget.value)}
          />
        </div>
      ) : (
        <NamedFields {...props} />
      )}
    </>
  );
}

function NamedFields({ name, fields, filled, setTexts }: MethodFieldsProps): JSX.Element {
  if (fields.length === 0) return <p class="muted small">{name} takes no parameters.</p>;
  return (
    <div class="stack">
      {fields.map((field, at) => (
        <Field
          key={`${name} ${field.name}`}
          label={field.name}
          class="mono"
          value={filled[at] ?? ""}
          maxLength={MAX_CHARS}
          change={(text) => setTexts(filled.with(at, text))}
        />
      ))}
    </div>
  );
}
