// Cards that send a file: a chosen one, or a photo. The answer contains a reference to it.
import { type ChangeEvent, type DragEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { useNow } from "../card-memory.ts";
import { limitWords, questionOf } from "../sentences.ts";
import { useCardHost, useWords } from "../thread.tsx";
import { largestFile, upload, type UploadError } from "../upload.ts";
import type { CardView } from "../view.ts";
import { textIn } from "./abilities.tsx";
import { useAnswer } from "./answer.ts";
import { AllowButton } from "./deliberate.tsx";
import { Button, Frame, Note } from "./frame.tsx";

type Card = { readonly view: CardView };

interface Sending {
  readonly share: number | undefined;
  readonly fault: UploadError | undefined;
  readonly send: (file: File) => void;
  readonly cancel: () => void;
}

function useUpload(view: CardView): Sending {
  const { http } = useCardHost();
  const { answer } = useAnswer(view);
  const [share, setShare] = useState<number>();
  const [fault, setFault] = useState<UploadError>();
  const gone = useRef<AbortController>(undefined);
  const send = (file: File): void => {
    const { signal } = (gone.current = new AbortController());
    setFault(undefined);
    setShare(0);
    upload(http, file, setShare, signal).then(answer, (error: UploadError) => {
      setShare(undefined);
      setFault(error);
    });
  };
  const cancel = (): void => {
    gone.current?.abort();
    setShare(undefined);
  };
  return { share, fault, send, cancel };
}

/** The server's size limit, once it is known. */
function useLimit(): number | undefined {
  const { http } = useCardHost();
  const [limit, setLimit] = useState<number>();
  useEffect(() => void largestFile(http).then(setLimit), [http]);
  return limit;
}

export function FileCard({ view }: Card): ReactNode {
  const { isOff, skip } = useAnswer(view);
  const words = useWords();
  const { share, fault, send, cancel } = useUpload(view);
  const limit = useLimit();
  const isBusy = isOff || share !== undefined;
  const [isOver, setOver] = useState(false);
  const over = (event: DragEvent): void => {
    // otherwise the browser would open the file
    event.preventDefault();
    setOver(true);
  };
  const leave = ({ currentTarget, relatedTarget }: DragEvent): void => setOver(currentTarget.contains(relatedTarget as Node | null));
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    setOver(false);
    const file = event.dataTransfer.files[0];
    if (file !== undefined && !isBusy) {
      send(file);
    }
  };
  const actions = (
    <>
      <Chooser isOff={isBusy} look="main" onFile={send} />
      <SkipOrCancel isOff={isOff} skip={skip} cancel={share === undefined ? undefined : cancel} />
    </>
  );
  return (
    <Frame view={view} title={questionOf(view)} context={words.fileContext(limit === undefined ? undefined : limitWords(limit))} actions={actions} onDragOver={over} onDragLeave={leave} onDrop={drop}>
      {fault !== undefined && <Note tone="red" code={fault.code}>{fault.message}</Note>}
      <div className="fh-drop" data-over={isOver && !isBusy}>
        {share === undefined ? words.dropFile : <Progress share={share} />}
      </div>
    </Frame>
  );
}

/** While a file is uploaded, the button cancels the upload; otherwise it skips the question. */
function SkipOrCancel({ isOff, skip, cancel }: { isOff: boolean; skip: () => void; cancel: (() => void) | undefined }): ReactNode {
  const words = useWords();
  const name = cancel === undefined ? words.skip : words.cancel;
  // separate elements: a press that starts on one and ends on the other does nothing
  return <Button key={name} look="quiet" disabled={isOff} onClick={cancel ?? skip}>{name}</Button>;
}

function Progress({ share }: { share: number }): ReactNode {
  return <progress className="fh-progress" aria-label={useWords().sendingFile} max={1} value={share} />;
}

interface ChooserProps {
  readonly isOff: boolean;
  readonly look: "main" | "quiet";
  readonly onFile: (file: File) => void;
  readonly accept?: string;
}

function Chooser({ isOff, look, onFile, accept }: ChooserProps): ReactNode {
  const words = useWords();
  const input = useRef<HTMLInputElement>(null);
  const chosen = ({ target }: ChangeEvent<HTMLInputElement>): void => {
    const file = target.files?.[0];
    // otherwise the same file could not be chosen again after a failure
    target.value = "";
    if (file !== undefined) {
      onFile(file);
    }
  };
  return (
    <>
      <input ref={input} type="file" hidden accept={accept} aria-label={words.file} onChange={chosen} />
      <Button look={look} disabled={isOff} onClick={() => input.current?.click()}>{words.chooseFile}</Button>
    </>
  );
}

