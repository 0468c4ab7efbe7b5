// Forms made from a schema: a form that a tool asks for, a page to open instead, or the answer of any tool whose output has fields.
// Errors are shown next to their fields, and nothing is sent until all fields are valid.
import { openable } from "@farhand/client";
import { type FormEvent, type ReactNode, useId } from "react";
import { areDrafts } from "../drafts.ts";
import { answerFields, type Field, type FieldDrafts, fieldsOf, firstDrafts } from "../fields.ts";
import { filled, typedOf } from "../form-values.ts";
import { returnsNothing } from "../guess.ts";
import { inputOf, questionOf } from "../sentences.ts";
import { useDraft, useWords } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { useAnswer } from "./answer.ts";
import { Fields, useFilling } from "./controls.tsx";
import { AllowButton } from "./deliberate.tsx";
import { Button, Frame, Note } from "./frame.tsx";
import { InputTable } from "./input.tsx";
import { UnknownCard } from "./unknown.tsx";

type Card = { readonly view: CardView };

export function FormCard({ view }: Card): ReactNode {
  const { url } = inputOf(view);
  if (isAsked(view)) {
    return typeof url === "string" ? <PageForm view={view} text={url} /> : <AskedForm view={view} />;
  }
  const fields = returnsNothing(view.tool) ? [] : answerFields(view.tool?.outputSchema);
  return fields === undefined ? <UnknownCard view={view} /> : <ToolForm view={view} fields={fields} />;
}

/** Whether the call's input contains the form, as for a form that a server tool asks for. */
function isAsked(view: CardView): boolean {
  return view.call.tool === ASKED || inputOf(view)["schema"] !== undefined;
}

const ASKED = "answer_form";

function AskedForm({ view }: Card): ReactNode {
  const { answer } = useAnswer(view);
  const words = useWords();
  return (
    <FieldForm view={view} fields={fieldsOf(inputOf(view)["schema"])} button={words.send} onSend={(content) => answer({ action: "accept", content })} waysOut={<WaysOut view={view} />} />
  );
}

/** The output of a tool, field by field; without fields, the person only says that it is done. Its input is shown above, unless the title contains it. */
function ToolForm({ view, fields }: Card & { fields: readonly Field[] }): ReactNode {
  const { isOff, answer, skip } = useAnswer(view);
  const words = useWords();
  const title = questionOf(view);
  const rest = Object.fromEntries(Object.entries(inputOf(view)).filter(([, value]) => value !== title));
  const skipping = <Button look="quiet" disabled={isOff} onClick={skip}>{words.skip}</Button>;
  const asking = fields.length === 0 ? { context: words.doneContext, button: words.done, onSend: () => answer(null) } : { button: words.sendAnswer, onSend: answer };
  return (
    <FieldForm view={view} fields={fields} {...asking} waysOut={skipping}>
      {Object.keys(rest).length > 0 && <InputTable input={rest} />}
    </FieldForm>
  );
}

interface FieldFormProps extends Card {
  readonly fields: readonly Field[];
  readonly context?: string;
  readonly button: string;
  readonly onSend: (value: unknown) => void;
  readonly waysOut: ReactNode;
  readonly children?: ReactNode;
}

function FieldForm({ view, fields, context, button, onSend, waysOut, children }: FieldFormProps): ReactNode {
  const { isOff } = useAnswer(view);
  const words = useWords();
  const [drafts, setDrafts] = useDraft<FieldDrafts>(view, "fields", firstDrafts(fields), areDrafts);
  const id = useId();
  const { isTold, change, mayLeave } = useFilling(id, drafts, setDrafts);
  const content = filled(fields, drafts, words);
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (mayLeave(content) && !isOff) {
      onSend(content.value);
    }
  };
  // a form without fields can be accepted only by its button
  const sending = fields.length === 0
    ? <AllowButton disabled={isOff} onAllow={() => onSend(content.value)}>{button}</AllowButton>
    : <Button look="main" type="submit" form={id} disabled={isOff}>{button}</Button>;
  return (
    <Frame view={view} title={questionOf(view)} context={context ?? words.formContext} actions={<>{sending}{waysOut}</>}>
      {children}
      <form id={id} className="fh-form" noValidate onSubmit={send}>
        <Fields fields={fields} id={id} drafts={drafts} errors={content.errors} isOff={isOff} isTold={isTold} onChange={change} />
      </form>
    </Frame>
  );
}

function WaysOut({ view }: Card): ReactNode {
  const { isOff, answer } = useAnswer(view);
  const words = useWords();
  return (
    <>
      <Button disabled={isOff} onClick={() => answer({ action: "decline" })}>{words.decline}</Button>
      <Button className="fh-button fh-quiet fh-last" disabled={isOff} onClick={() => answer({ action: "cancel" })}>{words.close}</Button>
    </>
  );
}

/** A page instead of fields. It opens only when the person clicks its link. */
function PageForm({ view, text }: { view: CardView; text: string }): ReactNode {
  const { isOff, answer } = useAnswer(view);
  const words = useWords();
  const [wasOpened, setOpened] = useDraft(view, "opened", false);
  const url = openable(text);
  if (url === undefined) {
    return (
      <Frame view={view} title={questionOf(view)} context={words.onlyHttp} actions={<WaysOut view={view} />}>
        <Note tone="red">{text.slice(0, 200)}</Note>
      </Frame>
    );
  }
  const actions = (
    <>
      <a className={`fh-button fh-${wasOpened ? "plain" : "main"}`} href={url.href} target="_blank" rel="noopener noreferrer" onClick={() => setOpened(true)}>{words.openPage}</a>
      <Button look={wasOpened ? "main" : "plain"} disabled={isOff} onClick={() => answer({ action: "accept" })}>{words.done}</Button>
      <WaysOut view={view} />
    </>
  );
  return (
    <Frame view={view} title={questionOf(view)} context={words.pageContext} actions={actions}>
      <p className="fh-host">{url.host}</p>
      <p className="fh-mono fh-line" title={url.href}>{url.href}</p>
    </Frame>
  );
}

/** What the person had typed when the time ran out, still readable and copyable. */
export function Typed({ view }: Card): ReactNode {
  const words = useWords();
  const fields = isAsked(view) ? fieldsOf(inputOf(view)["schema"]) : (answerFields(view.tool?.outputSchema) ?? []);
  const [drafts] = useDraft<FieldDrafts>(view, "fields", firstDrafts(fields), areDrafts);
  const [text] = useDraft(view, "text", "");
  const typed = { ...typedOf(fields, drafts, words), ...(text.trim() === "" ? {} : { [words.answer]: text }) };
  return Object.keys(typed).length === 0 ? null : <><p>{words.typed}</p><InputTable input={typed} /></>;
}
