// The entry of the console: makes the parts of the application and shows it.
import { render } from "preact";
import { Client, SERVICE_URL } from "./api/client.ts";
import { type App, AppContext } from "./app/app.ts";
import { type ClockReading, readClock, SAME_CLOCK } from "./app/clock.ts";
import { Router } from "./app/router.ts";
import { Session } from "./app/session.ts";
import { Shell } from "./app/shell.tsx";
import { Store } from "./app/store.ts";
import { Theme } from "./app/theme.ts";
import { Toasts } from "./app/toasts.tsx";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/components.css";
import "./styles/pages.css";

const TICK_MS = 1_000;

/** Makes the application. */
function createApp(): App {
  const clock = new Store<ClockReading>(SAME_CLOCK);
  const nowMs = new Store(Date.now());
  const isServiceAway = new Store(false);
  const client = new Client({
    dated: (date) => clock.set(readClock(clock.get(), date, Date.now())),
    reached: (isReached) => isServiceAway.set(!isReached),
    unauthorized: () => {
      // The session ended while it was in use: the frame shows what is left.
      if ((session.state.get()?.role ?? "none") !== "none") void session.refresh();
    },
  });
  const session = new Session(client);
  const tick = (): void => nowMs.set(Date.now() + clock.get().offsetMs);
  clock.subscribe(tick);
  setInterval(() => {
    if (!document.hidden) tick();
  }, TICK_MS);
  const router = new Router(window, SERVICE_URL.pathname);
  const [toasts, theme] = [new Toasts(), new Theme()];
  return { client, session, router, clock, nowMs, toasts, theme, isServiceAway };
}

const app = createApp();
void app.session.watch();
const place = document.getElementById("app");
if (place !== null)
  render(
    <AppContext.Provider value={app}>
      <Shell />
    </AppContext.Provider>,
    place,
  );
