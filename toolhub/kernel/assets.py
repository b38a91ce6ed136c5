"""How do static files reach a browser?

WhiteNoise finds the file and says its headers, but answers with an open file, which Django's ASGI handler takes apart with a
warning, since its chunks do not come by themselves. These files are small: here their bytes are the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

if TYPE_CHECKING:
    from django.http import HttpRequest


class Assets(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file as file:
                content = file.read()
        response = HttpResponse(content, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response
