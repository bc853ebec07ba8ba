// Signs in. A token goes to the service once and is kept nowhere on the page; the link that a
// development instance prints at its start signs in by itself.

import { useEffect, useMemo } from "preact/hooks";
import type { Failure } from "../../api/client.ts";
import { type Action, useAction } from "../../api/resource.ts";
import { useApp, useQuery, useStore, useTimed } from "../../app/app.ts";
import { placeAfterSignIn } from "../../app/router.ts";
import type { SessionState } from "../../app/session.ts";
import { Card, PageHead } from "../../components/card.tsx";
import { Button, Notice } from "../../components/controls.tsx";
import { Link, Time } from "../../components/inline.tsx";
import { failureSentence, failureText, Loading } from "../../components/page-state.tsx";
import { duration } from "../../format/text.ts";
import { NewAccount } from "./new-account.tsx";

const CODE = /^#sign-in=([\w-]{1,512})$/;

/** The page. */
export function SignInPage() {
  const { session, router } = useApp();
  const state = useStore(session.state);
  const [next] = useQuery("next");
  const action = useAction();
  const signIn = (token: string, page?: string): void =>
    action.run(session.signIn(token), ({ role }) =>
      router.go(page ?? placeAfterSignIn(next) ?? homeOf(role)),
    );
  useEffect(() => takeCode(signIn), []);
  return (
    <>
      <PageHead
        title="Sign in"
        lead="For the operator of this service, and for owners of accounts."
      />
      {state === null ? <Loading /> : <Body {...{ state, action, signIn }} />}
    </>
  );
}

/** Takes the code out of the address before anything else can see it. */
function takeCode(signIn: (token: string) => void): void {
  const code = CODE.exec(window.location.hash)?.[1];
  if (code === undefined) return;
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  signIn(code);
}

function homeOf(role: SessionState["role"]): string {
  return role === "account" ? "/account" : "/";
}

interface BodyProps {
  readonly state: SessionState;
  readonly action: Action;
  readonly signIn: (token: string, page?: string) => void;
}

function Body(props: BodyProps) {
  const { role, instance } = props.state;
  const { operator_sign_in, account_sign_in } = instance;
  if (role === "none" && !operator_sign_in && !account_sign_in)
    return (
      <Card title="Nobody can sign in here">
        <p>
          The operator signs in with <code>server.operator_token</code>, which this instance does
          not set.
        </p>
      </Card>
    );
  return (
    <>
      {role !== "none" && <SignedIn state={props.state} />}
      <TokenForm {...props} />
      {role === "none" && account_sign_in && <NewAccount signIn={props.signIn} />}
    </>
  );
}

function SignedIn({ state }: Pick<BodyProps, "state">) {
  const { session } = useApp();
  return (
    <Card title="You are signed in">
      <div class="stack">
        <p>
          As {state.role === "operator" ? "the operator" : `the account ${state.account_id}`}. The
          session ends <Time at={state.expires_at} />.
        </p>
        <p class="page-actions">
          <Link class="button primary" to={homeOf(state.role)}>
            Continue
          </Link>
          <Button press={() => session.signOut()}>Sign out</Button>
        </p>
      </div>
    </Card>
  );
}

/** This machine has two names, and a browser sends the cookie of one to that one alone. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  localhost: "127.0.0.1",
  "127.0.0.1": "localhost",
};

function OtherAddress() {
  const { protocol, hostname, host } = window.location;
  const other = OTHER_NAMES[hostname];
  if (other === undefined || protocol !== "http:") return null;
  return (
    <p class="field-hint">
      This signs in at <code>{host}</code> alone, not at{" "}
      <code>{host.replace(hostname, other)}</code>.
    </p>
  );
}

/** Why nobody was signed in, and when the service takes another try, where it says so. */
function Refusal({ failure }: { readonly failure: Failure }) {
  const { nowMs } = useApp();
  const { retryAfterMs } = failure;
  const at = useMemo(() => nowMs.get() + (retryAfterMs ?? 0), [failure]);
  const when = useTimed((nowMs) => (nowMs < at ? `in ${duration(at - nowMs)}` : "now"));
  if (retryAfterMs === null) return <>{failureText(failure)}</>;
  return (
    <>
      {failureSentence(failure)} The next try counts {when}.
    </>
  );
}

function TokenForm({ state, action: { busy, failure }, signIn }: BodyProps) {
  const { operator_sign_in, account_sign_in } = state.instance;
  const submit = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void => {
    event.preventDefault();
    const field = event.currentTarget.elements.namedItem("token");
    if (!(field instanceof HTMLInputElement)) return;
    const token = field.value.trim();
    field.value = "";
    if (token !== "") signIn(token);
    field.focus();
  };
  const kinds = [
    ...(operator_sign_in ? ["the operator token"] : []),
    ...(account_sign_in ? ["the management token of an account (svc_mt_…)"] : []),
  ];
  return (
    <Card title={state.role === "none" ? undefined : "Sign in with another token"}>
      <form class="stack sign-in" onSubmit={submit}>
        {failure === null ? null : (
          <Notice tone="bad">
            <Refusal failure={failure} />
          </Notice>
        )}
        <div class="field">
          <label for="token">Token</label>
          <input
            id="token"
            name="token"
            class="input"
            type="password"
            autocomplete="current-password"
            autocapitalize="off"
            spellcheck={false}
            maxlength={512}
            required
            aria-describedby="token-hint"
          />
          <p class="field-hint" id="token-hint">
            {`Type ${kinds.join(", or ")}. It is sent once; this browser then keeps a cookie for twelve hours that no script can read.`}
          </p>
          <OtherAddress />
        </div>
        <p>
          <Button look="primary" disabled={busy}>
            {busy ? "Signing in" : "Sign in"}
          </Button>
        </p>
      </form>
    </Card>
  );
}
