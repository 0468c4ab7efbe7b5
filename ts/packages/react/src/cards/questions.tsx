// Cards that ask in words: confirm, text, select, colour.
import { type FormEvent, type ReactNode, useId } from "react";
import { useDraft } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { questionOf } from "../words.ts";
import { useAnswer } from "./answer.ts";
import { Button, Frame } from "./frame.tsx";

type Card = { readonly view: CardView };

export function ConfirmCard({ view }: Card): ReactNode {
  const { isOff, answer } = useAnswer(view);
  const actions = (
    <>
      <Button look="main" disabled={isOff} onClick={() => answer("yes")}>Yes</Button>
      <Button disabled={isOff} onClick={() => answer("no")}>No</Button>
    </>
  );
  return <Frame view={view} title={questionOf(view.call)} context="Yes or no, in this browser" actions={actions} />;
}

const MANY = 10_000;

export function TextCard({ view }: Card): ReactNode {
  const { isOff, answer, skip } = useAnswer(view);
  const [text, setText] = useDraft(view, "text", "");
  const id = useId();
  const isTooLong = text.length > MANY;
  const isSendable = !isOff && text.trim() !== "" && !isTooLong;
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (isSendable) {
      answer(text);
    }
  };
  const actions = (
    <>
      <Button look="main" type="submit" form={id} disabled={!isSendable}>Send answer</Button>
      <Button look="quiet" disabled={isOff} onClick={skip}>Skip</Button>
    </>
  );
  return (
    <Frame view={view} title={questionOf(view.call)} context="Type an answer" actions={actions}>
      <form id={id} onSubmit={send}>
        <input className="fh-input" aria-label={questionOf(view.call)} aria-invalid={isTooLong} value={text} disabled={isOff} onChange={(event) => setText(event.target.value)} />
        {isTooLong && <p className="fh-context" role="alert">{`At most ${MANY} characters.`}</p>}
      </form>
    </Frame>
  );
}

const RADIOS_AT_MOST = 5;

export function SelectCard({ view }: Card): ReactNode {
  const { isOff, answer, skip } = useAnswer(view);
  const [chosen, setChosen] = useDraft(view, "chosen", "");
  const name = useId();
  const isSendable = !isOff && chosen !== "";
  const options = optionsOf(view);
  const label = questionOf(view.call);
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (isSendable) {
      answer(options[Number(chosen)]);
    }
  };
  const actions = (
    <>
      <Button look="main" type="submit" form={name} disabled={!isSendable}>Send answer</Button>
      <Button look="quiet" disabled={isOff} onClick={skip}>Skip</Button>
    </>
  );
  return (
    <Frame view={view} title={label} context="Choose one" actions={actions}>
      <form id={name} onSubmit={send}>
        {options.length <= RADIOS_AT_MOST ? (
          <fieldset className="fh-radios" disabled={isOff}>
            <legend className="fh-hidden">{label}</legend>
            {options.map((option, index) => (
              <label key={index} className="fh-radio">
                <input type="radio" name={name} value={index} checked={chosen === String(index)} onChange={() => setChosen(String(index))} />
                <span>{option}</span>
              </label>
            ))}
          </fieldset>
        ) : (
          <select className="fh-input" aria-label={label} value={chosen} disabled={isOff} onChange={(event) => setChosen(event.target.value)}>
            <option value="" disabled>Choose one</option>
            {options.map((option, index) => <option key={index} value={index}>{option}</option>)}
          </select>
        )}
      </form>
    </Frame>
  );
}

function optionsOf({ call }: CardView): string[] {
  const { options } = (call.phase === "writing" ? {} : call.input) as { options?: unknown };
  return Array.isArray(options) ? options.map(String) : [];
}

export function ColorCard({ view }: Card): ReactNode {
  const { isOff, answer, skip } = useAnswer(view);
  const [hex, setHex] = useDraft(view, "hex", "#3b5bdb");
  const actions = (
    <>
      <Button look="main" disabled={isOff} onClick={() => answer({ hex })}>Send answer</Button>
      <Button look="quiet" disabled={isOff} onClick={skip}>Skip</Button>
    </>
  );
  return (
    <Frame view={view} title={questionOf(view.call)} context="Pick a colour" actions={actions}>
      <label className="fh-color">
        <input type="color" aria-label={questionOf(view.call)} value={hex} disabled={isOff} onChange={(event) => setHex(event.target.value)} />
        <code>{hex}</code>
      </label>
    </Frame>
  );
}
