"""The messages of a conversation and their parts, as a model reads them in a prompt.

```python
from farhand import Success
from farhand.messages import (
    AssistantMessage,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
    text_of,
)

question = UserMessage("m1", (Text("What is the weather in Oslo?"),))
step = AssistantMessage("run_1", 1, (ToolCallPart("call_1", "get_weather", {"location": "Oslo"}),))
found = ToolResultPart("call_1", "get_weather", {"location": "Oslo"}, Success("Rain."))
results = ResultsMessage("run_1", 1, (found,))

assert text_of(question) == "What is the weather in Oslo?"
assert [asked.tool for asked in step.tool_calls] == ["get_weather"]
```
"""

from __future__ import annotations

from farhand.core.thread import (
    AssistantMessage,
    File,
    Message,
    Part,
    Reasoning,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
    text_of,
)

__all__ = [
    "AssistantMessage",
    "File",
    "Message",
    "Part",
    "Reasoning",
    "ResultsMessage",
    "Text",
    "ToolCallPart",
    "ToolResultPart",
    "UserMessage",
    "text_of",
]
