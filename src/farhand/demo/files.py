"""A tool that runs on the server once a person says yes."""

from farhand.demo.scratch import scratch
from farhand.demo.toolbox import toolbox


@toolbox.tool(needs_approval=True)
def delete_file(path: str) -> dict[str, str]:
    """Delete one file of the demo's scratch folder. A person is asked first.

    Args:
        path: The file, relative to the scratch folder, for example "old-draft.txt".

    Returns:
        deleted, the name of the file that is gone.
    """
    return {"deleted": scratch().delete(path)}
