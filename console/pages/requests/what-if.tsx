// The same decision under another strategy, or without a provider: computed by the service from
// the inputs that it recorded.
import type { JSX } from "preact";
import { useResource } from "../../api/resource.ts";
import { useApp, useQuery } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card } from "../../components/card.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { Candidates } from "./candidates.tsx";
import type { Decision } from "./decision-page.tsx";

/** The question and its answer. */
export function WhatIf({ decision }: { readonly decision: Decision }): JSX.Element {
  const { client } = useApp();
  const [chosen, setStrategy] = useQuery("strategy");
  const [without, setWithout] = useQuery("without");
  const { id, strategies } = decision;
  const strategy = strategies.find((each) => each === chosen) ?? decision.strategy;
  const query = { strategy, ...(without === "" ? {} : { without }) };
  const answer = useResource(`what-if ${id} ${strategy} ${without}`, 0, (signal) =>
    client.call("GET /api/v1/operator/decisions/{id}/what-if", { params: { id }, query }, signal),
  );
  return (
    <Card
      title="What if"
      lead="Computed from the inputs that were recorded with this call."
      actions={
        <>
          <Choice label="Strategy" value={strategy} choose={setStrategy}>
            {decision.strategies}
          </Choice>
          <Choice label="Without" value={without} choose={setWithout}>
            {["", ...decision.order]}
          </Choice>
        </>
      }
      flush
    >
      <Loaded resource={answer}>
        {({ candidates, same_first: isSame, random }) => (
          <>
            <p class="card-body">
              <Badge tone={isSame ? "idle" : "warn"}>
                {isSame ? "The same provider comes first" : "Another provider comes first"}
              </Badge>{" "}
              <span class="muted small">
                {random
                  ? "The order depends on chance; this one uses the random numbers of this call."
                  : ""}
              </span>
            </p>
            {candidates.length === 0 ? (
              <Empty title="No provider could be asked" />
            ) : (
              <Candidates candidates={candidates} />
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly choose: (value: string) => void;
  /** The options; "" = none of them. */
  readonly children: readonly string[];
}

function Choice({ label, value, choose, children: options }: ChoiceProps): JSX.Element {
  return (
    <label class="inline-field">
      <span>{label}</span>
      <select class="input" value={value} onChange={(event) => choose(event.currentTarget.value)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {option === "" ? "nobody left out" : option}
          </option>
        ))}
      </select>
    </label>
  );
}
