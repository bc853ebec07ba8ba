// A link to another page of the console.
import type { ComponentChildren, JSX } from "preact";
import { useApp } from "../app/app.ts";

interface LinkProps {
  /** Path and query, as `/requests?chain=base`. */
  readonly to: string;
  readonly class?: string;
  readonly current?: boolean;
  readonly children: ComponentChildren;
}

/** Goes there without loading the page again; a click with a modifier key is the browser's. */
export function Link({ to, class: name, current = false, children }: LinkProps): JSX.Element {
  const { router } = useApp();
  const follow = (event: MouseEvent): void => {
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey);
    if (!isPlain || event.defaultPrevented) return;
    event.preventDefault();
    router.go(to);
  };
  return (
    <a
      href={router.href(to)}
      class={name}
      onClick={follow}
      {...(current ? { "aria-current": "page" as const } : {})}
    >
      {children}
    </a>
  );
}
