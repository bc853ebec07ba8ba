// Short messages that tell what an action came to.

import type { JSX } from "preact";
import { Button } from "../components/controls.tsx";
import { Icon } from "../components/icons.tsx";
import { useApp, useStore } from "./app.ts";
import { createStore, type Store } from "./store.ts";

/** One message. */
export interface Toast {
  readonly id: number;
  readonly tone: "good" | "bad";
  readonly text: string;
}

/** The messages on show. */
export interface Toasts {
  readonly shown: Store<readonly Toast[]>;
  /** Shows a message for some seconds. */
  show(tone: Toast["tone"], text: string): void;
  dismiss(id: number): void;
}

const SHOWN_MS = 6_000;
const MAX_SHOWN = 4;

/** Creates the messages; none yet. */
export function createToasts(): Toasts {
  const shown = createStore<readonly Toast[]>([]);
  const next = { id: 1 };
  const dismiss = (id: number): void => shown.set(shown.get().filter((toast) => toast.id !== id));
  return {
    shown,
    dismiss,
    show(tone, text) {
      const id = next.id++;
      shown.set([...shown.get(), { id, tone, text }].slice(-MAX_SHOWN));
      setTimeout(() => dismiss(id), SHOWN_MS);
    },
  };
}

/** The corner with the messages. */
export function ToastList(): JSX.Element {
  const { toasts } = useApp();
  const shown = useStore(toasts.shown);
  return (
    <div class="toasts" role="status">
      {shown.map(({ id, tone, text }) => (
        <div key={id} class={`toast ${tone}`}>
          <span>{text}</span>
          <Button look="icon small plain" label="Dismiss" press={() => toasts.dismiss(id)}>
            <Icon name="close" />
          </Button>
        </div>
      ))}
    </div>
  );
}
