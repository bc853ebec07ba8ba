// The filters of the feed. Each stands in the address under the name that the API gives it.
import { useEffect, useState } from "preact/hooks";
import type { CallEvent } from "../../api/use-feed.ts";
import { useApp, useQuery } from "../../app/app.ts";
import { Button, Check, Field, Select } from "../../components/controls.tsx";

const OUTCOMES = [
  { value: "", label: "Any outcome" },
  { value: "result", label: "Result" },
  { value: "error", label: "Error of a provider" },
  { value: "fault", label: "Refused by the service" },
  { value: "cancelled", label: "Left by the caller" },
] as const;
const TEXTS = ["profile", "chain", "method", "provider", "key", "min_ms"] as const;
const NAMES = [...TEXTS, "outcome", "failovers"];
/** Text is applied when typing stops for this long. */
const TYPING_MS = 400;

/** Filters as the API takes them. */
export type CallFilters = Readonly<Partial<Record<(typeof TEXTS)[number], string>>> & {
  readonly outcome?: CallEvent["outcome"];
  readonly failovers?: "true";
};

/** The filters in the query of an address, without those that say nothing. */
export function filtersIn(query: Readonly<Record<string, string>>): CallFilters {
  const texts = Object.fromEntries(
    TEXTS.flatMap((name) => (query[name] ? [[name, query[name]] as const] : [])),
  );
  const outcome = OUTCOMES.find(({ value }) => value !== "" && value === query["outcome"])?.value;
  return {
    ...texts,
    ...(outcome === undefined || outcome === "" ? {} : { outcome }),
    ...(query["failovers"] === "true" ? { failovers: "true" } : {}),
  };
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
      <Select label="Outcome" options={OUTCOMES} value={outcome} choose={setOutcome} />
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
  return <Field label={label} class="filter-input" value={text} change={setText} />;
}
