// The fields of the tester: where a call goes, its method, and its parameters by name where the
// method has a form, else as JSON. All but parameters and key stand in the address of the page.
import { useState } from "preact/hooks";
import type { AgentDocument } from "../../api/agent-document.ts";
import { useApp, useStore } from "../../app/app.ts";
import { Check, Field, named, Select } from "../../components/controls.tsx";
import { METHOD_FORMS, paramsOfForm, paramsOfJson } from "./method-forms.ts";
import type { TestCall } from "./rpc-call.ts";

/** What the fields hold, and the functions that change them. */
export function useCallFields({ chains, strategies }: AgentDocument) {
  const { router } = useApp();
  const { query } = useStore(router.place);
  const [texts, setTexts] = useState<readonly string[]>([]);
  const [json, setJson] = useState("[]");
  const [isJson, setIsJson] = useState(false);
  const [key, setKey] = useState("");
  // As it is typed: a field that changes the page only when it is left costs the click on "Send".
  const [typed, setTyped] = useState(query["method"] || "eth_blockNumber");
  const method = typed.trim();
  const form = METHOD_FORMS[method];
  const filled = form?.map(({ example }, at) => texts[at] ?? example) ?? [];
  const shown = isJson ? undefined : form;
  const read = shown === undefined ? paramsOfJson(json) : paramsOfForm(shown, filled);
  const call: TestCall = {
    chain: query["chain"] || (chains[0]?.name ?? ""),
    strategy: query["strategy"] || (strategies[0] ?? "load-balanced"),
    profile: query["profile"] || null,
    provider: query["provider"] || null,
    method,
    params: read.params,
  };
  const set = (name: keyof TestCall) => (value: string) => router.setQuery({ [name]: value });
  const setMethod = (text: string): void => {
    setTyped(text);
    set("method")(text.trim());
    if (text.trim() !== method) setTexts([]);
  };
  const why = method === "" ? "Name a method." : read.why;
  return {
    ...{ call, typed, why, key, set, setKey, setMethod },
    ...{ shown, filled, json, setTexts, setJson, setIsJson },
  };
}

interface CallFieldsProps {
  readonly fields: ReturnType<typeof useCallFields>;
}

/** Chain, profile, strategy, pin and key. */
export function TargetFields(props: CallFieldsProps & { readonly instance: AgentDocument }) {
  const { chains, profiles, strategies, features } = props.instance;
  const { call, key, set, setKey } = props.fields;
  const slugs = named(profiles.map(({ slug }) => slug));
  return (
    <div class="filters">
      <Select
        label="Chain"
        value={call.chain}
        options={chains.map(({ name, title }) => ({ value: name, label: title }))}
        choose={set("chain")}
      />
      <Select
        label="Profile"
        value={call.profile ?? ""}
        options={[{ value: "", label: "Default" }, ...slugs]}
        choose={set("profile")}
      />
      <Select
        label="Strategy"
        value={call.strategy}
        options={named(strategies)}
        choose={set("strategy")}
      />
      <Field
        label="Pin to a provider"
        value={call.provider ?? ""}
        placeholder="None"
        maxLength={100}
        change={set("provider")}
      />
      <Field
        label={`Key${features.keyless_rpc ? ", if any" : ""}`}
        type="password"
        value={key}
        placeholder="svc_ak_…"
        maxLength={512}
        title="Kept in memory while this page is open, and nowhere else"
        change={(text) => setKey(text.trim())}
      />
    </div>
  );
}

const MAX_CHARS = 200_000;

/** Method and parameters. */
export function MethodFields({ fields }: CallFieldsProps) {
  const { call, typed, shown, json, setMethod, setIsJson, setJson } = fields;
  return (
    <>
      <div class="filters">
        <div class="field">
          <label for="method">Method</label>
          <input
            id="method"
            class="input mono"
            list="methods"
            value={typed}
            maxLength={100}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => setMethod(event.currentTarget.value)}
          />
          <datalist id="methods">
            {Object.keys(METHOD_FORMS).map((method) => (
              <option key={method} value={method} />
            ))}
          </datalist>
        </div>
        <Check
          label="Parameters as JSON"
          checked={shown === undefined}
          disabled={!(call.method in METHOD_FORMS)}
          change={setIsJson}
        />
      </div>
      {shown === undefined ? (
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
        <NamedFields fields={fields} />
      )}
    </>
  );
}

function NamedFields({ fields }: CallFieldsProps) {
  const { call, shown = [], filled, setTexts } = fields;
  if (shown.length === 0) return <p class="muted small">{call.method} takes no parameters.</p>;
  return (
    <div class="stack">
      {shown.map(({ name }, at) => (
        <Field
          key={`${call.method} ${name}`}
          label={name}
          class="mono"
          value={filled[at] ?? ""}
          maxLength={MAX_CHARS}
          change={(text) => setTexts(filled.with(at, text))}
        />
      ))}
    </div>
  );
}
