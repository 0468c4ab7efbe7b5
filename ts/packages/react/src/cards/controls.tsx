// The fields of a form: a control for each kind, its description, and its error.
import { type ReactNode, useState } from "react";
import type { Draft, Field, FieldDrafts } from "../fields.ts";
import type { Filled } from "../form-values.ts";
import { useWords } from "../thread.tsx";
import { piecesOf } from "../visible-text.ts";

export interface FieldProps {
  readonly field: Field;
  readonly id: string;
  readonly draft: Draft;
  /** Empty if there is no error. */
  readonly error: string;
  readonly isOff: boolean;
  readonly onChange: (draft: Draft) => void;
}

interface FieldsProps {
  readonly fields: readonly Field[];
  readonly id: string;
  readonly drafts: FieldDrafts;
  readonly errors: readonly string[];
  readonly isOff: boolean;
  /** Whether the error of this field is shown yet. */
  readonly isTold: (field: Field) => boolean;
  readonly onChange: (name: string, draft: Draft) => void;
  /** Shown below a field. */
  readonly below?: (field: Field) => ReactNode;
}

export function Fields({ fields, id, drafts, errors, isOff, isTold, onChange, below }: FieldsProps): ReactNode {
  return fields.map((field, index) => (
    <div key={field.name} className="fh-field">
      <FieldInput field={field} id={`${id}-${index}`} draft={drafts[field.name] ?? ""} error={isTold(field) ? (errors[index] ?? "") : ""} isOff={isOff} onChange={(draft) => onChange(field.name, draft)} />
      {below?.(field)}
    </div>
  ));
}

export interface Filling {
  readonly isTold: (field: Field) => boolean;
  readonly change: (name: string, draft: Draft) => void;
  /** Whether the form can be sent. If not, shows all errors and focuses the first wrong field. */
  readonly mayLeave: (filled: Filled) => boolean;
}

/** Errors are shown once the next field is changed, not when a field loses the focus: a line that appears between pointer-down and
 * pointer-up would move the button away. An empty field is no error before somebody tries to send the form. */
export function useFilling(id: string, drafts: FieldDrafts, setDrafts: (drafts: FieldDrafts) => void): Filling {
  const [changed, setChanged] = useState<readonly string[]>([]);
  const [wasPressed, setPressed] = useState(false);
  return {
    isTold: ({ name }) => wasPressed || (changed.slice(0, -1).includes(name) && drafts[name] !== ""),
    change: (name, draft) => {
      setDrafts({ ...drafts, [name]: draft });
      setChanged([...changed.filter((each) => each !== name), name]);
    },
    mayLeave: ({ errors }) => {
      const wrong = errors.findIndex((error) => error !== "");
      if (wrong >= 0) {
        setPressed(true);
        document.getElementById(`${id}-${wrong}`)?.focus();
      }
      return wrong < 0;
    },
  };
}

function FieldInput(props: FieldProps): ReactNode {
  const { id, error } = props;
  const words = useWords();
  const about = aboutOf(props.field, words.onePerLine);
  return (
    <>
      <Control {...props} />
      {about !== "" && <span id={`${id}-about`}>{about}</span>}
      {error !== "" && <span id={`${id}-error`} className="fh-bad">{error}</span>}
    </>
  );
}

function aboutOf({ kind, description }: Field, onePerLine: string): string {
  return kind === "list" ? [description, onePerLine].filter((each) => each !== "").join(" ") : description;
}

function describedBy({ field, id, error }: FieldProps): { "aria-describedby"?: string } {
  const ids = [...(aboutOf(field, "-") === "" ? [] : [`${id}-about`]), ...(error === "" ? [] : [`${id}-error`])];
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
      // radio buttons cannot be cleared, so an optional choice is a list
      return field.isRequired && field.choices.length <= RADIOS_AT_MOST ? <Choices {...props} field={field} /> : <ChoiceList {...props} field={field} />;
    default:
      return <Line {...props} />;
  }
}

function useLabel({ label: given, isRequired }: Field): string {
  const words = useWords();
  // a name may come from a model and contain invisible characters
  const label = piecesOf(given).map(({ text }) => text).join("") || words.answer;
  return isRequired ? label : `${label} ${words.optional}`;
}

function Line(props: FieldProps): ReactNode {
  const { field, id, draft, error, isOff, onChange } = props;
  const label = useLabel(field);
  const shared = {
    id, className: field.kind === "json" ? "fh-input fh-mono" : "fh-input", value: String(draft), disabled: isOff, required: field.isRequired, "aria-invalid": error !== "", ...describedBy(props),
    onChange: ({ target }: { target: { value: string } }) => onChange(target.value),
  };
  // numbers are typed as text: a number field discards anything that is not a number
  const isLong = field.kind === "list" || field.kind === "json" || (field.kind === "text" && field.type === "long");
  const rows = Math.min(8, Math.max(field.kind === "json" ? 1 : 3, String(draft).split("\n").length));
  return (
    <label className="fh-field">
      <span>{label}</span>
      {isLong ? <textarea {...shared} rows={rows} /> : <input {...shared} {...(field.kind === "text" ? { type: field.type } : { type: "text", inputMode: "decimal" })} />}
    </label>
  );
}

function Tick(props: FieldProps): ReactNode {
  const { field, id, draft, isOff, onChange } = props;
  const label = useLabel({ ...field, isRequired: true });
  return (
    <label className="fh-radio">
      <input id={id} type="checkbox" checked={draft === true} disabled={isOff} {...describedBy(props)} onChange={({ target }) => onChange(target.checked)} />
      <span>{label}</span>
    </label>
  );
}

type ChoiceProps = FieldProps & { readonly field: Extract<Field, { kind: "one" | "many" }> };

function ChoiceList(props: ChoiceProps): ReactNode {
  const { field, id, draft, error, isOff, onChange } = props;
  const words = useWords();
  const label = useLabel(field);
  return (
    <label className="fh-field">
      <span>{label}</span>
      <select id={id} className="fh-input" value={String(draft)} disabled={isOff} required={field.isRequired} aria-invalid={error !== ""} {...describedBy(props)} onChange={({ target }) => onChange(target.value)}>
        <option value="" disabled={field.isRequired}>{field.isRequired ? words.chooseOne : words.noChoice}</option>
        {field.choices.map(({ value, title }) => <option key={value} value={value}>{title}</option>)}
      </select>
    </label>
  );
}

/** Radio buttons for one choice, checkboxes for several. */
function Choices(props: ChoiceProps): ReactNode {
  const { field, id, draft, error, isOff, onChange } = props;
  const label = useLabel(field);
  const isMany = field.kind === "many";
  const chosen = typeof draft === "object" ? draft : [String(draft)];
  // in the order of the schema, whatever order they were checked in
  const toggled = (value: string): readonly string[] => field.choices.map((each) => each.value).filter((each) => chosen.includes(each) !== (each === value));
  const group = isMany ? {} : { role: "radiogroup", "aria-required": true, "aria-invalid": error !== "" };
  return (
    <fieldset className="fh-radios" disabled={isOff} {...group} {...describedBy(props)}>
      <legend><span>{label}</span></legend>
      {field.choices.map(({ value, title }, index) => (
        <label key={value} className="fh-radio">
          <input id={index === 0 ? id : undefined} type={isMany ? "checkbox" : "radio"} name={id} checked={chosen.includes(value)} {...(isMany ? { "aria-invalid": error !== "" } : {})} onChange={() => onChange(isMany ? toggled(value) : value)} />
          <span>{title}</span>
        </label>
      ))}
    </fieldset>
  );
}
