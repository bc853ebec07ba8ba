// What the operator can do with a provider: test it, end a wait, cordon it and take it back.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useAction } from "../../api/resource.ts";
import { useApp } from "../../app/app.ts";
import { queryText } from "../../app/router.ts";
import { ActionNotice, Button, Field, Question, useSend } from "../../components/controls.tsx";
import { Badge, Link } from "../../components/inline.tsx";
import { count, milliseconds, transportName } from "../../format/text.ts";
import type { ProviderMetrics } from "../../health/states.ts";

/** Which provider it is about. */
interface ProviderName {
  readonly profile: string;
  readonly chain: string;
  readonly provider: string;
}

type TestResult = AnswerOf<"POST /api/v1/operator/tests">["results"][number];

interface ActionsProps {
  readonly name: ProviderName;
  readonly provider: ProviderMetrics;
  /** Reads the page again. */
  readonly changed: () => void;
}

/** The buttons. */
export function ProviderActions({ name, provider, changed }: ActionsProps) {
  const { client } = useApp();
  const send = useSend();
  const [results, setResults] = useState<readonly TestResult[] | null>(null);
  const { busy, failure, run } = useAction();
  const [isAsking, setAsking] = useState(false);
  const isOpen = provider.transports.some((each) => each.circuit_breaker_state === "open");
  const test = (): void =>
    run(client.call("POST /api/v1/operator/tests", { body: name }), (body) =>
      setResults(body.results),
    );
  const endWait = (): Promise<void> =>
    send(
      client.call("POST /api/v1/operator/waits/end", { body: name }),
      `The wait of ${name.provider} has ended: the next call is its trial.`,
    ).then(changed);
  const uncordon = (): Promise<void> =>
    send(
      client.call("DELETE /api/v1/operator/cordons", { query: name }),
      `${name.provider} gets calls again.`,
    ).then(changed);
  return (
    <div class="page-actions">
      <Button look="small" disabled={busy} press={test}>
        {busy ? "Testing" : "Test now"}
      </Button>
      {isOpen ? (
        <Button look="small" press={endWait}>
          End the wait
        </Button>
      ) : null}
      {provider.cordon == null ? (
        <Button look="small danger" press={() => setAsking(true)}>
          Cordon
        </Button>
      ) : (
        <Button look="small" press={uncordon}>
          Uncordon
        </Button>
      )}
      <Link class="button small" to={`/requests${queryText({ ...name })}`}>
        Requests
      </Link>
      <Link class="button small" to={`/errors${queryText({ "errors.find": name.provider })}`}>
        Errors
      </Link>
      <ActionNotice failure={failure} />
      {results && <TestResults results={results} />}
      {isAsking && <CordonDialog {...{ name, changed }} close={() => setAsking(false)} />}
    </div>
  );
}

interface CordonDialogProps {
  readonly name: ProviderName;
  readonly changed: () => void;
  readonly close: () => void;
}

const MAX_REASON = 200;

/** Asks for a reason before a provider is cordoned. */
function CordonDialog({ name, changed, close }: CordonDialogProps) {
  const { client } = useApp();
  const [reason, setReason] = useState("");
  const given = reason.trim();
  const body = given === "" ? name : { ...name, reason: given };
  return (
    <Question
      title={`Cordon ${name.provider}`}
      verb="Cordon"
      danger
      send={() => client.call("POST /api/v1/operator/cordons", { body })}
      said={`${name.provider} gets no more calls.`}
      done={() => {
        changed();
        close();
      }}
      close={close}
    >
      <p>
        It gets no calls on {name.chain} in profile {name.profile} until it is uncordoned, also
        after a reload. Calls that are under way go on.
      </p>
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
      {results.map(({ transport, ok, latency_ms: ms, block_height: height, error }) => (
        <p key={transport}>
          <Badge tone={ok ? "good" : "bad"}>{ok ? "Answered" : "Failed"}</Badge>{" "}
          {transportName(transport)}, {milliseconds(ms)} ms
          {height === null ? "" : `, block ${count(height)}`}
          {error === null ? null : (
            <>
              : {error.category.replaceAll("_", " ")}, <bdi>{error.message}</bdi>
            </>
          )}
        </p>
      ))}
    </div>
  );
}
