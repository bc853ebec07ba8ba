// What the operator can do with a provider: test it, end a wait, cordon it and take it back, at one
// place or wherever it stands.

import { useState } from "preact/hooks";
import type { Result } from "../api/client.ts";
import type { AnswerOf } from "../api/contract-types.ts";
import { useAction } from "../api/resource.ts";
import { useApp } from "../app/app.ts";
import { queryText } from "../app/router.ts";
import { count, milliseconds, transportName } from "../format/text.ts";
import type { ProviderPlace } from "../health/states.ts";
import { ActionNotice, Button, Field, Question, Select, useSend } from "./controls.tsx";
import { Badge, Link } from "./inline.tsx";

interface TestResult {
  readonly chain: string;
  readonly result: AnswerOf<"POST /api/v1/operator/tests">["results"][number];
}

interface ActionsProps {
  /** Where it stands; one of them = that place alone is meant. */
  readonly places: readonly ProviderPlace[];
  readonly isEverywhere?: boolean;
  /** Reads the page again. */
  readonly changed: () => void;
}

/** Of several places so many are tested at once: the service allows ten tests a minute. */
const MAX_TESTS = 5;

/** The buttons. */
export function ProviderActions({ places, isEverywhere = false, changed }: ActionsProps) {
  const { client } = useApp();
  const send = useSend();
  const [results, setResults] = useState<readonly TestResult[] | null>(null);
  const { busy, failure, run } = useAction();
  const [first] = places;
  if (first === undefined) return null;
  const { profile, chain } = first;
  const provider = first.provider.id;
  const place = isEverywhere ? null : { profile, chain };
  const name = { ...place, provider };
  const isOpen = first.provider.transports.some((each) => each.circuit_breaker_state === "open");
  const testPlace = async ({ profile, chain }: ProviderPlace) => {
    const body = { profile, chain, provider };
    const tested = await client.call("POST /api/v1/operator/tests", { body });
    return tested.kind === "failed"
      ? tested
      : { ...tested, body: tested.body.results.map((result) => ({ chain, result })) };
  };
  const test = async (): Promise<Result<readonly TestResult[]>> => {
    const all = await Promise.all(places.slice(0, MAX_TESTS).map(testPlace));
    const body = all.flatMap((each) => (each.kind === "ok" ? each.body : []));
    return all.find(({ kind }) => kind === "failed") ?? { kind: "ok", body };
  };
  const endWait = (): Promise<void> =>
    send(
      client.call("POST /api/v1/operator/waits/end", { body: { profile, chain, provider } }),
      `The wait of ${provider} has ended: the next call is its trial.`,
    ).then(changed);
  const uncordon = (): Promise<void> =>
    send<unknown>(
      place === null
        ? client.call("DELETE /api/v1/operator/cordons/everywhere", { query: { provider } })
        : client.call("DELETE /api/v1/operator/cordons", { query: { ...place, provider } }),
      `${provider} gets calls again.`,
    ).then(changed);
  const cordoned = places.filter((each) => each.provider.cordon != null).length;
  return (
    <div class="page-actions">
      <Button look="small" disabled={busy} press={() => run(test(), setResults)}>
        {busy ? "Testing" : "Test now"}
      </Button>
      {isOpen && !isEverywhere ? (
        <Button look="small" press={endWait}>
          End the wait
        </Button>
      ) : null}
      {cordoned === places.length ? null : <CordonButton {...{ provider, place, changed }} />}
      {cordoned === 0 ? null : (
        <Button look="small" press={uncordon}>
          {isEverywhere ? "Uncordon everywhere" : "Uncordon"}
        </Button>
      )}
      <Link class="button small" to={`/requests${queryText(name)}`}>
        {isEverywhere ? "Latest calls" : "Requests"}
      </Link>
      <Link class="button small" to={`/errors${queryText({ "errors.find": provider })}`}>
        Errors
      </Link>
      <ActionNotice failure={failure} />
      {results && <TestResults results={results} />}
    </div>
  );
}

interface CordonProps {
  readonly provider: string;
  /** The only place that is meant, unless its reader says otherwise; null = wherever it stands. */
  readonly place: Pick<ProviderPlace, "profile" | "chain"> | null;
  readonly changed?: () => void;
}

/** Opens the dialog that takes a provider out of use. */
export function CordonButton(props: CordonProps) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button look="small danger" press={() => setAsking(true)}>
        {props.place === null ? "Cordon everywhere" : "Cordon"}
      </Button>
      {isAsking && <CordonDialog {...props} close={() => setAsking(false)} />}
    </>
  );
}

const MAX_REASON = 200;
const MINUTE_MS = 60_000;
const ENDS = [
  { value: "", label: "Until I end it" },
  { value: "15", label: "15 minutes" },
  { value: "60", label: "1 hour" },
  { value: "240", label: "4 hours" },
  { value: "1440", label: "1 day" },
];

/** Asks where, for how long and why a provider is cordoned. */
function CordonDialog({
  provider,
  place,
  changed,
  close,
}: CordonProps & { readonly close: () => void }) {
  const { client, nowMs } = useApp();
  const [reason, setReason] = useState("");
  const [minutes, setMinutes] = useState("");
  const [isHere, setHere] = useState(place !== null);
  const given = reason.trim();
  const send = (): Promise<Result<unknown>> => {
    const until = new Date(nowMs.get() + Number(minutes) * MINUTE_MS).toISOString();
    const terms = {
      ...(given === "" ? {} : { reason: given }),
      ...(minutes === "" ? {} : { until }),
    };
    if (place === null || !isHere)
      return client.call("POST /api/v1/operator/cordons/everywhere", {
        body: { provider, ...terms },
      });
    return client.call("POST /api/v1/operator/cordons", { body: { ...place, provider, ...terms } });
  };
  const everywhere = { value: "", label: "Every profile and chain" };
  const here = { value: "here", label: `${place?.chain} in profile ${place?.profile}` };
  return (
    <Question
      title={`Cordon ${provider}`}
      verb="Cordon"
      danger
      send={send}
      said={`${provider} gets no more calls.`}
      done={() => {
        changed?.();
        close();
      }}
      close={close}
    >
      <p>
        It is in maintenance: it gets no calls, also after a reload, and is not counted as a
        problem. Calls that are under way go on.
      </p>
      {place === null ? null : (
        <Select
          label="Where"
          options={[here, everywhere]}
          value={isHere ? "here" : ""}
          choose={(value) => setHere(value !== "")}
        />
      )}
      <Select label="How long" options={ENDS} value={minutes} choose={setMinutes} />
      <Field
        label="Reason, for the record (optional)"
        maxLength={MAX_REASON}
        value={reason}
        change={setReason}
      />
    </Question>
  );
}

function TestResults({ results }: { readonly results: readonly TestResult[] }) {
  return (
    <div class="wrap-anywhere small" role="status">
      {results.map(({ chain, result }) => (
        <p key={`${chain} ${result.transport}`}>
          <Badge tone={result.ok ? "good" : "bad"}>{result.ok ? "Answered" : "Failed"}</Badge>{" "}
          {chain}, {transportName(result.transport)}, {milliseconds(result.latency_ms)} ms
          {result.block_height === null ? "" : `, block ${count(result.block_height)}`}
          {result.error === null ? null : (
            <>
              : {result.error.category.replaceAll("_", " ")}, <bdi>{result.error.message}</bdi>
            </>
          )}
        </p>
      ))}
    </div>
  );
}
