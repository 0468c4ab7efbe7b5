// A page that the assistant opened, beside the chat. A page cannot detect that another site refuses to be framed, so there is always a
// link that opens it in a new tab.
import { ExternalLink, Globe, RotateCw, X } from "lucide-react";
import { type ReactNode, useState } from "react";
import { IconButton } from "./parts.tsx";
import { useWords } from "./words.ts";

export interface OpenedPage {
  readonly url: URL;
  readonly key: string;
}

export function Panel({ page, onClose }: { page: OpenedPage; onClose: () => void }): ReactNode {
  const words = useWords();
  const [turn, setTurn] = useState(0);
  const { url } = page;
  const address = url.href.replace(/^https?:\/\//, "").replace(/\/$/, "");
  return (
    <aside aria-label={words.pageBeside} className="flex h-full flex-col bg-surface">
      <div className="flex h-[50px] shrink-0 items-center gap-1 border-b border-line px-3">
        <p className="mr-1 flex h-8 min-w-0 flex-1 items-center gap-2 rounded-lg bg-sunken px-3 text-[13px] text-muted" title={url.href}>
          <Globe size={15} className="shrink-0" aria-hidden="true" /> <span className="truncate">{address}</span>
        </p>
        <IconButton label={words.loadAgain} onClick={() => setTurn(turn + 1)}><RotateCw size={15} aria-hidden="true" /></IconButton>
        <TabLink url={url} label={words.ownTab} className="grid size-8 place-items-center rounded-lg text-muted hover:bg-sunken hover:text-text"><ExternalLink size={15} aria-hidden="true" /></TabLink>
        <IconButton label={words.closePage} onClick={onClose}><X size={16} aria-hidden="true" /></IconButton>
      </div>
      <div className="flex h-8 shrink-0 items-center gap-2 border-b border-line bg-ground px-4 text-xs text-muted">
        <ExternalLink size={13} aria-hidden="true" /> {words.openedByAssistant} <code className="ml-auto font-mono">open_url</code>
      </div>
      {/* our styles do not reach into it, and nothing in it reaches out */}
      <iframe key={`${page.key}-${turn}`} title={`Page: ${url.host}`} src={url.href} sandbox={sandboxFor(url)} referrerPolicy="no-referrer" className="min-h-0 w-full flex-1 bg-white" />
      <p className="shrink-0 border-t border-line px-4 py-2 text-xs text-muted">
        {words.nothingHere} <TabLink url={url} className="font-medium text-tint-text underline">{words.ownTab}</TabLink>
      </p>
    </aside>
  );
}

interface TabLinkProps {
  readonly url: URL;
  readonly className: string;
  readonly children: ReactNode;
  readonly label?: string;
}

function TabLink({ url, className, children, label }: TabLinkProps): ReactNode {
  return <a href={url.href} target="_blank" rel="noopener noreferrer" aria-label={label} title={label} className={className}>{children}</a>;
}

/** With its own origin, a framed page keeps its sign-in; a page of our own origin could use that to leave the sandbox. */
export function sandboxFor(url: URL, own: string = location.origin): string {
  const always = "allow-scripts allow-forms allow-popups allow-popups-to-escape-sandbox";
  return url.origin === own ? always : `${always} allow-same-origin`;
}
