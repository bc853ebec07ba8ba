// The filters of the feed. Each stands in the address under the name that the API gives it.
import { useEffect, useState } from "preact/hooks";
import type { RequestOf } from "../../api/contract-types.ts";
import { useApp, useQuery } from "../../app/app.ts";
import { Button, Check, Field, Select } from "../../components/controls.tsx";
import { OUTCOMES } from "../../health/outcomes.ts";

const OPTIONS = [
  { value: "", label: "Any outcome" },
  ...Object.entries(OUTCOMES).map(([value, { word }]) => ({ value, label: word })),
];
const TEXTS = ["profile", "chain", "method", "provider", "key", "min_ms"];
const NAMES = [...TEXTS, "outcome", "failovers"];
/** Text is applied when typing stops for this long. */
const TYPING_MS = 400;

/** Filters as the API takes them. */
type CallFilters = Omit<NonNullable<RequestOf<"GET /api/v1/operator/decisions">["query"]>, "limit">;

/** The filters in the query of an address; the service refuses values that it does not know. */
export function filtersIn(query: Readonly<Record<string, string>>): CallFilters {
  return Object.fromEntries(NAMES.flatMap((name) => (query[name] ? [[name, query[name]]] : [])));
}

/** The row of filters. */
export function Filters() {
  const { router } = useApp();
  const [outcome, setOutcome] = useQuery("outcome");
  const [failovers, setFailovers] = useQuery("failovers");
  const clear = (): void =>
    router.setQuery(Object.fromEntries(NAMES.map((name) => [name, null] as const)));
  return (
    <div class="filters card-body">
      <TextFilter name="chain" label="Chain" />
      <TextFilter name="profile" label="Profile" />
      <TextFilter name="method" label="Method" />
      <TextFilter name="provider" label="Provider" />
      <TextFilter name="key" label="Key id" />
      <TextFilter name="min_ms" label="Slower than, ms" pattern={/^\d{0,7}$/} />
      <Select label="Outcome" options={OPTIONS} value={outcome} choose={setOutcome} />
      <Check
        label="Failovers only"
        checked={failovers === "true"}
        change={(checked) => setFailovers(checked ? "true" : "")}
      />
      <Button look="plain" press={clear}>
        Clear
      </Button>
    </div>
  );
}

interface TextFilterProps {
  readonly name: string;
  readonly label: string;
  /** Other texts are not applied. */
  readonly pattern?: RegExp;
}

function TextFilter({ name, label, pattern }: TextFilterProps) {
  const [value, setValue] = useQuery(name);
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value || pattern?.test(text) === false) return;
    const timer = setTimeout(() => setValue(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, value, pattern, setValue]);
  return <Field label={label} value={text} change={setText} />;
}
