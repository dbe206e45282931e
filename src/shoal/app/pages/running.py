"""Running: the progress of a run as server-sent events, and its end at the push of a button."""

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from shoal.app.pages.common import Form, back_to, work_of
from shoal.app.runs import AppRun

_PAUSE = 0.2  # seconds between two looks at a run


def events(request: Request) -> Response:
    """Follow a run: an event whenever it has come further, and a last one when it has ended."""
    work = work_of(request)
    number: int = request.path_params["number"]
    run = work.runs.run(number)  # raises if there is none

    async def lines() -> AsyncIterator[str]:
        last, now = None, run
        while last is None or now.running:
            if _told(now) != last:
                last = _told(now)
                yield f"event: progress\ndata: {last}\n\n"
            await asyncio.sleep(_PAUSE)
            now = await run_in_threadpool(work.runs.run, number)
        yield "event: end\ndata: {}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


def cancel(request: Request, form: Form) -> str:
    """End a run."""
    work = work_of(request)
    work.runs.cancel(request.path_params["number"])
    return f"/work/{work.id}/{back_to(form, 'file')}"


def _told(run: AppRun) -> str:
    return json.dumps({"stage": run.stage, "share": run.share, "parts": len(run.parts)})
