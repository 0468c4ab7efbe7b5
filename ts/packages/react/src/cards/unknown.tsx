// A tool that this page has no card for: its input as JSON, and an answer as JSON.
import { type ReactNode, useState } from "react";
import { useDraft } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { useAnswer } from "./answer.ts";
import { Button, Frame, Note } from "./frame.tsx";

export function UnknownCard({ view }: { view: CardView }): ReactNode {
  const { isOff, answer, skip } = useAnswer(view);
  const [text, setText] = useDraft(view, "text", "");
  const [isWrong, setWrong] = useState(false);
  const send = (): void => {
    try {
      answer(JSON.parse(text) as unknown);
      setWrong(false);
    } catch {
      setWrong(true);
    }
  };
  const actions = (
    <>
      <Button look="main" disabled={isOff || text.trim() === ""} onClick={send}>Answer with JSON</Button>
      <Button look="quiet" disabled={isOff} onClick={skip}>Skip</Button>
    </>
  );
  const input = view.call.phase === "writing" ? {} : view.call.input;
  return (
    <Frame view={view} title={view.call.tool} context="This page does not know this tool" actions={actions}>
      <pre className="fh-json">{JSON.stringify(input, undefined, 2)}</pre>
      <textarea className="fh-input fh-mono" aria-label="Answer as JSON" aria-invalid={isWrong} rows={2} value={text} disabled={isOff} onChange={(event) => setText(event.target.value)} />
      {isWrong && <Note tone="red">This is not JSON. A text stands in double quotes.</Note>}
    </Frame>
  );
}
