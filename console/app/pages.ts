// The table of pages: address, name, place in the navigation, who sees it. A page is a row here and
// a folder in `pages/`.
import type { IconName } from "../components/icons.tsx";
import { ChainPage } from "../pages/chain/chain-page.tsx";
import { OverviewPage } from "../pages/overview/overview-page.tsx";
import { SignInPage } from "../pages/sign-in/sign-in-page.tsx";
import type { PageComponent, PageProps } from "./app.ts";
import { matchPath } from "./router.ts";
import type { SessionState } from "./session.ts";

/** Whom the navigation offers a page. The service decides what they may read. */
export type Audience = "everyone" | "operator" | "hosted operator" | "account";

/** The page, or the function that loads it when it is first opened. */
type Shown = { readonly show: PageComponent } | { readonly load: () => Promise<PageComponent> };

/** A row of the table. */
export type PageEntry = Shown & {
  /** As `/chain/:profile/:chain`. */
  readonly pattern: string;
  readonly title: string;
  readonly audience: Audience;
  /** In the navigation; absent = other pages lead to it. */
  readonly icon?: IconName;
};

function page(
  audience: Audience,
  pattern: string,
  title: string,
  shown: Shown & Pick<PageEntry, "icon">,
): PageEntry {
  return { audience, pattern, title, ...shown };
}

/** All pages. */
export const PAGES: readonly PageEntry[] = [
  page("everyone", "/", "Overview", { icon: "overview", show: OverviewPage }),
  page("everyone", "/chain/:profile/:chain", "Chain", { show: ChainPage }),
  page("operator", "/requests", "Requests", {
    icon: "requests",
    load: async () => (await import("../pages/requests/requests-page.tsx")).RequestsPage,
  }),
  page("operator", "/requests/:id", "Request", {
    load: async () => (await import("../pages/requests/decision-page.tsx")).DecisionPage,
  }),
  page("operator", "/streams", "Streams", {
    icon: "streams",
    load: async () => (await import("../pages/streams/streams-page.tsx")).StreamsPage,
  }),
  page("operator", "/errors", "Errors", {
    icon: "errors",
    load: async () => (await import("../pages/errors/errors-page.tsx")).ErrorsPage,
  }),
  page("everyone", "/tester", "Tester", {
    icon: "tester",
    load: async () => (await import("../pages/tester/tester-page.tsx")).TesterPage,
  }),
  page("hosted operator", "/money", "Money", {
    icon: "money",
    load: async () => (await import("../pages/money/money-page.tsx")).MoneyPage,
  }),
  page("everyone", "/cluster", "Cluster", {
    icon: "cluster",
    load: async () => (await import("../pages/cluster/cluster-page.tsx")).ClusterPage,
  }),
  page("account", "/account", "Account", {
    icon: "account",
    load: async () => (await import("../pages/account/account-page.tsx")).AccountPage,
  }),
  page("account", "/account/keys", "Keys", {
    icon: "key",
    load: async () => (await import("../pages/account/keys-page.tsx")).KeysPage,
  }),
  page("account", "/account/profiles", "Custom profiles", {
    icon: "chain",
    load: async () => (await import("../pages/account/profiles-page.tsx")).ProfilesPage,
  }),
  page("account", "/account/profiles/:slug", "Custom profile", {
    load: async () => (await import("../pages/account/profile-page.tsx")).ProfilePage,
  }),
  page("account", "/account/payments", "Payments", {
    icon: "money",
    load: async () => (await import("../pages/account/payments-page.tsx")).PaymentsPage,
  }),
  page("account", "/account/tokens", "Management tokens", {
    icon: "key",
    load: async () => (await import("../pages/account/tokens-page.tsx")).TokensPage,
  }),
  page("everyone", "/sign-in", "Sign in", { show: SignInPage }),
];

/** The page at a path, with the named parts of the path; null = there is none. */
export function pageAt(
  path: string,
): { readonly entry: PageEntry; readonly params: PageProps["params"] } | null {
  for (const entry of PAGES) {
    const params = matchPath(entry.pattern, path);
    if (params !== null) return { entry, params };
  }
  return null;
}

/** Whether the navigation offers a page to this session; null = nothing is known of it. */
export function isOffered({ audience }: PageEntry, session: SessionState | null): boolean {
  switch (audience) {
    case "everyone":
      return true;
    case "operator":
      return session?.role === "operator";
    case "hosted operator":
      return session?.role === "operator" && session.instance.hosted;
    case "account":
      return session?.role === "account";
  }
}
