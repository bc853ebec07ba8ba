// The messages on show.
import type { JSX } from "preact";
import { useApp, useStore } from "../app/app.ts";
import { Icon } from "./icons.tsx";

/** The corner with the messages. */
export function ToastList(): JSX.Element {
  const { toasts } = useApp();
  const shown = useStore(toasts.shown);
  return (
    <div class="toasts" role="status">
      {shown.map(({ id, tone, text }) => (
        <div key={id} class={`toast ${tone}`}>
          <span>{text}</span>
          <button
            type="button"
            class="button button-icon button-small button-plain"
            aria-label="Dismiss"
            onClick={() => toasts.dismiss(id)}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
