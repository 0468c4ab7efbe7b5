"""The agent on the server. It has no files of its own: it uses the tools that the user's editor offers."""

from __future__ import annotations

from farhand import Agent, ScriptedModel
from farhand.models import Ask, Moment, Step

PATCH = """\
--- a/sum.mjs
+++ b/sum.mjs
@@ -1,3 +1,3 @@
 export function sum(numbers) {
-  return numbers.reduce((total, number) => total - number, 0);
+  return numbers.reduce((total, number) => total + number, 0);
 }
"""


def speak(moment: Moment) -> Step:
    """Reads the file, runs the tests, offers a patch, and runs the tests again."""
    if "client_editor_run_tests" not in moment.tools:
        return "Your editor is not connected."
    match moment.steps:
        case 0:
            return ["I read it first.", Ask("client_editor_read_file", {"path": "sum.mjs"})]
        case 1 | 3:
            return Ask("client_editor_run_tests", {})
        case 2:
            return ["A test fails. May I fix it?", Ask("client_editor_apply_patch", {"diff": PATCH})]
        case _:
            return f"The tests say: {moment.last[0].seen}"


agent = Agent(
    ScriptedModel(speak), instructions="Help the user with the folder that is open in their editor."
)
