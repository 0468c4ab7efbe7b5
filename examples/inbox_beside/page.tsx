// A page for a Python script: it shows invoices when the script calls `show_invoice`, and a card for everything that a person must
// approve. It has no chat.
import { connect } from "@farhand/client";
import { CardList, useHand } from "@farhand/react";
import "@farhand/react/cards.css";
import { createRoot } from "react-dom/client";

const hand = connect({ url: "/farhand", thread: "invoices" }).handle({
  show_invoice: ({ number, amount }: { number: string; amount: number }) => {
    const shown = document.querySelector("#shown") as HTMLElement;
    shown.textContent = `Invoice ${number}: ${amount} €`;
    return { shown: shown.textContent };
  },
});

createRoot(document.querySelector("#inbox") as HTMLElement).render(<Inbox />);

function Inbox() {
  return <CardList host={useHand(hand)} />;
}
