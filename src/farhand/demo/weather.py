"""A tool that runs on the server: the weather, always fine."""

import random

from farhand.demo.toolbox import toolbox


@toolbox.tool(idempotent=True)
def get_current_weather(location: str) -> dict[str, str | int]:
    """Get the current weather of a place.

    Args:
        location: The city, and the country if the name is common, for example "Oslo" or "Paris, Texas".

    Returns:
        location, temperature (a whole number), unit and condition.
    """
    return {
        "location": location,
        "temperature": random.randint(65, 75),
        "unit": "Fahrenheit",
        "condition": "Sunny",
    }
