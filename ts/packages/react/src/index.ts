export { ToolCard } from "./cards/card.tsx";
export { Button, type ButtonProps, Frame, type FrameProps, Note } from "./cards/frame.tsx";
export { CardList, ConnectionLine } from "./cards/list.tsx";
export { type CardHost, CardHostProvider, type HostOptions, useCardHost, useThread } from "./thread.tsx";
export { upload, type UploadedFile } from "./upload.ts";
export { type CardState, type CardView, isWaiting, type Kind, viewOf } from "./view.ts";
