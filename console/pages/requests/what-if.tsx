// The same decision under another strategy, or without a provider: computed by the service from
// the inputs that it recorded.
import type { JSX } from "preact";
import { useCall, useQuery } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card } from "../../components/card.tsx";
import { named, Select } from "../../components/controls.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { Candidates } from "./candidates.tsx";
import type { Decision } from "./decision-page.tsx";

/** The question and its answer. */
export function WhatIf({ decision }: { readonly decision: Decision }): JSX.Element {
  const [chosen, setStrategy] = useQuery("strategy");
  const [without, setWithout] = useQuery("without");
  const { id, strategies } = decision;
  const strategy = strategies.find((each) => each === chosen) ?? decision.strategy;
  const query = { strategy, ...(without === "" ? {} : { without }) };
  const request = { params: { id }, query };
  const answer = useCall("GET /api/v1/operator/decisions/{id}/what-if", request);
  return (
    <Card
      title="What if"
      lead="Computed from the inputs that were recorded with this call."
      actions={
        <>
          <Select
            label="Strategy"
            name="before"
            value={strategy}
            options={named(strategies)}
            choose={setStrategy}
          />
          <Select
            label="Without"
            name="before"
            value={without}
            options={[{ value: "", label: "nobody left out" }, ...named(decision.order)]}
            choose={setWithout}
          />
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
