// Cards whose answer is something that only this browser can do. Each starts from a press: no script opens a page, reads a
// position or writes to the clipboard by itself.
import { openable } from "@farhand/client";
import { type ReactNode, useState } from "react";
import { useCardHost } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { questionOf } from "../words.ts";
import { useAnswer } from "./answer.ts";
import { Button, Frame, Note } from "./frame.tsx";

type Card = { readonly view: CardView };

function textIn({ call }: CardView, name: string): string {
  const value = call.phase === "writing" ? undefined : (call.input as Readonly<Record<string, unknown>> | null)?.[name];
  return typeof value === "string" ? value : "";
}

export function OpenPageCard({ view }: Card): ReactNode {
  const { isOff, answer, fail, skip } = useAnswer(view);
  const { openPage } = useCardHost();
  const text = textIn(view, "url");
  const url = openable(text);
  if (url === undefined) {
    const refuse = (): void => fail(`The page did not open "${text.slice(0, 200)}": only http and https addresses are opened.`);
    const wayOut = <Button look="main" disabled={isOff} onClick={refuse}>Do not open it</Button>;
    return (
      <Frame view={view} title="This page cannot be opened" context="Only http and https pages open" actions={wayOut}>
        <Note tone="red">{text.slice(0, 200)}</Note>
      </Frame>
    );
  }
  const beside = (): void => answer({ url: url.href, viewKey: openPage === undefined ? inTab(url) : openPage(url) });
  const apart = (): void => answer({ url: url.href, viewKey: inTab(url) });
  const actions = (
    <>
      <Button look="main" disabled={isOff} onClick={beside}>Open</Button>
      {openPage !== undefined && <Button disabled={isOff} onClick={apart}>Open in a new tab</Button>}
      <Button look="quiet" disabled={isOff} onClick={skip}>Skip</Button>
    </>
  );
  const context = openPage === undefined ? "In a new tab" : "Beside this chat";
  const note = openPage === undefined ? undefined : "The page does not open by itself: this chat has not shown this host yet.";
  return (
    <Frame view={view} title={`Open ${url.host}`} context={context} actions={actions}>
      {note !== undefined && <p>{note}</p>}
      <p className="fh-mono fh-line">{url.href}</p>
    </Frame>
  );
}

/** A press from the person passes the rules for pop-ups; the page learns nothing of the other one. */
export function inTab(url: URL): string {
  window.open(url.href, "_blank", "noopener,noreferrer");
  return `tab-${crypto.randomUUID().slice(0, 8)}`;
}

export function ClipboardCard({ view }: Card): ReactNode {
  const { isOff, answer, decline } = useAnswer(view);
  const [isBlocked, setBlocked] = useState(false);
  const text = textIn(view, "text");
  const lines = text.split("\n").length;
  const copy = (): void => {
    setBlocked(false);
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
    void copied.then(() => answer(true), () => setBlocked(true));
  };
  const actions = (
    <>
      <Button look="main" disabled={isOff} onClick={copy}>{isBlocked ? "Try again" : "Copy"}</Button>
      <Button look="quiet" disabled={isOff} onClick={decline}>No</Button>
    </>
  );
  const title = isBlocked ? "The clipboard is blocked" : `Copy ${lines === 1 ? "1 line" : `${lines} lines`} to the clipboard?`;
  return (
    <Frame view={view} title={title} context={isBlocked ? "The browser said no" : "Your clipboard is replaced"} actions={actions}>
      {isBlocked && <Note tone="red">Allow the clipboard for this site in the address bar, then try again.</Note>}
      <p className="fh-mono fh-line">{text.split("\n", 1)[0]}{lines > 1 ? " …" : ""}</p>
    </Frame>
  );
}

type Locating = "asking" | "finding" | "typing" | "blocked" | "unknown";

export function LocationCard({ view }: Card): ReactNode {
  const { isOff, answer, decline } = useAnswer(view);
  const [how, setHow] = useState<Locating>("asking");
  const share = (): void => {
    if (navigator.geolocation === undefined) {
      setHow("unknown");
      return;
    }
    setHow("finding");
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => answer(rounded(coords)),
      ({ code }) => setHow(code === PERMISSION_DENIED ? "blocked" : "unknown"),
      { timeout: 20_000 },
    );
  };
  if (how === "typing") {
    return <PlaceForm view={view} onSend={(place) => answer({ place })} onBack={() => setHow("asking")} isOff={isOff} />;
  }
  const isFaulty = how === "blocked" || how === "unknown";
  const actions = (
    <>
      <Button look="main" disabled={isOff || how === "finding"} onClick={share}>{isFaulty ? "Try again" : "Share once"}</Button>
      <Button disabled={isOff} onClick={() => setHow("typing")}>Type a place</Button>
      <Button look="quiet" disabled={isOff} onClick={decline}>{isFaulty ? "Skip" : "No"}</Button>
    </>
  );
  const title = { asking: "Share where you are?", finding: "Finding where you are", blocked: "Location is blocked", unknown: "Your place was not found" }[how];
  return (
    <Frame view={view} title={title} context={how === "blocked" ? "The browser said no" : textIn(view, "reason") || "Your browser will ask too"} actions={actions}>
      {how === "blocked" && <Note tone="red">Allow location for this site in the address bar, then try again.</Note>}
      {how === "unknown" && <Note tone="red">This browser could not tell where it is. Type a place instead.</Note>}
      {!isFaulty && <p>Sent once, rounded to about 20 m.</p>}
    </Frame>
  );
}

const PERMISSION_DENIED = 1;

function rounded({ latitude, longitude, accuracy }: GeolocationCoordinates): object {
  // four decimals are about 11 m, so two points of one cell are at most some 20 m apart
  const near = (value: number): number => Number(value.toFixed(4));
  return { lat: near(latitude), lon: near(longitude), accuracy: Math.max(20, Math.round(accuracy)) };
}

interface PlaceFormProps extends Card {
  readonly onSend: (place: string) => void;
  readonly onBack: () => void;
  readonly isOff: boolean;
}

function PlaceForm({ view, onSend, onBack, isOff }: PlaceFormProps): ReactNode {
  const [place, setPlace] = useState("");
  const actions = (
    <>
      <Button look="main" disabled={isOff || place.trim() === ""} onClick={() => onSend(place.trim())}>Send answer</Button>
      <Button look="quiet" disabled={isOff} onClick={onBack}>Back</Button>
    </>
  );
  return (
    <Frame view={view} title="Type a place" context={questionOf(view.call)} actions={actions}>
      <input className="fh-input" aria-label="Place" autoFocus value={place} disabled={isOff} onChange={(event) => setPlace(event.target.value)} />
    </Frame>
  );
}
