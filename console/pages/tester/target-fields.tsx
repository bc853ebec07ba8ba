// The fields of the tester that say where a call goes: chain, profile, strategy, pin, key.
import type { JSX } from "preact";
import type { Instance } from "./instance.ts";
import type { Target } from "./tester-page.tsx";

interface TargetFieldsProps {
  readonly instance: Instance;
  readonly target: Target;
  readonly keyText: string;
  readonly setKey: (text: string) => void;
}

/** The fields, in a row that wraps. */
export function TargetFields({
  instance,
  target,
  keyText,
  setKey,
}: TargetFieldsProps): JSX.Element {
  const { value, set } = target;
  return (
    <div class="filters">
      <Select
        id="chain"
        label="Chain"
        value={value.chain}
        options={instance.chains.map(({ name, title }) => [name, title])}
        choose={(text) => set("chain", text)}
      />
      <Select
        id="profile"
        label="Profile"
        value={value.profile ?? ""}
        options={[["", "The usual one"], ...instance.profiles.map((slug) => [slug, slug] as const)]}
        choose={(text) => set("profile", text)}
      />
      <Select
        id="strategy"
        label="Strategy"
        value={value.strategy}
        options={instance.strategies.map((name) => [name, name])}
        choose={(text) => set("strategy", text)}
      />
      <div class="field">
        <label for="pin">Pin to a provider</label>
        <input
          id="pin"
          class="input"
          value={value.provider ?? ""}
          placeholder="None"
          maxLength={100}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => set("provider", event.currentTarget.value)}
        />
      </div>
      <div class="field">
        <label for="rpc-key">Key{instance.keyless ? ", if any" : ""}</label>
        <input
          id="rpc-key"
          class="input"
          type="password"
          value={keyText}
          placeholder="svc_ak_…"
          maxLength={512}
          autocomplete="off"
          spellcheck={false}
          title="Kept in memory while this page is open, and nowhere else"
          onInput={(event) => setKey(event.currentTarget.value.trim())}
        />
      </div>
    </div>
  );
}

interface SelectProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, label: string])[];
  readonly choose: (value: string) => void;
}

function Select({ id, label, value, options, choose }: SelectProps): JSX.Element {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        class="input"
        value={value}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {options.map(([option, words]) => (
          <option key={option} value={option}>
            {words}
          </option>
        ))}
      </select>
    </div>
  );
}
