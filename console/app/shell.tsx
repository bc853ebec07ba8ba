// The frame around every page: navigation, who is signed in, the theme, and banners that concern
// the whole application.

import { useEffect, useState } from "preact/hooks";
import { Card, PageHead } from "../components/card.tsx";
import { Button, useSend } from "../components/controls.tsx";
import { Icon } from "../components/icons.tsx";
import { Link } from "../components/inline.tsx";
import { Empty, Forbidden } from "../components/page-state.tsx";
import { duration, visible } from "../format/text.ts";
import { AWAY, useApp, useStore } from "./app.ts";
import { isOffered, PAGES, pageAt } from "./pages.ts";
import { Palette, PaletteButton, usePalette } from "./palette.tsx";
import { matchPath, signInPath } from "./router.ts";
import { ToastList } from "./toasts.tsx";

/** The application as it is seen. */
export function Shell() {
  const { router } = useApp();
  const { path } = useStore(router.place);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isPaletteOpen, setPaletteOpen] = usePalette();
  const openPalette = (): void => setPaletteOpen(true);
  useEffect(() => setMenuOpen(false), [path]);
  return (
    <div class={isMenuOpen ? "shell menu-open" : "shell"}>
      <a class="skip-link" href="#main">
        Skip to the page
      </a>
      <header class="topbar">
        <button
          type="button"
          class="button icon plain"
          aria-label="Menu"
          aria-expanded={isMenuOpen}
          aria-controls="sidebar"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          <Icon name={isMenuOpen ? "close" : "menu"} />
        </button>
        <Brand />
        <span class="topbar-actions">
          <PaletteButton open={openPalette} isSmall />
          <ThemeButton />
        </span>
      </header>
      <Sidebar {...{ path, openPalette }} />
      <div class="main">
        <Banners />
        <main id="main" class="page" tabIndex={-1}>
          <CurrentPage path={path} />
        </main>
      </div>
      <ToastList />
      {isPaletteOpen ? <Palette close={() => setPaletteOpen(false)} /> : null}
    </div>
  );
}

function Brand() {
  return (
    <Link to="/" class="brand">
      <svg class="brand-mark" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
        <path
          d="M3 10h4m6-5h4m-4 5h4m-4 5h4M7 10l6-5m-6 5h6m-6 0 6 5"
          fill="none"
          stroke="currentColor"
          stroke-width="2"
          stroke-linecap="round"
        />
      </svg>
      svc
    </Link>
  );
}

interface SidebarProps {
  readonly path: string;
  readonly openPalette: () => void;
}

function Sidebar({ path, openPalette }: SidebarProps) {
  return (
    <aside class="sidebar" id="sidebar" aria-label="Console">
      <Brand />
      <PaletteButton open={openPalette} />
      <nav class="nav" aria-label="Pages">
        <NavGroup title="Service" path={path} />
        <NavGroup title="Account" path={path} />
      </nav>
      <SidebarFoot />
    </aside>
  );
}

interface NavGroupProps {
  readonly title: "Service" | "Account";
  readonly path: string;
}

function NavGroup({ title, path }: NavGroupProps) {
  const state = useStore(useApp().session.state);
  const entries = Object.entries(PAGES).filter(([, { audience, icon }]) => {
    const group = audience === "account" ? "Account" : "Service";
    return icon !== undefined && group === title && isOffered(audience, state);
  });
  if (entries.length === 0) return null;
  return (
    <div class="nav-group">
      <h2>{title}</h2>
      {entries.map(([to, entry]) => (
        <Link key={to} to={to} class="nav-link" current={matchPath(to, path) !== null}>
          {entry.icon && <Icon name={entry.icon} />}
          {entry.title}
        </Link>
      ))}
    </div>
  );
}

function SidebarFoot() {
  const { session, router } = useApp();
  const send = useSend();
  const state = useStore(session.state);
  const place = useStore(router.place);
  const canSignIn =
    state?.role === "none" && (state.instance.operator_sign_in || state.instance.account_sign_in);
  return (
    <div class="sidebar-foot">
      {state === null || state.role === "none" ? null : (
        <div class="sidebar-row">
          <span class="who" title={state.account_id ?? "Operator"}>
            {state.role === "operator" ? "Operator" : (state.account_id ?? "Account")}
          </span>
          <Button look="small" press={() => send(session.signOut(), "You are signed out.")}>
            Sign out
          </Button>
        </div>
      )}
      {canSignIn ? (
        <Link to={signInPath(place)} class="button">
          Sign in
        </Link>
      ) : null}
      <div class="sidebar-row">
        <span>{state === null ? "" : `Version ${state.instance.version}`}</span>
        <ThemeButton />
      </div>
    </div>
  );
}

function Banners() {
  const { clock, session, router, isServiceAway } = useApp();
  const isAway = useStore(isServiceAway);
  const { isOff, offsetMs } = useStore(clock);
  const place = useStore(router.place);
  const state = useStore(session.state);
  return (
    <>
      {isAway ? (
        <div class="banner bad" role="alert">
          {AWAY} It is asked again by itself.
        </div>
      ) : null}
      {isOff ? (
        <div class="banner warn" role="status">
          The clock of this computer is {duration(Math.abs(offsetMs))}{" "}
          {offsetMs > 0 ? "behind" : "ahead of"} the service. Times here follow the service.
        </div>
      ) : null}
      {state?.ended === true ? (
        <div class="banner warn" role="status">
          Your session has ended. <Link to={signInPath(place)}>Sign in again</Link>
        </div>
      ) : null}
    </>
  );
}

/** What a page shows, as `Chain ethereum, premium`. */
function titleOf(path: string): string {
  const page = pageAt(path);
  if (page === null) return "Not found";
  return visible(`${page.title} ${Object.values(page.params).reverse().join(", ")}`.trim());
}

function CurrentPage({ path }: { readonly path: string }) {
  const page = pageAt(path);
  const { session } = useApp();
  // Nobody reads on what somebody else was shown.
  const reader = useStore(session.reader);
  const state = useStore(session.state);
  useEffect(() => {
    document.title = `${titleOf(path)} – svc`;
  }, [path]);
  if (page === null)
    return (
      <>
        <PageHead title="Not found" />
        <Card flush>
          <Empty title="There is no such page">
            <Link to="/">Go to the overview</Link>
          </Empty>
        </Card>
      </>
    );
  if (state === null || isOffered(page.audience, state))
    return <page.show key={reader} params={page.params} />;
  return (
    <>
      <PageHead title={page.title} />
      <Card flush>
        <Forbidden />
      </Card>
    </>
  );
}

/** A button that changes the theme. */
function ThemeButton() {
  const { theme } = useApp();
  const words = `Change to the ${useStore(theme.store) === "dark" ? "light" : "dark"} theme`;
  return (
    <Button look="icon plain" label={words} title={words} press={() => theme.change()}>
      <Icon name="sun" />
    </Button>
  );
}
