"""Claude through Anthropic's Messages API: `pip install 'farhand[anthropic]'`."""

from farhand.models.anthropic.model import Anthropic

__all__ = ["Anthropic"]