/** Two presses: the first starts the camera, which takes the photo after a countdown; the second sends the photo that is shown. */
export function PhotoCard({ view }: Card): ReactNode {
  const { isOff, skip } = useAnswer(view);
  const words = useWords();
  const { share, fault, send, cancel } = useUpload(view);
  const camera = useCamera(view);
  const isBusy = isOff || share !== undefined;
  const { photo } = camera;
  const title = questionOf(view, words);
  const actions = (
    <>
      {photo !== undefined ? (
        <>
          {/* it appears where "Take now" was: a press meant for that button must not send a photo that nobody has looked at */}
          <AllowButton disabled={isBusy} onAllow={() => send(photo)}>{words.usePhoto}</AllowButton>
          <Button disabled={isBusy} onClick={camera.start}>{words.takeAgain}</Button>
        </>
      ) : camera.isLive ? (
        <Button look="main" disabled={isBusy} onClick={camera.take}>{words.takeNow(camera.secondsLeft)}</Button>
      ) : (
        <Button look="main" disabled={isBusy || camera.isStarting} onClick={camera.start}>{camera.fault === undefined ? words.takePhoto : words.tryAgain}</Button>
      )}
      <Chooser isOff={isBusy} look="quiet" accept="image/*" onFile={send} />
      <SkipOrCancel isOff={isOff} skip={skip} cancel={share === undefined ? undefined : cancel} />
    </>
  );
  const isBlocked = camera.fault === "cameraBlocked";
  const context = isBlocked ? words.browserSaidNo : photo === undefined ? words.photoContext : words.photoSent;
  return (
    <Frame view={view} title={camera.fault === undefined ? title : words[camera.fault]} context={context} actions={actions}>
      {camera.fault !== undefined && <Note tone="red">{isBlocked ? words.allowCamera : words.chooseInstead}</Note>}
      {fault !== undefined && <Note tone="red" code={fault.code}>{fault.message}</Note>}
      <video ref={camera.video} className="fh-view" hidden={!camera.isLive} autoPlay playsInline muted onLoadedMetadata={bringCardInSight} aria-label={words.liveView} />
      {!camera.isLive && camera.fault === undefined && photo === undefined && <p className="fh-view fh-off">{words.cameraOff}</p>}
      {camera.preview !== undefined && <img className="fh-view" src={camera.preview} alt={words.photoTaken} onLoad={bringCardInSight} />}
      {share !== undefined && <Progress share={share} />}
    </Frame>
  );
}

/** The card grows with its picture; this keeps its buttons visible. */
function bringCardInSight({ currentTarget }: { currentTarget: Element }): void {
  currentTarget.closest(".fh-card")?.scrollIntoView({ block: "nearest" });
}

type CameraFault = "cameraBlocked" | "cameraBusy" | "cameraMissing";

function cameraFault({ name }: Error): CameraFault {
  return name === "NotAllowedError" ? "cameraBlocked" : name === "NotReadableError" ? "cameraBusy" : "cameraMissing";
}

interface CameraView {
  readonly video: { current: HTMLVideoElement | null };
  readonly isStarting: boolean;
  readonly isLive: boolean;
  /** Why the camera did not start, as a key of the words. */
  readonly fault: CameraFault | undefined;
  /** Seconds until the photo is taken automatically. */
  readonly secondsLeft: number;
  readonly photo: File | undefined;
  readonly preview: string | undefined;
  readonly start: () => void;
  readonly take: () => void;
}

/** Time to look at the live view and hold still. */
const AIM_MS = 3_000;

/** The camera is on from the press until the photo is taken or the card is unmounted. */
function useCamera(view: CardView): CameraView {
  const video = useRef<HTMLVideoElement>(null);
  const [stream, setStream] = useState<MediaStream>();
  const [isStarting, setStarting] = useState(false);
  const [fault, setFault] = useState<CameraFault>();
  const [photo, setPhoto] = useState<File>();
  const [dueAt, setDueAt] = useState(0);
  const preview = usePreview(photo);
  const isLive = stream !== undefined;
  const secondsLeft = Math.max(0, Math.ceil((dueAt - useNow(isLive)) / 1_000));
  const isGone = useRef(false);
  useEffect(() => () => stream?.getTracks().forEach((track) => track.stop()), [stream]);
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);
  const start = (): void => {
    setPhoto(undefined);
    setFault(undefined);
    setStarting(true);
    const facingMode = textIn(view, "camera") === "back" ? "environment" : "user";
    const asked = navigator.mediaDevices?.getUserMedia({ video: { facingMode } }) ?? Promise.reject(new Error());
    asked.then(
      (live) => {
        if (isGone.current) {
          // the person answered the browser's permission prompt after the card was closed
          live.getTracks().forEach((track) => track.stop());
          return;
        }
        setStream(live);
        setDueAt(Date.now() + AIM_MS);
        if (video.current !== null) {
          video.current.srcObject = live;
        }
      },
      (error: Error) => setFault(cameraFault(error)),
    ).finally(() => setStarting(false));
  };
  const take = (): void => {
    // there is nothing to take before the first frame
    if (video.current !== null && video.current.videoWidth > 0) {
      snapshot(video.current, (file) => {
        setPhoto(file);
        setStream(undefined);
      });
    }
  };
  useEffect(() => {
    if (!isLive) {
      return undefined;
    }
    const timer = setInterval(() => Date.now() >= dueAt && take(), 100);
    return () => clearInterval(timer);
  }, [isLive, dueAt]);
  return { video, isStarting, isLive, fault, secondsLeft, photo, preview, start, take };
}

function usePreview(photo: File | undefined): string | undefined {
  const [preview, setPreview] = useState<string>();
  useEffect(() => {
    const url = photo === undefined ? undefined : URL.createObjectURL(photo);
    setPreview(url);
    return () => url === undefined ? undefined : URL.revokeObjectURL(url);
  }, [photo]);
  return preview;
}

function snapshot(video: HTMLVideoElement, then: (file: File) => void): void {
  const canvas = document.createElement("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d")?.drawImage(video, 0, 0);
  canvas.toBlob((blob) => blob !== null && then(new File([blob], "photo.jpg", { type: blob.type })), "image/jpeg", 0.9);
}
