// The filters of calls: each stands in the address under the name that the API gives it, and in a
// row of chips, where it can be removed.
import { useId, useMemo, useState } from "preact/hooks";
import type { RequestOf } from "../../api/contract-types.ts";
import type { CallEvent } from "../../api/use-feed.ts";
import { useApp, useCall, useStore } from "../../app/app.ts";
import { Button, Form } from "../../components/controls.tsx";
import { Icon } from "../../components/icons.tsx";
import { Name } from "../../components/inline.tsx";
import {
  FILTERS,
  type FilterName,
  filterText,
  type KeyNames,
  parseFilter,
  type Suggestion,
  suggestionsOf,
} from "./suggestions.ts";

const NAMES = Object.keys(FILTERS) as readonly FilterName[];
const MAX_CHARS = 200;

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
  const list = useId();
  const hint = useId();
  const suggested = () => suggestionsOf({ providers: nodes.data?.providers ?? [], keys, calls });
  const [known, setKnown] = useState<readonly Suggestion[]>([]);
  const options = useMemo(() => known.map(optionOf), [known]);
  const set = NAMES.flatMap((name) => (query[name] ? [{ name, value: query[name] }] : []));
  const add = (typed: string): void => {
    const filter = parseFilter(typed, suggested());
    setRefused(filter === null);
    setText(filter === null ? typed : "");
    if (filter !== null) router.setQuery({ [filter.name]: filter.value });
  };
  const type = (event: Event & { readonly currentTarget: HTMLInputElement }): void => {
    const { value } = event.currentTarget;
    setText(value);
    setRefused(false);
    // A suggestion that was chosen from the list.
    if (!(event instanceof InputEvent) || event.inputType === "insertReplacementText") add(value);
  };
  return (
    <div class="filters card-body">
      {set.map((filter) => {
        const words = filterText(filter, keys);
        return (
          <span key={filter.name} class="chip small">
            <Name text={words} />
            <Button
              look="icon plain"
              label={`Remove the filter ${words}`}
              press={() => router.setQuery({ [filter.name]: null })}
            >
              <Icon name="close" />
            </Button>
          </span>
        );
      })}
      <Form class="filters" submit={() => add(text)}>
        <input
          class="input"
          list={list}
          aria-label="Filter or request id"
          aria-invalid={isRefused}
          aria-describedby={isRefused ? hint : undefined}
          placeholder="chain: base, or a request id"
          autocomplete="off"
          spellcheck={false}
          maxLength={MAX_CHARS}
          value={text}
          onInput={type}
          onFocus={() => setKnown(suggested())}
        />
        <Button>Add filter</Button>
      </Form>
      <datalist id={list}>{options}</datalist>
      {isRefused ? (
        <span id={hint} class="small bad toned" role="alert">
          This is no filter. Write a name and a value: {NAMES.join(", ")}.
        </span>
      ) : null}
    </div>
  );
}

function optionOf({ name, value, label }: Suggestion) {
  return <option key={`${name} ${value}`} value={`${name}: ${value}`} label={label} />;
}
