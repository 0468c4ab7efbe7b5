"""Bridges: other people's agent loops use far hands. One module per framework, which imports that framework.

`farhand.bridges.pydantic_ai`, `.langgraph`, `.openai_agents`, `.google_adk`, and `.anthropic` and `.openai`
for loops written by hand. Each stands on `App.call` with a key:

```python
from farhand import Toolbox, create_app

hands = create_app(Toolbox(), store="memory:")
```

`thread_name` says in which thread the calls of a framework's conversation are.
"""

from farhand.bridges.bridge import thread_name

__all__ = ["thread_name"]
