"""Compression: pages go out gzipped to browsers that take that.

What a page's length may tell (BREACH): whoever can put words into a page, makes a signed-in browser ask for it again and again, and
sees how long each answer is on the wire, guesses a secret that stands in it. Django masks the tokens of forms anew in every answer,
and makes each compressed answer up to a hundred random bytes longer; the cookies are not sent with requests that other sites make.
Answers of the API, streams and downloads stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.middleware.gzip import GZipMiddleware

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

PAGE = "text/html"


class PageCompression(GZipMiddleware):
    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.streaming or not response.headers.get("Content-Type", "").startswith(PAGE):
            return response
        return super().process_response(request, response)
