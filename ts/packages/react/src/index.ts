export { ToolCard } from "./cards/card.tsx";
export { isNowhere, useCardFocus } from "./cards/focus.ts";
export { Button, type ButtonProps, Frame, type FrameProps, Note } from "./cards/frame.tsx";
export { CardList, ConnectionLine } from "./cards/list.tsx";
export { Rows } from "./cards/rows.tsx";
export { type CardHost, CardHostProvider, type CardMemory, type HostOptions, type ThreadHost, useCardHost, useDraft, useMemory, useNow, useThread } from "./thread.tsx";
export { upload, type UploadedFile } from "./upload.ts";
export { type CardState, type CardView, type Ended, isAskedElsewhere, isWaiting, type Kind, type Known, viewOf } from "./view.ts";
export { questionOf, sentenceOf } from "./words.ts";
