// The mark and the name, as they stand at the head of both pages.
import type { ReactNode } from "react";
import icon from "./icon.svg";

export function Brand(): ReactNode {
  return (
    <span className="inline-flex items-center gap-2.5 text-[15px] font-semibold">
      <img src={icon} alt="" className="size-6" />
      farhand
    </span>
  );
}
