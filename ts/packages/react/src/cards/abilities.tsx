// Cards whose answer needs an ability of the browser. Each starts with a press: no script opens a page, reads a position or writes to the
// clipboard on its own.
import { openable, randomId } from "@farhand/client";
import { type FormEvent, type ReactNode, useId, useRef, useState } from "react";
import { inputOf, questionOf } from "../sentences.ts";
import { useCardHost, useDraft, useWords } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { useAnswer } from "./answer.ts";
import { AllowButton } from "./deliberate.tsx";
import { Button, Frame, Note } from "./frame.tsx";
import { Lines } from "./input.tsx";

type Card = { readonly view: CardView };

export function textIn(view: CardView, name: string): string {
  const value = inputOf(view)[name];
  return typeof value === "string" ? value : "";
}

export function OpenPageCard({ view }: Card): ReactNode {
  const { isOff, answer, fail, skip } = useAnswer(view);
  const { openPage } = useCardHost();
  const words = useWords();
  const text = textIn(view, "url");
  const url = openable(text);
  if (url === undefined) {
    const refuse = (): void => fail(`The page did not open "${text.slice(0, 200)}": only http and https addresses are opened.`);
    const wayOut = <Button look="main" disabled={isOff} onClick={refuse}>{words.doNotOpen}</Button>;
    return (
      <Frame view={view} title={words.cannotOpen} context={words.onlyHttp} actions={wayOut}>
        <Note tone="red">{text.slice(0, 200)}</Note>
      </Frame>
    );
  }
  const beside = (): void => answer({ url: url.href, viewKey: openPage === undefined ? inTab(url) : openPage(url) });
  const apart = (): void => answer({ url: url.href, viewKey: inTab(url) });
  const actions = (
    <>
      <Button look="main" disabled={isOff} onClick={beside}>{words.open}</Button>
      {openPage !== undefined && <Button disabled={isOff} onClick={apart}>{words.openNewTab}</Button>}
      <Button look="quiet" disabled={isOff} onClick={skip}>{words.skip}</Button>
    </>
  );
  return (
    <Frame view={view} title={words.openTitle(url.host)} context={openPage === undefined ? words.openInTab : words.openBeside} actions={actions}>
      {openPage !== undefined && <p>{words.firstLink}</p>}
      <p className="fh-mono fh-line">{url.href}</p>
    </Frame>
  );
}

/** A press by the person passes the pop-up blocker; with `noopener`, neither page has access to the other. */
export function inTab(url: URL): string {
  window.open(url.href, "_blank", "noopener,noreferrer");
  return `tab-${randomId().slice(0, 8)}`;
}

export function ClipboardCard({ view }: Card): ReactNode {
  const { isOff, answer, decline } = useAnswer(view);
  const words = useWords();
  const [isBlocked, setBlocked] = useState(false);
  const text = textIn(view, "text");
  const copy = (): void => {
    setBlocked(false);
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
    void copied.then(() => answer(true), () => setBlocked(true));
  };
  const actions = (
    <>
      <Button look="main" disabled={isOff} onClick={copy}>{isBlocked ? words.tryAgain : words.copy}</Button>
      <Button look="quiet" disabled={isOff} onClick={decline}>{words.no}</Button>
    </>
  );
  return (
    <Frame view={view} title={isBlocked ? words.clipboardBlocked : words.copyTitle(text.split("\n").length)} context={isBlocked ? words.browserSaidNo : words.copyContext} actions={actions}>
      {isBlocked && <Note tone="red">{words.allowClipboard}</Note>}
      <Lines text={text} />
    </Frame>
  );
}

type Locating = "asking" | "finding" | "typing" | "blocked" | "unknown";

export function LocationCard({ view }: Card): ReactNode {
  const { isOff, answer, decline } = useAnswer(view);
  const words = useWords();
  const [place] = useDraft(view, "text", "");
  // whoever has started typing continues there
  const [how, setHow] = useState<Locating>(place === "" ? "asking" : "typing");
  // the browser's request for the position cannot be cancelled: if the person no longer wants to share it, it is discarded
  const search = useRef(0);
  const stop = (): number => ++search.current;
  const share = (): void => {
    if (navigator.geolocation === undefined) {
      setHow("unknown");
      return;
    }
    setHow("finding");
    const own = stop();
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => own === search.current && answer(rounded(coords)),
      ({ code }) => own === search.current && setHow(code === PERMISSION_DENIED ? "blocked" : "unknown"),
      { timeout: 20_000 },
    );
  };
  const type = (): void => {
    stop();
    setHow("typing");
  };
  if (how === "typing") {
    return <PlaceForm view={view} onSend={(place) => answer({ place })} onBack={() => setHow("asking")} isOff={isOff} />;
  }
  const isFaulty = how === "blocked" || how === "unknown";
  const actions = (
    <>
      <AllowButton disabled={isOff || how === "finding"} onAllow={share}>{isFaulty ? words.tryAgain : words.shareOnce}</AllowButton>
      <Button disabled={isOff} onClick={type}>{words.typePlace}</Button>
      <Button look="quiet" disabled={isOff} onClick={decline}>{isFaulty ? words.skip : words.no}</Button>
    </>
  );
  const title = { asking: words.shareTitle, finding: words.finding, blocked: words.locationBlocked, unknown: words.notFound }[how];
  return (
    <Frame view={view} title={title} context={how === "blocked" ? words.browserSaidNo : textIn(view, "reason") || words.shareContext} actions={actions}>
      {how === "blocked" && <Note tone="red">{words.allowLocation}</Note>}
      {how === "unknown" && <Note tone="red">{words.typeInstead}</Note>}
      {!isFaulty && <p>{words.rounded}</p>}
    </Frame>
  );
}

const PERMISSION_DENIED = 1;

function rounded({ latitude, longitude, accuracy }: GeolocationCoordinates): object {
  // four decimals are about 11 m, so two points of one cell are at most about 20 m apart
  const near = (value: number): number => Number(value.toFixed(4));
  return { lat: near(latitude), lon: near(longitude), accuracy: Math.max(20, Math.round(accuracy)) };
}

interface PlaceFormProps extends Card {
  readonly onSend: (place: string) => void;
  readonly onBack: () => void;
  readonly isOff: boolean;
}

function PlaceForm({ view, onSend, onBack, isOff }: PlaceFormProps): ReactNode {
  const words = useWords();
  const [place, setPlace] = useDraft(view, "text", "");
  const id = useId();
  const isSendable = !isOff && place.trim() !== "";
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (isSendable) {
      onSend(place.trim());
    }
  };
  const actions = (
    <>
      <Button look="main" type="submit" form={id} disabled={!isSendable}>{words.sendAnswer}</Button>
      <Button look="quiet" disabled={isOff} onClick={onBack}>{words.back}</Button>
    </>
  );
  return (
    <Frame view={view} title={words.typePlace} context={questionOf(view, words)} actions={actions}>
      <form id={id} onSubmit={send}>
        <input className="fh-input" aria-label={words.place} autoFocus value={place} disabled={isOff} onChange={(event) => setPlace(event.target.value)} />
      </form>
    </Frame>
  );
}
