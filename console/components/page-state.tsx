// What stands where data would: loading, empty, failed, forbidden.

import type { ComponentChildren } from "preact";
import type { Failure } from "../api/client.ts";
import type { Resource } from "../api/resource.ts";
import { useApp, useStore } from "../app/app.ts";
import { signInPath } from "../app/router.ts";
import { duration } from "../format/text.ts";
import { Age, Link } from "./inline.tsx";

/** Lines that stand for what is being read. */
export function Loading() {
  return (
    <div class="skeleton" role="status">
      <span class="visually-hidden">Loading</span>
      <i />
      <i />
      <i />
    </div>
  );
}

interface StateProps {
  readonly title: string;
  readonly children?: ComponentChildren;
  /** What can be done about it. */
  readonly action?: ComponentChildren;
  /** `alert` = something went wrong. */
  readonly role?: "alert";
}

/** Stands where data would, and says why there is none; by itself, that this is all right. */
export function Empty({ title, children, action, role }: StateProps) {
  return (
    <div class="state" role={role}>
      <strong>{title}</strong>
      {children === undefined ? null : <p>{children}</p>}
      {action}
    </div>
  );
}

interface FailedProps {
  readonly failure: Failure;
  readonly retry?: () => void;
}

/** Something could not be read, and what to do about it. */
export function Failed({ failure, retry }: FailedProps) {
  if (isForbidden(failure)) return <Forbidden />;
  const again = retry && (
    <button type="button" class="button" onClick={retry}>
      Try again
    </button>
  );
  const title = TITLES[failure.status] ?? "The service refused this";
  return (
    <Empty title={title} action={again} role="alert">
      {failureText(failure)}
    </Empty>
  );
}

/** Nobody is signed in who may see this. */
export function Forbidden() {
  const { router, session } = useApp();
  const place = useStore(router.place);
  const state = useStore(session.state);
  const { title, text, verb } = FORBIDDEN[state?.role ?? "none"];
  if (state?.instance.hosted === false && state.role === "operator")
    return <Empty title="This service has no accounts">It is a router without metering.</Empty>;
  const signIn = (
    <Link class="button primary" to={signInPath(place)}>
      {verb}
    </Link>
  );
  return (
    <Empty title={title} action={signIn}>
      {text}
    </Empty>
  );
}

const FORBIDDEN = {
  none: {
    title: "Sign in to see this",
    text: "It is shown to the operator of this service, or to the account that it belongs to.",
    verb: "Sign in",
  },
  account: {
    title: "This page is for the operator",
    text: "You are signed in with the token of an account.",
    verb: "Sign in as the operator",
  },
  operator: {
    title: "This page is for the owner of an account",
    text: "You are signed in as the operator. The money page tells of every account.",
    verb: "Sign in with a management token",
  },
} as const;

/** Whether a failure says that the reader may not see it. */
export function isForbidden(failure: Failure): boolean {
  return failure.status === 401 || failure.status === 403;
}

/** Whether a failure says that what was asked for does not exist. */
export function isMissing(failure: Failure | null): boolean {
  return failure?.status === 404;
}

/** What went wrong, and the advice that came with it. */
export function failureText(failure: Failure): string {
  const sentence = failureSentence(failure);
  const { status, retryAfterMs, nextAction } = failure;
  if (status === 0) return `${sentence} The page asks again by itself.`;
  if (retryAfterMs !== null) return `${sentence} Try again in ${duration(retryAfterMs)}.`;
  return nextAction === "" ? sentence : `${sentence} Next: ${nextAction}.`;
}

/** What went wrong, as a sentence. */
export function failureSentence({ message }: Failure): string {
  const text = `${message.slice(0, 1).toUpperCase()}${message.slice(1)}`;
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

const TITLES: Readonly<Record<number, string>> = {
  0: "The service cannot be reached",
  404: "This does not exist",
  429: "Too many requests",
};

interface LoadedProps<T> {
  readonly resource: Resource<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** Shows data once it is there; what is old stays on show, and says so. */
export function Loaded<T>({ resource, children }: LoadedProps<T>) {
  const { data, failure, readAtMs, reload } = resource;
  if (failure !== null && (data === null || isForbidden(failure)))
    return <Failed failure={failure} retry={reload} />;
  if (data === null) return <Loading />;
  return (
    <>
      {failure === null || readAtMs === null ? null : (
        <p class="notice warn" role="status">
          This is <Age readAtMs={readAtMs} /> old. {failureText(failure)}
        </p>
      )}
      {children(data)}
    </>
  );
}
