"""The demo's toolbox. A module that declares a tool with it adds that tool by being imported."""

from farhand import Toolbox

toolbox = Toolbox()
