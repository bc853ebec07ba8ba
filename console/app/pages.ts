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

/** A row of the table. */
export interface PageEntry {
  /** As `/chain/:profile/:chain`. */
  readonly pattern: string;
  readonly title: string;
  readonly audience: Audience;
  /** Its place in the navigation; null = other pages lead to it. */
  readonly nav: { readonly group: NavGroup; readonly icon: IconName } | null;
  /** A page itself, or the function that loads it when it is first opened. */
  readonly page: { readonly show: PageComponent } | { readonly load: () => Promise<PageComponent> };
}

/** Groups of the navigation, in their order. */
export const NAV_GROUPS = ["Service", "Account"] as const;
type NavGroup = (typeof NAV_GROUPS)[number];

/** All pages. */
export const PAGES: readonly PageEntry[] = [
  {
    pattern: "/",
    title: "Overview",
    audience: "everyone",
    nav: { group: "Service", icon: "overview" },
    page: { show: OverviewPage },
  },
  {
    pattern: "/chain/:profile/:chain",
    title: "Chain",
    audience: "everyone",
    nav: null,
    page: { show: ChainPage },
  },
  {
    pattern: "/requests",
    title: "Requests",
    audience: "operator",
    nav: { group: "Service", icon: "requests" },
    page: { load: () => import("../pages/requests/requests-page.tsx").then((m) => m.RequestsPage) },
  },
  {
    pattern: "/requests/:id",
    title: "Request",
    audience: "operator",
    nav: null,
    page: { load: () => import("../pages/requests/decision-page.tsx").then((m) => m.DecisionPage) },
  },
  {
    pattern: "/streams",
    title: "Streams",
    audience: "operator",
    nav: { group: "Service", icon: "streams" },
    page: { load: () => import("../pages/streams/streams-page.tsx").then((m) => m.StreamsPage) },
  },
  {
    pattern: "/errors",
    title: "Errors",
    audience: "operator",
    nav: { group: "Service", icon: "errors" },
    page: { load: () => import("../pages/errors/errors-page.tsx").then((m) => m.ErrorsPage) },
  },
  {
    pattern: "/tester",
    title: "Tester",
    audience: "everyone",
    nav: { group: "Service", icon: "tester" },
    page: { load: async () => (await import("../pages/tester/tester-page.tsx")).TesterPage },
  },
  {
    pattern: "/money",
    title: "Money",
    audience: "hosted operator",
    nav: { group: "Service", icon: "money" },
    page: { load: async () => (await import("../pages/money/money-page.tsx")).MoneyPage },
  },
  {
    pattern: "/cluster",
    title: "Cluster",
    audience: "everyone",
    nav: { group: "Service", icon: "cluster" },
    page: { load: async () => (await import("../pages/cluster/cluster-page.tsx")).ClusterPage },
  },
  {
    pattern: "/account",
    title: "Account",
    audience: "account",
    nav: { group: "Account", icon: "account" },
    page: { load: async () => (await import("../pages/account/account-page.tsx")).AccountPage },
  },
  {
    pattern: "/account/keys",
    title: "Keys",
    audience: "account",
    nav: { group: "Account", icon: "key" },
    page: { load: async () => (await import("../pages/account/keys-page.tsx")).KeysPage },
  },
  {
    pattern: "/account/profiles",
    title: "Custom profiles",
    audience: "account",
    nav: { group: "Account", icon: "chain" },
    page: { load: async () => (await import("../pages/account/profiles-page.tsx")).ProfilesPage },
  },
  {
    pattern: "/account/profiles/:slug",
    title: "Custom profile",
    audience: "account",
    nav: null,
    page: { load: async () => (await import("../pages/account/profile-page.tsx")).ProfilePage },
  },
  {
    pattern: "/account/payments",
    title: "Payments",
    audience: "account",
    nav: { group: "Account", icon: "money" },
    page: { load: async () => (await import("../pages/account/payments-page.tsx")).PaymentsPage },
  },
  {
    pattern: "/account/tokens",
    title: "Management tokens",
    audience: "account",
    nav: { group: "Account", icon: "key" },
    page: { load: async () => (await import("../pages/account/tokens-page.tsx")).TokensPage },
  },
  {
    pattern: "/sign-in",
    title: "Sign in",
    audience: "everyone",
    nav: null,
    page: { show: SignInPage },
  },
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
