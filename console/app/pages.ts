// The table of pages: address, name, place in the navigation, who sees it. A page is a row here and
// a folder in `pages/`.
import type { IconName } from "../components/icons.tsx";
import { AccountPage } from "../pages/account/account-page.tsx";
import { CallsPage } from "../pages/account/calls-page.tsx";
import { KeysPage } from "../pages/account/keys-page.tsx";
import { PaymentsPage } from "../pages/account/payments-page.tsx";
import { ProfilePage } from "../pages/account/profile-page.tsx";
import { ProfilesPage } from "../pages/account/profiles-page.tsx";
import { TokensPage } from "../pages/account/tokens-page.tsx";
import { ChainPage } from "../pages/chain/chain-page.tsx";
import { ClusterPage } from "../pages/cluster/cluster-page.tsx";
import { ErrorsPage } from "../pages/errors/errors-page.tsx";
import { MoneyPage } from "../pages/money/money-page.tsx";
import { OverviewPage } from "../pages/overview/overview-page.tsx";
import { ProviderPage } from "../pages/provider/provider-page.tsx";
import { DecisionPage } from "../pages/requests/decision-page.tsx";
import { RequestsPage } from "../pages/requests/requests-page.tsx";
import { SignInPage } from "../pages/sign-in/sign-in-page.tsx";
import { StreamsPage } from "../pages/streams/streams-page.tsx";
import { TesterPage } from "../pages/tester/tester-page.tsx";
import type { PageComponent, PageProps } from "./app.ts";
import { matchPath } from "./router.ts";
import type { SessionState } from "./session.ts";

/** Whom the navigation offers a page. The service decides what they may read. */
type Audience = "everyone" | "operator" | "hosted operator" | "account";

/** A row of the table. */
interface PageEntry {
  readonly audience: Audience;
  readonly title: string;
  readonly show: PageComponent;
  /** In the navigation; undefined = other pages lead to it. */
  readonly icon: IconName | undefined;
}

function page(audience: Audience, title: string, show: PageComponent, icon?: IconName): PageEntry {
  return { audience, title, show, icon };
}

/** All pages by their address, in the order of the navigation. */
export const PAGES: Readonly<Record<string, PageEntry>> = {
  "/": page("everyone", "Overview", OverviewPage, "overview"),
  "/chain/:profile/:chain": page("everyone", "Chain", ChainPage),
  "/provider/:provider": page("everyone", "Provider", ProviderPage),
  "/requests": page("operator", "Requests", RequestsPage, "requests"),
  "/requests/:id": page("operator", "Request", DecisionPage),
  "/streams": page("operator", "Streams", StreamsPage, "streams"),
  "/errors": page("operator", "Errors", ErrorsPage, "errors"),
  "/tester": page("everyone", "Tester", TesterPage, "tester"),
  "/money": page("hosted operator", "Money", MoneyPage, "money"),
  "/cluster": page("everyone", "Cluster", ClusterPage, "cluster"),
  "/account": page("account", "Account", AccountPage, "account"),
  "/account/keys": page("account", "Keys", KeysPage, "key"),
  "/account/calls": page("account", "Calls", CallsPage, "requests"),
  "/account/profiles": page("account", "Custom profiles", ProfilesPage, "chain"),
  "/account/profiles/:slug": page("account", "Custom profile", ProfilePage),
  "/account/payments": page("account", "Payments", PaymentsPage, "money"),
  "/account/tokens": page("account", "Management tokens", TokensPage, "key"),
  "/sign-in": page("everyone", "Sign in", SignInPage),
};

/** The page at a path, with the named parts of the path; null = there is none. */
export function pageAt(path: string): (PageEntry & PageProps) | null {
  for (const [pattern, entry] of Object.entries(PAGES)) {
    const params = matchPath(pattern, path);
    if (params !== null) return { ...entry, params };
  }
  return null;
}

/** Whether the navigation offers a page to this session; null = nothing is known of it. */
export function isOffered(audience: Audience, session: SessionState | null): boolean {
  if (audience === "hosted operator")
    return session?.role === "operator" && session.instance.hosted;
  return audience === "everyone" || audience === session?.role;
}
