"""Bridges let the agent loop of another framework use far hands. Each framework has a module of its own.

`farhand.bridges.pydantic_ai`, `.langgraph`, `.openai_agents`, `.google_adk`, and `.anthropic` and `.openai`
for loops that you write yourself. All of them need an app, which they call with a key for each call:

```python
from farhand import Toolbox, create_app

hands = create_app(Toolbox(), store="memory:")
```

`thread_name` returns the name of the thread that holds the calls of a framework's conversation.
"""

from farhand.bridges.bridge import thread_name

__all__ = ["thread_name"]
