// A dialog over the page. The browser keeps the focus inside of it and closes it on Escape.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";

interface DialogProps {
  readonly title: string;
  readonly close: () => void;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}

/** An open dialog; it is closed by no longer being rendered. */
export function Dialog({ title, close, wide = false, children }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const opened = element.current;
    const before = document.activeElement;
    opened?.showModal();
    return () => {
      opened?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={wide ? "dialog dialog-wide" : "dialog"}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <div class="dialog-head">
        <h2 id={heading}>{title}</h2>
        <button
          type="button"
          class="button button-icon button-plain"
          aria-label="Close"
          onClick={close}
        >
          <Icon name="close" />
        </button>
      </div>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
