// The fields of the tester for a method and its parameters: by name where the method has a form,
// else as JSON.
import type { JSX } from "preact";
import { METHOD_FORMS, type MethodField } from "./method-forms.ts";
import type { ParamsForm } from "./tester-page.tsx";

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
        <label class="check">
          <input
            type="checkbox"
            checked={form === "json"}
            disabled={!(name in METHOD_FORMS)}
            onChange={(event) => setAsJson(event.currentTarget.checked)}
          />
          Parameters as JSON
        </label>
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
      {fields.map((field, at) => {
        const id = `param-${at}`;
        return (
          <div key={`${name} ${field.name}`} class="field">
            <label for={id}>{field.name}</label>
            <input
              id={id}
              class="input mono"
              value={filled[at] ?? ""}
              maxLength={MAX_CHARS}
              spellcheck={false}
              autocomplete="off"
              onInput={(event) => setTexts(filled.with(at, event.currentTarget.value))}
            />
          </div>
        );
      })}
    </div>
  );
}
