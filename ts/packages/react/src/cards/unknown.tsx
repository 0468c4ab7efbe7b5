// The card of a tool that no form can be made for: its description, its input, and an answer as text or JSON.
import { type ReactNode, useState } from "react";
import { inputOf, toolTitle } from "../sentences.ts";
import { useDraft, useWords } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { useAnswer } from "./answer.ts";
import { Frame, Note } from "./frame.tsx";
import { InputTable } from "./input.tsx";
import { SendOrSkip } from "./questions.tsx";

export function UnknownCard({ view }: { view: CardView }): ReactNode {
  const { isOff, answer } = useAnswer(view);
  const words = useWords();
  const [text, setText] = useDraft(view, "text", "");
  const [isWrong, setWrong] = useState(false);
  const read = jsonIn(text);
  const schema = view.tool?.outputSchema;
  // without an output schema, text is as valid as JSON
  const isFree = view.tool !== undefined && schema == null;
  const send = (): void => {
    setWrong(read === undefined && !isFree);
    if (read !== undefined || isFree) {
      answer(read === undefined ? text : read.value);
    }
  };
  const input = inputOf(view);
  return (
    <Frame view={view} title={toolTitle(view)} context={view.tool?.description?.split("\n", 1)[0] || view.call.tool} aside={<code className="fh-mono">{view.call.tool}</code>} actions={<SendOrSkip view={view} disabled={isOff || text.trim() === ""} onClick={send} />}>
      {Object.keys(input).length > 0 && <InputTable input={input} />}
      {schema != null && <pre className="fh-json" tabIndex={0}>{JSON.stringify(schema, undefined, 1)}</pre>}
      <label className="fh-field">
        <span>{isFree ? words.answer : words.answerJson}</span>
        <textarea className="fh-input fh-mono" aria-invalid={isWrong} rows={2} value={text} disabled={isOff} onChange={(event) => setText(event.target.value)} />
      </label>
      {isFree && text.trim() !== "" && <p className="fh-context">{read === undefined ? words.sentAsText : words.sentAsJson}</p>}
      {isWrong && read === undefined && <Note tone="red">{words.notJson}</Note>}
    </Frame>
  );
}

function jsonIn(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}
