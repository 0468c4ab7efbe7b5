// A form that a tool asks for: fields made from its schema, or a page to open. What does not fit is told beside its field, and
// nothing is sent before all of it fits.
import { openable } from "@farhand/client";
import { type FormEvent, type ReactNode, useId, useState } from "react";
import { check, type Draft, type Field, type FieldDrafts, fieldsOf, firstDrafts, typedOf } from "../fields.ts";
import { useDraft } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { FORM_WORDS, questionOf } from "../words.ts";
import { useAnswer } from "./answer.ts";
import { Button, Frame, Note } from "./frame.tsx";
import { InputTable } from "./input.tsx";

type Card = { readonly view: CardView };

export function FormCard({ view }: Card): ReactNode {
  const { url } = inputOf(view);
  return typeof url === "string" ? <PageForm view={view} text={url} /> : <FieldForm view={view} />;
}

function inputOf({ call }: CardView): Readonly<Record<string, unknown>> {
  return call.phase === "writing" ? {} : (call.input as Readonly<Record<string, unknown>>);
}

function FieldForm({ view }: Card): ReactNode {
  const { isOff, answer } = useAnswer(view);
  const fields = fieldsOf(inputOf(view)["schema"]);
  const [drafts, setDrafts] = useDraft<FieldDrafts>(view, "fields", firstDrafts(fields));
  const [changed, setChanged] = useState<readonly string[]>([]);
  const [wasPressed, setPressed] = useState(false);
  const id = useId();
  const checked = fields.map((field) => check(field, drafts[field.name] ?? ""));
  const errorAt = (index: number): string => {
    const each = checked[index];
    return each !== undefined && "error" in each ? each.error : "";
  };
  const send = (event: FormEvent): void => {
    event.preventDefault();
    const wrong = fields.findIndex((_, index) => errorAt(index) !== "");
    if (wrong >= 0) {
      setPressed(true);
      document.getElementById(`${id}-${wrong}`)?.focus();
    } else if (!isOff) {
      const values = fields.flatMap(({ name }, index) => (checked[index] === undefined ? [] : [[name, (checked[index] as { value: unknown }).value]]));
      answer({ action: "accept", content: Object.fromEntries(values) });
    }
  };
  const change = (name: string, draft: Draft): void => {
    setDrafts({ ...drafts, [name]: draft });
    setChanged([...changed.filter((each) => each !== name), name]);
  };
  // Once the next field is changed, and not when the focus leaves: a line that comes between the two halves of a press would
  // move the button away from it. An empty field is no mistake before somebody wants to send it.
  const isTold = ({ name }: Field): boolean => wasPressed || (changed.slice(0, -1).includes(name) && drafts[name] !== "");
  return (
    <Frame view={view} title={questionOf(view.call)} context={FORM_WORDS.context} actions={<><Button look="main" type="submit" form={id} disabled={isOff}>{FORM_WORDS.send}</Button><WaysOut view={view} /></>}>
      <form id={id} className="fh-form" noValidate onSubmit={send}>
        {fields.map((field, index) => (
          <div key={field.name} className="fh-field">
            <FieldInput field={field} id={`${id}-${index}`} draft={drafts[field.name] ?? ""} error={isTold(field) ? errorAt(index) : ""} isOff={isOff} onChange={(draft) => change(field.name, draft)} />
          </div>
        ))}
      </form>
    </Frame>
  );
}

function WaysOut({ view }: Card): ReactNode {
  const { isOff, answer } = useAnswer(view);
  return (
    <>
      <Button disabled={isOff} onClick={() => answer({ action: "decline" })}>{FORM_WORDS.decline}</Button>
      <Button className="fh-button fh-quiet fh-last" disabled={isOff} onClick={() => answer({ action: "cancel" })}>{FORM_WORDS.close}</Button>
    </>
  );
}

interface FieldProps {
  readonly field: Field;
  readonly id: string;
  readonly draft: Draft;
  /** Empty if nothing is wrong. */
  readonly error: string;
  readonly isOff: boolean;
  readonly onChange: (draft: Draft) => void;
}

function FieldInput(props: FieldProps): ReactNode {
  const { field: { description }, id, error } = props;
  return (
    <>
      <Control {...props} />
      {description !== "" && <span id={`${id}-about`}>{description}</span>}
      {error !== "" && <span id={`${id}-error`} className="fh-bad">{error}</span>}
    </>
  );
}

function describedBy({ field: { description }, id, error }: FieldProps): { "aria-describedby"?: string } {
  const ids = [...(description === "" ? [] : [`${id}-about`]), ...(error === "" ? [] : [`${id}-error`])];
  return ids.length === 0 ? {} : { "aria-describedby": ids.join(" ") };
}

const RADIOS_AT_MOST = 5;

function Control(props: FieldProps): ReactNode {
  const { field } = props;
  switch (field.kind) {
    case "boolean":
      return <Tick {...props} />;
    case "many":
      return <Choices {...props} field={field} />;
    case "one":
      // a radio cannot be taken back, so what may stay empty is a list
      return field.isRequired && field.choices.length <= RADIOS_AT_MOST ? <Choices {...props} field={field} /> : <ChoiceList {...props} field={field} />;
    default:
      return <Line {...props} />;
  }
}

