// Cards that ask a question: confirm, text, select, colour.
import { type FormEvent, type ReactNode, useId } from "react";
import { choicesIn, confirmValues } from "../guess.ts";
import { inputOf, questionOf } from "../sentences.ts";
import { useDraft, useWords } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { useAnswer } from "./answer.ts";
import { AllowButton } from "./deliberate.tsx";
import { Button, type ButtonProps, Frame } from "./frame.tsx";
import { InputTable } from "./input.tsx";

type Card = { readonly view: CardView };

/** The buttons of a question that is typed or chosen. */
export function SendOrSkip({ view, ...sending }: Card & ButtonProps): ReactNode {
  const { isOff, skip } = useAnswer(view);
  const words = useWords();
  return (
    <>
      <Button look="main" {...sending}>{words.sendAnswer}</Button>
      <Button look="quiet" disabled={isOff} onClick={skip}>{words.skip}</Button>
    </>
  );
}

export function ConfirmCard({ view }: Card): ReactNode {
  const { isOff, answer } = useAnswer(view);
  const words = useWords();
  const { yes, no } = confirmValues(view.tool);
  const actions = (
    <>
      <AllowButton disabled={isOff} onAllow={() => answer(yes)}>{words.yes}</AllowButton>
      <Button disabled={isOff} onClick={() => answer(no)}>{words.no}</Button>
    </>
  );
  return <Frame view={view} title={askedIn(view)} context={words.confirmContext} actions={actions}><Rest view={view} /></Frame>;
}

/** The question. For a tool without a title, its only input if that is a question. */
function askedIn(view: CardView): string {
  const [only, ...others] = Object.values(inputOf(view));
  const isQuestion = others.length === 0 && typeof only === "string" && /[?？؟]\s*$/.test(only);
  return isQuestion && view.title === undefined && !view.tool?.title ? only : questionOf(view);
}

/** The part of the input that the title does not show: a person must be able to read what they answer. */
function Rest({ view }: Card): ReactNode {
  const title = askedIn(view);
  const rest = Object.entries(inputOf(view)).filter(([name, value]) => value !== title && value !== null && value !== "" && !TOLD_ELSEWHERE.has(name));
  return rest.length === 0 ? null : <InputTable input={Object.fromEntries(rest)} />;
}

/** Shown elsewhere: the options of a select card, and the time limit. */
const TOLD_ELSEWHERE: ReadonlySet<string> = new Set(["options", "timeout_sec", "timeoutSec"]);

const MANY = 10_000;

export function TextCard({ view }: Card): ReactNode {
  const { isOff, answer } = useAnswer(view);
  const words = useWords();
  const [text, setText] = useDraft(view, "text", "");
  const id = useId();
  const title = askedIn(view);
  const isTooLong = text.length > MANY;
  const isSendable = !isOff && text.trim() !== "" && !isTooLong;
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (isSendable) {
      answer(text);
    }
  };
  return (
    <Frame view={view} title={title} context={words.textContext} actions={<SendOrSkip view={view} type="submit" form={id} disabled={!isSendable} />}>
      <Rest view={view} />
      <form id={id} onSubmit={send}>
        <input className="fh-input" aria-label={title} aria-invalid={isTooLong} value={text} disabled={isOff} onChange={(event) => setText(event.target.value)} />
        {isTooLong && <p className="fh-context" role="alert">{words.tooLong(MANY)}</p>}
      </form>
    </Frame>
  );
}

const RADIOS_AT_MOST = 5;

export function SelectCard({ view }: Card): ReactNode {
  const { isOff, answer } = useAnswer(view);
  const words = useWords();
  const [chosen, setChosen] = useDraft(view, "chosen", "");
  const name = useId();
  const isSendable = !isOff && chosen !== "";
  const options = optionsOf(view);
  const label = askedIn(view);
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (isSendable) {
      answer(options[Number(chosen)]);
    }
  };
  return (
    <Frame view={view} title={label} context={words.chooseOne} actions={<SendOrSkip view={view} type="submit" form={name} disabled={!isSendable} />}>
      <Rest view={view} />
      <form id={name} onSubmit={send}>
        {options.length <= RADIOS_AT_MOST ? (
          <fieldset className="fh-radios" disabled={isOff}>
            <legend className="fh-hidden">{label}</legend>
            {options.map((option, index) => (
              <label key={index} className="fh-radio">
                <input type="radio" name={name} value={index} checked={chosen === String(index)} onChange={() => setChosen(String(index))} />
                <OptionWords text={String(option)} hasDetails={options.every((each) => DETAILED.test(String(each)))} />
              </label>
            ))}
          </fieldset>
        ) : (
          <select className="fh-input" aria-label={label} value={chosen} disabled={isOff} onChange={(event) => setChosen(event.target.value)}>
            <option value="" disabled>{words.chooseOne}</option>
            {options.map((option, index) => <option key={index} value={index}>{String(option)}</option>)}
          </select>
        )}
      </form>
    </Frame>
  );
}

/** `Low: any time this month`: a name and its meaning. */
const DETAILED = /^([^:]{1,24})(: )(.+)$/s;

/** If all options have a name and a meaning, they are shown on two lines; the whole text is sent. */
function OptionWords({ text, hasDetails }: { text: string; hasDetails: boolean }): ReactNode {
  const [, name, colon, meaning] = (hasDetails && DETAILED.exec(text)) || [];
  return name === undefined ? <span>{text}</span> : <span>{name}<span className="fh-hidden">{colon}</span><span className="fh-context fh-meaning">{meaning}</span></span>;
}

/** The options in the call's input, otherwise the values that its tool may return. */
function optionsOf(view: CardView): readonly unknown[] {
  const { options } = inputOf(view);
  return Array.isArray(options) ? options.map(String) : (choicesIn(view.tool) ?? []);
}

export function ColorCard({ view }: Card): ReactNode {
  const { isOff, answer } = useAnswer(view);
  const words = useWords();
  const [hex, setHex] = useDraft(view, "hex", "#3b5bdb");
  return (
    <Frame view={view} title={questionOf(view)} context={words.colorContext} actions={<SendOrSkip view={view} disabled={isOff} onClick={() => answer({ hex })} />}>
      <label className="fh-color">
        <input type="color" aria-label={questionOf(view)} value={hex} disabled={isOff} onChange={(event) => setHex(event.target.value)} />
        <code>{hex}</code>
      </label>
    </Frame>
  );
}
