// What readers press, fill in and choose from, and notices.
import { type ComponentChildren, h } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { Result } from "../api/client.ts";
import { type Action, useAction } from "../api/resource.ts";
import { useApp } from "../app/app.ts";
import type { Tone } from "../format/tone.ts";
import { Icon } from "./icons.tsx";
import { failureText } from "./page-state.tsx";

interface ButtonProps {
  /** Omitted = it sends the form around it. */
  readonly press?: () => unknown;
  /** How it looks: several of `primary`, `danger`, `small`, `plain`, `icon`. */
  readonly look?: string;
  /** What readers of screens are told in place of the words. */
  readonly label?: string;
  /** Of a button that switches something: whether it is on. */
  readonly pressed?: boolean;
  readonly disabled?: boolean;
  readonly title?: string | undefined;
  readonly children: ComponentChildren;
}

/** A button. */
export function Button(props: ButtonProps) {
  const { press, look = "", label, pressed, children, ...rest } = props;
  return (
    <button
      type={press === undefined ? "submit" : "button"}
      class={`button ${look}`}
      aria-label={label}
      aria-pressed={pressed}
      onClick={press === undefined ? undefined : () => void press()}
      {...rest}
    >
      {children}
    </button>
  );
}

interface FieldProps {
  readonly label: ComponentChildren;
  readonly value: string;
  readonly change: (text: string) => void;
  readonly class?: string;
  readonly inputMode?: "decimal";
  readonly max?: number;
  readonly maxLength?: number;
  readonly min?: number;
  readonly pattern?: string;
  readonly placeholder?: string;
  readonly required?: boolean;
  readonly title?: string;
  readonly type?: "datetime-local" | "number" | "password" | "search" | "text";
}

/** A line of text with its name: names and amounts, which no dictionary knows. */
export function Field({ label, change, class: look = "", ...rest }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {h("input", {
        id,
        class: `input ${look}`,
        autocomplete: "off",
        spellcheck: false,
        onInput: (event: InputEvent & { readonly currentTarget: HTMLInputElement }) =>
          change(event.currentTarget.value),
        ...rest,
      })}
    </div>
  );
}

/** Something to choose, and what it is called. */
export interface Option<T extends string> {
  readonly value: T;
  readonly label: string;
  readonly title?: string;
}

/** Options that are called what they are. */
export function named<T extends string>(values: readonly T[]): readonly Option<T>[] {
  return values.map((value) => ({ value, label: value }));
}

interface ChoicesProps<T extends string> {
  readonly label: string;
  readonly options: readonly Option<T>[];
  readonly value: T;
  readonly choose: (value: T) => void;
}

/** A few options, of which one holds. */
export function Choices<T extends string>(props: ChoicesProps<T>) {
  const { label, options, value, choose } = props;
  return (
    <fieldset class="choices" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => choose(option.value)}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}

interface SelectProps extends ChoicesProps<string> {
  /** True = its name is only for readers of screens. */
  readonly hidesName?: boolean;
}

/** One of many options. */
export function Select({ label, options, value, choose, hidesName = false }: SelectProps) {
  const id = useId();
  const field = (
    <select
      id={id}
      class="input"
      aria-label={hidesName ? label : undefined}
      value={value}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {options.map((option) => (
        <option key={option.value} value={option.value} title={option.title}>
          {option.label}
        </option>
      ))}
    </select>
  );
  if (hidesName) return field;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {field}
    </div>
  );
}

interface CheckProps {
  readonly label: string;
  readonly checked: boolean;
  readonly change: (checked: boolean) => void;
  readonly disabled?: boolean;
}

/** A box to tick. */
export function Check({ label, change, ...rest }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" onChange={(event) => change(event.currentTarget.checked)} {...rest} />
      {label}
    </label>
  );
}

interface NoticeProps {
  /** Omitted = neither good nor bad. */
  readonly tone?: Tone;
  /** Empty = there is nothing to be told. */
  readonly children?: ComponentChildren;
}

/** Something to be told at once. */
export function Notice({ tone, children }: NoticeProps) {
  if (children === undefined || children === null || children === "") return null;
  return (
    <div class={`notice ${tone ?? ""}`} role={tone === "bad" ? "alert" : "status"}>
      {children}
    </div>
  );
}

type Send = <T>(request: Promise<Result<T>>, done: string | ((body: T) => void)) => Promise<void>;

/** Sends a request that changes something, and tells in a message what came of it. */
export function useSend(): Send {
  const { toasts } = useApp();
  return async (request, done) => {
    const result = await request;
    if (result.kind === "failed") toasts.show("bad", failureText(result.failure));
    else if (typeof done === "string") toasts.show("good", done);
    else done(result.body);
  };
}

/** Why an action failed. */
export function ActionNotice({ failure }: Pick<Action, "failure">) {
  return <Notice tone="bad">{failure === null ? "" : failureText(failure)}</Notice>;
}

interface FormProps {
  readonly submit: () => void;
  readonly class?: string;
  readonly children: ComponentChildren;
}

/** Fields that are sent together. */
export function Form({ submit, class: name = "stack", children }: FormProps) {
  return (
    <form
      class={name}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {children}
    </form>
  );
}

interface QuestionProps<T> {
  readonly title: string;
  readonly verb: string;
  readonly danger?: boolean;
  readonly send: () => Promise<Result<T>>;
  /** Told in a message once it was done; omitted = `done` shows it. */
  readonly said?: string;
  readonly done: (body: T) => void;
  readonly close: () => void;
  readonly children: ComponentChildren;
}

/** A dialog that does something once its reader said so. */
export function Question<T>(props: QuestionProps<T>) {
  const { title, verb, danger = false, send, said, done, close, children } = props;
  const { toasts } = useApp();
  const action = useAction();
  const submit = (): void =>
    action.run(send(), (body) => {
      if (said !== undefined) toasts.show("good", said);
      done(body);
    });
  return (
    <Dialog title={title} close={close}>
      <Form submit={submit}>
        {children}
        <ActionNotice failure={action.failure} />
        <div class="dialog-foot">
          <Button press={close}>Cancel</Button>
          <Button look={danger ? "danger" : "primary"} disabled={action.busy}>
            {verb}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}

interface DialogProps {
  readonly title: string;
  readonly close: () => void;
  readonly children: ComponentChildren;
}

/** An open dialog; it is closed by no longer being rendered. */
export function Dialog({ title, close, children }: DialogProps) {
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
      class="dialog"
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <div class="dialog-head">
        <h2 id={heading}>{title}</h2>
        <Button look="icon plain" label="Close" press={close}>
          <Icon name="close" />
        </Button>
      </div>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
