// What operators gave to accounts: the lines that the service wrote about it.

import type { AnswerOf } from "../../api/contract-types.ts";
import type { Resource } from "../../api/resource.ts";
import { ACTION_COLUMNS } from "../../components/actions-card.tsx";
import { TableCard } from "../../components/table.tsx";

type Actions = AnswerOf<"GET /api/v1/operator/actions">;

/** How many of the latest actions are looked through. */
export const LOOKED_THROUGH = 100;
const GIVEN = ["creditAccount", "grantCustomAccess"];

/** The card. */
export function MoneyActionsCard({ actions }: { readonly actions: Resource<Actions> }) {
  return (
    <TableCard
      title="Given by operators"
      lead={`Credit and Custom days among the latest ${LOOKED_THROUGH} actions: who, when and why`}
      resource={actions}
      name="given"
      columns={ACTION_COLUMNS}
      rows={(actions.data?.actions ?? []).filter(({ action }) => GIVEN.includes(action))}
      keyOf={({ id }) => id}
      pageRows={10}
      empty="Nothing was given"
    />
  );
}
