// Short messages that tell what an action came to.

import { Button } from "../components/controls.tsx";
import { Icon } from "../components/icons.tsx";
import { useApp, useStore } from "./app.ts";
import { Store } from "./store.ts";

/** One message. */
interface Toast {
  readonly id: number;
  readonly tone: "good" | "bad";
  readonly text: string;
}

const SHOWN_MS = 6_000;
const MAX_SHOWN = 4;

/** The messages on show. */
export class Toasts {
  readonly shown = new Store<readonly Toast[]>([]);
  #lastId = 0;

  /** Shows a message for some seconds. */
  show(tone: Toast["tone"], text: string): void {
    const id = ++this.#lastId;
    this.shown.set([...this.shown.get(), { id, tone, text }].slice(-MAX_SHOWN));
    setTimeout(() => this.dismiss(id), SHOWN_MS);
  }

  dismiss(id: number): void {
    this.shown.set(this.shown.get().filter((toast) => toast.id !== id));
  }
}

/** The corner with the messages. */
export function ToastList() {
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
