// Logo and name in the header of both pages.
import type { ReactNode } from "react";
import icon from "./icon.svg";

/** An agent's own logo and title, if it has them. */
export function Brand({ logo = icon, name = "farhand" }: { logo?: string; name?: string }): ReactNode {
  return (
    <span className="flex min-w-0 items-center gap-2.5 text-[15px] font-semibold">
      <img src={logo} alt="" className="size-6 shrink-0 rounded-md object-contain" />
      <span className="line-clamp-2 leading-tight [overflow-wrap:anywhere]">{name}</span>
    </span>
  );
}
