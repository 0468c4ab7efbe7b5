"""Which faces there are. The only place that names them all."""

from __future__ import annotations

from farhand.agent.farhand import Farhand
from farhand.clients.attendance import Attendance
from farhand.faces.ack.routes import ack_face
from farhand.faces.awaiting.routes import awaiting_face
from farhand.faces.base import Face
from farhand.faces.client_tools.routes import client_tools_face
from farhand.faces.events.routes import events_face
from farhand.faces.files.routes import files_face
from farhand.faces.threads.routes import threads_face
from farhand.faces.ui_stream.routes import ui_stream_face


def faces_of(farhand: Farhand, attendance: Attendance) -> tuple[Face, ...]:
    return (
        ack_face(farhand),
        awaiting_face(farhand),
        ui_stream_face(farhand),
        threads_face(farhand),
        files_face(farhand),
        client_tools_face(farhand, attendance),
        events_face(farhand),
    )
