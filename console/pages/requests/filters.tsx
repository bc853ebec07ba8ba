// The filters of calls: each stands in the address under the name that the API gives it, and in a
// row of chips, where it can be removed.
import { useId, useMemo, useState } from "preact/hooks";
import type { RequestOf } from "../../api/contract-types.ts";
import type { CallEvent } from "../../api/use-feed.ts";
import { useApp, useCall, useStore } from "../../app/app.ts";
import { Button, Form } from "../../components/controls.tsx";
import { Icon } from "../../components/icons.tsx";
import { Name } from "../../components/inline.tsx";
import type { KeyNames } from "../../components/key-names.ts";
import {
  type CallFilter,
  filterOf,
  filterText,
  NAMES,
  parseFilter,
  suggestionsOf,
} from "./suggestions.ts";

/** Filters as the API takes them. */
type CallFilters = Omit<NonNullable<RequestOf<"GET /api/v1/operator/decisions">["query"]>, "limit">;

/** The filters in the query of an address; the service refuses values that it does not know. */
export function filtersIn(query: Readonly<Record<string, string>>): CallFilters {
  return Object.fromEntries(NAMES.flatMap((name) => (query[name] ? [[name, query[name]]] : [])));
}

interface FiltersProps {
  readonly keys: KeyNames;
  /** Those on show: what occurs in them is suggested. */
  readonly calls: readonly CallEvent[];
}

/** The filters that are set, and one more. */
export function Filters({ keys, calls }: FiltersProps) {
  const { router } = useApp();
  const { query } = useStore(router.place);
  const nodes = useCall("GET /api/v1/operator/nodes", {});
  const [text, setText] = useState("");
  const [isRefused, setRefused] = useState(false);
  const [known, setKnown] = useState<readonly CallFilter[]>([]);
  const options = useMemo(() => known.map(optionOf), [known]);
  const id = useId();
  const suggested = () => suggestionsOf({ providers: nodes.data?.providers ?? [], keys, calls });
  const add = (typed: string): void => {
    const filter = parseFilter(typed, suggested());
    setRefused(filter === null);
    setText(filter === null ? typed : "");
    if (filter !== null) router.setQuery({ [filter.name]: filter.value });
  };
  return (
    <div class="filters card-body">
      {NAMES.filter((name) => query[name]).map((name) => (
        <Chip
          key={name}
          words={filterText(filterOf(name, query[name] ?? "", keys))}
          remove={() => router.setQuery({ [name]: null })}
        />
      ))}
      <Form class="range" submit={() => add(text)}>
        <input
          class="input narrow"
          list={id}
          aria-label="Filter or request id"
          aria-invalid={isRefused}
          placeholder="chain: base, or req-…"
          autocomplete="off"
          spellcheck={false}
          maxLength={200}
          value={text}
          onFocus={() => setKnown(suggested())}
          onInput={({ currentTarget: { value }, inputType }) => {
            setText(value);
            setRefused(false);
            // A suggestion was chosen.
            if (inputType === undefined || inputType === "insertReplacementText") add(value);
          }}
        />
        <Button>Add filter</Button>
      </Form>
      <datalist id={id}>{options}</datalist>
      {isRefused ? (
        <span class="small bad toned" role="alert">
          This is no filter. Write a name and a value: {NAMES.join(", ")}.
        </span>
      ) : null}
    </div>
  );
}

function Chip({ words, remove }: { readonly words: string; readonly remove: () => void }) {
  return (
    <span class="badge">
      <Name text={words} />
      <Button look="icon plain" label={`Remove the filter ${words}`} press={remove}>
        <Icon name="close" />
      </Button>
    </span>
  );
}

function optionOf({ name, value, label }: CallFilter) {
  return <option key={`${name} ${value}`} value={`${name}: ${value}`} label={label || undefined} />;
}
