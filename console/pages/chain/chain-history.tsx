// A chain over time: graphs of its providers, and its incidents.

import { useCall, useQuery } from "../../app/app.ts";
import { named, Select } from "../../components/controls.tsx";
import { IncidentCard, useIncidents } from "../../components/incident-list.tsx";
import { ProviderGraphs } from "../../components/provider-graphs.tsx";
import { MAX_POINTS, RangePicker, useRange } from "../../components/range-picker.tsx";
import { pollMsOf } from "../../health/ranges.ts";

interface ChainHistoryProps {
  readonly profile: string;
  readonly chain: string;
}

/** The graphs of a chain. */
export function ChainHistory({ profile, chain }: ChainHistoryProps) {
  const [chosen, setChosen] = useQuery("provider");
  const range = useRange();
  const query = { ...range, profile, chain, points: MAX_POINTS };
  const history = useCall("GET /api/v1/history", { query }, pollMsOf(range));
  const { data } = history;
  const incidents = useIncidents({ profile, chain }, data).filter(
    ({ provider }) => chosen === "" || provider === null || provider === chosen,
  );
  const names = data?.series.flatMap(({ provider }) => provider ?? []) ?? [];
  return (
    <>
      <div class="page-head">
        <h2>Over time</h2>
        <div class="page-actions">
          <Select
            label="Provider"
            hidesName
            value={chosen}
            options={[{ value: "", label: "All providers" }, ...named([...new Set(names)])]}
            choose={setChosen}
          />
          <RangePicker history={data} />
        </div>
      </div>
      <ProviderGraphs resource={history} {...{ chosen, incidents }} />
      {data === null ? null : <IncidentCard incidents={incidents} />}
    </>
  );
}
