// What the operator can do with a provider: test it, end a wait, cordon it and take it back.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { queryText } from "../../app/address.ts";
import { useApp, useStore } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Link } from "../../components/link.tsx";
import { failureText } from "../../components/page-state.tsx";
import { count, milliseconds } from "../../format/numbers.ts";
import type { ProviderMetrics } from "../../health/judge.ts";
import { CordonDialog } from "./cordon-dialog.tsx";

/** Which provider it is about. */
export interface ProviderName {
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

/** The buttons, for the operator alone. */
export function ProviderActions(props: ActionsProps): JSX.Element | null {
  const { session } = useApp();
  return useStore(session.state)?.role === "operator" ? <Actions {...props} /> : null;
}

function Actions({ name, provider, changed }: ActionsProps): JSX.Element {
  const { client, toasts } = useApp();
  const [results, setResults] = useState<readonly TestResult[] | null>(null);
  const [busy, setBusy] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const isOpen = provider.transports.some((each) => each.circuit_breaker_state === "open");
  const cordon = provider.cordon ?? null;
  const test = async (): Promise<void> => {
    setBusy(true);
    const result = await client.call("POST /api/v1/operator/tests", { body: name });
    setBusy(false);
    if (result.kind === "failed") return toasts.show("bad", failureText(result.failure));
    setResults(result.body.results);
  };
  const finish = (text: string, result: { readonly kind: "ok" | "failed" }): void => {
    toasts.show(result.kind === "ok" ? "good" : "bad", text);
    changed();
  };
  const endWait = async (): Promise<void> => {
    const result = await client.call("POST /api/v1/operator/waits/end", { body: name });
    if (result.kind === "failed") return toasts.show("bad", failureText(result.failure));
    finish(`The wait of ${name.provider} has ended: the next call is its trial.`, result);
  };
  const uncordon = async (): Promise<void> => {
    const result = await client.call("DELETE /api/v1/operator/cordons", { query: name });
    if (result.kind === "failed") return toasts.show("bad", failureText(result.failure));
    finish(`${name.provider} gets calls again.`, result);
  };
  return (
    <div class="provider-actions">
      <button type="button" class="button button-small" disabled={busy} onClick={() => void test()}>
        {busy ? "Testing" : "Test now"}
      </button>
      {isOpen ? (
        <button type="button" class="button button-small" onClick={() => void endWait()}>
          End the wait
        </button>
      ) : null}
      {cordon === null ? (
        <button
          type="button"
          class="button button-small button-danger"
          onClick={() => setAsking(true)}
        >
          Cordon
        </button>
      ) : (
        <button type="button" class="button button-small" onClick={() => void uncordon()}>
          Uncordon
        </button>
      )}
      <Link class="button button-small" to={`/requests${queryText({ ...name })}`}>
        Requests
      </Link>
      <Link
        class="button button-small"
        to={`/errors${queryText({ "errors.find": name.provider })}`}
      >
        Errors
      </Link>
      {results === null ? null : <TestResults results={results} />}
      {isAsking ? (
        <CordonDialog name={name} changed={changed} close={() => setAsking(false)} />
      ) : null}
    </div>
  );
}

function TestResults({ results }: { readonly results: readonly TestResult[] }): JSX.Element {
  return (
    <div class="test-results" role="status">
      {results.map(({ transport, ok, latency_ms: ms, block_height: height, error }) => (
        <p key={transport}>
          <Badge tone={ok ? "good" : "bad"}>{ok ? "Answered" : "Failed"}</Badge>{" "}
          {transport === "ws" ? "WebSocket" : "HTTP"}, {milliseconds(ms)} ms
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
