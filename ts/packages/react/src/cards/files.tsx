// Cards that bring a file: picked, or a photo that is taken here. What goes back is a reference.
import { type DragEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { useCardHost } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { limitWords, questionOf } from "../words.ts";
import { largestFile, upload } from "../upload.ts";
import { useAnswer } from "./answer.ts";
import { Button, Frame, Note } from "./frame.tsx";

type Card = { readonly view: CardView };

interface Sending {
  readonly share: number | undefined;
  readonly fault: string | undefined;
  readonly send: (file: File) => void;
}

function useUpload(view: CardView): Sending {
  const { http } = useCardHost();
  const { answer } = useAnswer(view);
  const [share, setShare] = useState<number>();
  const [fault, setFault] = useState<string>();
  const send = (file: File): void => {
    setFault(undefined);
    setShare(0);
    upload(http, file, setShare).then(answer, (error: Error) => {
      setShare(undefined);
      setFault(error.message);
    });
  };
  return { share, fault, send };
}

/** What the server takes, once it has said so. */
function useLimit(): number | undefined {
  const { http } = useCardHost();
  const [limit, setLimit] = useState<number>();
  useEffect(() => void largestFile(http).then(setLimit), [http]);
  return limit;
}

export function FileCard({ view }: Card): ReactNode {
  const { isOff, skip } = useAnswer(view);
  const { share, fault, send } = useUpload(view);
  const limit = useLimit();
  const isBusy = isOff || share !== undefined;
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    const file = event.dataTransfer.files[0];
    if (file !== undefined && !isBusy) {
      send(file);
    }
  };
  const actions = (
    <>
      <Chooser isOff={isBusy} look="main" onFile={send} />
      <Button look="quiet" disabled={isBusy} onClick={skip}>Skip</Button>
    </>
  );
  return (
    <Frame view={view} title={questionOf(view.call)} context={limit === undefined ? "One file" : `One file, up to ${limitWords(limit)}`} actions={actions}>
      {fault !== undefined && <Note tone="red">{fault}</Note>}
      <div className="fh-drop" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
        {share === undefined ? "Drop a file here" : <Progress share={share} />}
      </div>
    </Frame>
  );
}

function Progress({ share }: { share: number }): ReactNode {
  return <progress className="fh-progress" aria-label="Sending the file" max={1} value={share} />;
}

interface ChooserProps {
  readonly isOff: boolean;
  readonly look: "main" | "quiet";
  readonly onFile: (file: File) => void;
  readonly accept?: string;
}

function Chooser({ isOff, look, onFile, accept }: ChooserProps): ReactNode {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input ref={input} type="file" hidden accept={accept} aria-label="File" onChange={(event) => event.target.files?.[0] && onFile(event.target.files[0])} />
      <Button look={look} disabled={isOff} onClick={() => input.current?.click()}>Choose a file</Button>
    </>
  );
}

export function PhotoCard({ view }: Card): ReactNode {
  const { isOff, skip } = useAnswer(view);
  const { share, fault, send } = useUpload(view);
  const camera = useCamera(view);
  const isBusy = isOff || share !== undefined;
  const actions = (
    <>
      {camera.photo === undefined ? (
        <Button look="main" disabled={isBusy} onClick={camera.isLive ? camera.take : camera.start}>{camera.isBlocked ? "Try again" : "Take photo"}</Button>
      ) : (
        <>
          <Button look="main" disabled={isBusy} onClick={() => camera.photo && send(camera.photo)}>Use photo</Button>
          <Button disabled={isBusy} onClick={camera.start}>Take again</Button>
        </>
      )}
      <Chooser isOff={isBusy} look="quiet" accept="image/*" onFile={send} />
      <Button look="quiet" disabled={isBusy} onClick={skip}>Skip</Button>
    </>
  );
  return (
    <Frame view={view} title={camera.isBlocked ? "The camera is blocked" : "Take a photo"} context={camera.isBlocked ? "The browser said no" : "Uses your camera once"} actions={actions}>
      {camera.isBlocked && <Note tone="red">Allow the camera for this site in the address bar, then try again.</Note>}
      {fault !== undefined && <Note tone="red">{fault}</Note>}
      <video ref={camera.video} className="fh-view" hidden={!camera.isLive} autoPlay playsInline muted aria-label="Live view" />
      {camera.preview !== undefined && <img className="fh-view" src={camera.preview} alt="The photo you took" />}
      {share !== undefined && <Progress share={share} />}
    </Frame>
  );
}

interface CameraView {
  readonly video: { current: HTMLVideoElement | null };
  readonly isLive: boolean;
  readonly isBlocked: boolean;
  readonly photo: File | undefined;
  readonly preview: string | undefined;
  readonly start: () => void;
  readonly take: () => void;
}

/** The camera is on from a press until the photo is taken or the card is gone. */
function useCamera({ call }: CardView): CameraView {
  const video = useRef<HTMLVideoElement>(null);
  const [stream, setStream] = useState<MediaStream>();
  const [isBlocked, setBlocked] = useState(false);
  const [photo, setPhoto] = useState<File>();
  const preview = usePreview(photo);
  useEffect(() => () => stream?.getTracks().forEach((track) => track.stop()), [stream]);
  const start = (): void => {
    setPhoto(undefined);
    setBlocked(false);
    const facingMode = (call.phase === "ready" && call.input["camera"]) === "back" ? "environment" : "user";
    const asked = navigator.mediaDevices?.getUserMedia({ video: { facingMode } }) ?? Promise.reject(new Error("no camera"));
    asked.then(
      (live) => {
        setStream(live);
        if (video.current !== null) {
          video.current.srcObject = live;
        }
      },
      () => setBlocked(true),
    );
  };
  const take = (): void => {
    if (video.current !== null) {
      snapshot(video.current, (file) => {
        setPhoto(file);
        setStream(undefined);
      });
    }
  };
  return { video, isLive: stream !== undefined, isBlocked, photo, preview, start, take };
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