function Label({ field: { label, isRequired } }: { field: Field }): ReactNode {
  return <span>{isRequired ? label : `${label} ${FORM_WORDS.optional}`}</span>;
}

function Line(props: FieldProps): ReactNode {
  const { field, id, draft, error, isOff, onChange } = props;
  const shared = {
    id, className: "fh-input", value: String(draft), disabled: isOff, required: field.isRequired, "aria-invalid": error !== "", ...describedBy(props),
    onChange: ({ target }: { target: { value: string } }) => onChange(target.value),
  };
  // numbers are typed as text: a field for numbers keeps nothing of what is none
  const isNumber = field.kind !== "text";
  return (
    <label className="fh-field">
      <Label field={field} />
      {!isNumber && field.type === "long" ? <textarea {...shared} rows={3} /> : <input {...shared} {...(isNumber ? { type: "text", inputMode: "decimal" } : { type: field.type })} />}
    </label>
  );
}

function Tick(props: FieldProps): ReactNode {
  const { field, id, draft, isOff, onChange } = props;
  return (
    <label className="fh-radio">
      <input id={id} type="checkbox" checked={draft === true} disabled={isOff} {...describedBy(props)} onChange={({ target }) => onChange(target.checked)} />
      <span>{field.label}</span>
    </label>
  );
}

type ChoiceProps = FieldProps & { readonly field: Extract<Field, { kind: "one" | "many" }> };

function ChoiceList(props: ChoiceProps): ReactNode {
  const { field, id, draft, error, isOff, onChange } = props;
  return (
    <label className="fh-field">
      <Label field={field} />
      <select id={id} className="fh-input" value={String(draft)} disabled={isOff} required={field.isRequired} aria-invalid={error !== ""} {...describedBy(props)} onChange={({ target }) => onChange(target.value)}>
        <option value="" disabled={field.isRequired}>{field.isRequired ? FORM_WORDS.choose : FORM_WORDS.none}</option>
        {field.choices.map(({ value, title }) => <option key={value} value={value}>{title}</option>)}
      </select>
    </label>
  );
}

/** Radios for one of them, boxes for several. */
function Choices(props: ChoiceProps): ReactNode {
  const { field, id, draft, error, isOff, onChange } = props;
  const isMany = field.kind === "many";
  const chosen = typeof draft === "object" ? draft : [String(draft)];
  // in the order of the schema, whichever was ticked first
  const toggled = (value: string): readonly string[] => field.choices.map((each) => each.value).filter((each) => chosen.includes(each) !== (each === value));
  const group = isMany ? {} : { role: "radiogroup", "aria-required": true, "aria-invalid": error !== "" };
  return (
    <fieldset className="fh-radios" disabled={isOff} {...group} {...describedBy(props)}>
      <legend><Label field={field} /></legend>
      {field.choices.map(({ value, title }, index) => (
        <label key={value} className="fh-radio">
          <input id={index === 0 ? id : undefined} type={isMany ? "checkbox" : "radio"} name={id} checked={chosen.includes(value)} {...(isMany ? { "aria-invalid": error !== "" } : {})} onChange={() => onChange(isMany ? toggled(value) : value)} />
          <span>{title}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** A page in place of fields. It opens from a press on its link alone. */
function PageForm({ view, text }: { view: CardView; text: string }): ReactNode {
  const { isOff, answer } = useAnswer(view);
  const [wasOpened, setOpened] = useDraft(view, "opened", false);
  const url = openable(text);
  if (url === undefined) {
    return (
      <Frame view={view} title={questionOf(view.call)} context={FORM_WORDS.notOpenable} actions={<WaysOut view={view} />}>
        <Note tone="red">{text.slice(0, 200)}</Note>
      </Frame>
    );
  }
  const actions = (
    <>
      <a className={`fh-button fh-${wasOpened ? "plain" : "main"}`} href={url.href} target="_blank" rel="noopener noreferrer" onClick={() => setOpened(true)}>{FORM_WORDS.openPage}</a>
      <Button look={wasOpened ? "main" : "plain"} disabled={isOff} onClick={() => answer({ action: "accept" })}>{FORM_WORDS.done}</Button>
      <WaysOut view={view} />
    </>
  );
  return (
    <Frame view={view} title={questionOf(view.call)} context={FORM_WORDS.pageContext} actions={actions}>
      <p className="fh-host">{url.host}</p>
      <p className="fh-mono fh-line" title={url.href}>{url.href}</p>
    </Frame>
  );
}

/** What somebody had typed when the time ran out: still there to read and to copy. */
export function TypedFields({ view }: Card): ReactNode {
  const fields = fieldsOf(inputOf(view)["schema"]);
  const untouched = firstDrafts(fields);
  const [drafts] = useDraft<FieldDrafts>(view, "fields", untouched);
  const changed = fields.filter(({ name }) => String(drafts[name]) !== String(untouched[name]));
  return changed.length === 0 ? null : <><p>{FORM_WORDS.typed}</p><InputTable input={typedOf(changed, drafts)} /></>;
}
