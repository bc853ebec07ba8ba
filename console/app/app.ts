// What every page may use: the API, the session, the router, the clock, messages. Made once in
// `main.tsx`, and handed down by a context.
import { type ComponentChildren, type ComponentType, createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { AgentDocument } from "../api/agent-document.ts";
import type { Client } from "../api/client.ts";
import type { AnswerOf, Endpoint, RequestOf } from "../api/contract-types.ts";
import { type Resource, useResource } from "../api/resource.ts";
import type { ClockReading } from "./clock.ts";
import type { Router } from "./router.ts";
import type { Session } from "./session.ts";
import type { Store } from "./store.ts";
import type { Theme } from "./theme.ts";
import type { Toasts } from "./toasts.tsx";

/** The parts of the running application. */
export interface App {
  readonly client: Client;
  readonly session: Session;
  readonly router: Router;
  readonly clock: Store<ClockReading>;
  /** The time of the service, moved on once a second. */
  readonly nowMs: Store<number>;
  readonly toasts: Toasts;
  readonly theme: Theme;
  /** Whether the latest request brought no answer at all. */
  readonly isServiceAway: Store<boolean>;
}

/** Said in place of how the service is, while nobody knows. */
export const AWAY = "The service cannot be reached.";

/** Holds the application. */
export const AppContext = createContext<App | null>(null);

/** The application that a component is part of. */
export function useApp(): App {
  const app = useContext(AppContext);
  if (app === null) throw new Error("a component stands outside of the application");
  return app;
}

/** The value of a store, rendered again after each change. */
export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.get());
  useEffect(() => {
    setValue(() => store.get());
    return store.subscribe(() => setValue(() => store.get()));
  }, [store]);
  return value;
}

/** A text derived from the time, rendered again only when it differs. */
export function useTimed(textAt: (nowMs: number) => string): string {
  const { nowMs } = useApp();
  const [, setText] = useState("");
  useEffect(() => nowMs.subscribe(() => setText(textAt(nowMs.get()))), [nowMs, textAt]);
  return textAt(nowMs.get());
}

/** What one operation answers, read at once, when the request changes, and every `everyMs`. */
export function useCall<E extends Endpoint>(
  endpoint: E,
  request: RequestOf<E>,
  everyMs = 0,
): Resource<AnswerOf<E>> {
  const { client } = useApp();
  return useResource(`${endpoint} ${JSON.stringify(request)}`, everyMs, (signal) =>
    client.call(endpoint, request, { signal }),
  );
}

/** The description of the service for programs. */
export function useAgentDocument(): Resource<AgentDocument> {
  const { client } = useApp();
  return useResource("agent.json", 0, () => client.request<AgentDocument>("GET", "/agent.json"));
}

/** Whether the operator is signed in. */
export function useIsOperator(): boolean {
  return useStore(useApp().session.state)?.role === "operator";
}

/** Shows its children to the operator alone. */
export function ForOperator(props: { readonly children: ComponentChildren }): ComponentChildren {
  return useIsOperator() ? props.children : null;
}

/** A parameter of the query: its value ("" = absent), and the function that changes it. */
export function useQuery(name: string): readonly [string, (value: string) => void] {
  const { router } = useApp();
  const { query } = useStore(router.place);
  return [query[name] ?? "", (value) => router.setQuery({ [name]: value })];
}

/** What a page is given. */
export interface PageProps {
  /** The named parts of its address. */
  readonly params: Readonly<Record<string, string>>;
}

/** A page as it is shown. */
export type PageComponent = ComponentType<PageProps>;
