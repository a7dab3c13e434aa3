"""The wire format of Gemini CLI: `generateContent`, streamed or whole."""

import json
from collections.abc import Iterator

from tests.e2e.exchange import Api, Reply, Request
from tests.e2e.wire import Json, is_typed, new_id, pieces, texts_of

SHELL = "run_shell_command"
# Before each turn it asks a small model how hard the turn will be, and insists on an answer in this form.
ROUTE = json.dumps({"complexity_reasoning": "scripted", "complexity_score": 10})
STATUSES = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


class GenerateContent:
    api: Api = "gemini"

    def read(self, path: str, body: Json, at: float) -> Request:
        model, _, method = path.rpartition("/")[2].partition(":")
        prompts: list[str] = []
        results: list[str] = []
        for content in body.get("contents") or []:
            parts = content.get("parts") or []
            answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
            results += [json.dumps(answer.get("response")) for answer in answers]
            if content.get("role") == "user" and (typed := [text for text in texts_of(parts) if is_typed(text)]):
                prompts += typed
                results.clear()
        declared = [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
        return Request(
            api=self.api,
            model=model,
            conversation="",
            prompts=tuple(prompts),
            results=tuple(results),
            tools=tuple(str(one.get("name")) for one in declared),
            at=at,
            body=body | {"stream": method.startswith("stream")},
        )

    def events(self, request: Request, reply: Reply) -> Iterator[Json]:
        about = {"responseId": new_id("resp"), "modelVersion": request.model}
        parts = self._parts(request, reply)
        for part in parts[:-1]:
            yield about | {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]}
        last = {"index": 0, "content": {"role": "model", "parts": parts[-1:]}, "finishReason": "STOP"}
        yield about | {"candidates": [last], "usageMetadata": self._usage(reply)}

    def frame(self, event: Json) -> bytes:
        return f"data: {json.dumps(event)}\r\n\r\n".encode()

    def whole(self, request: Request, reply: Reply) -> Json | None:
        if request.body["stream"]:
            return None
        content = {"role": "model", "parts": self._parts(request, reply)}
        return {
            "responseId": new_id("resp"),
            "modelVersion": request.model,
            "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
            "usageMetadata": self._usage(reply),
        }

    def _parts(self, request: Request, reply: Reply) -> list[Json]:
        if reply.tool:
            return [{"functionCall": {"name": reply.tool, "args": dict(reply.arguments)}}]
        if reply.command is not None:
            wish = {"command": reply.command, "description": "scripted step"}
            arguments = wish | ({"is_background": True} if reply.background else {})
            return [{"functionCall": {"name": SHELL, "args": arguments}}]
        if "responseJsonSchema" in (request.body.get("generationConfig") or {}):
            return [{"text": ROUTE}]
        return [{"text": piece} for piece in pieces(reply.text)] or [{"text": ""}]

    def _usage(self, reply: Reply) -> Json:
        usage = reply.usage
        return {
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.input + usage.output,
            "cachedContentTokenCount": usage.cached,
        }

    def error(self, reply: Reply) -> Json:
        status = STATUSES.get(reply.status, "INTERNAL")
        return {"error": {"code": reply.status, "message": reply.text, "status": status, **reply.error}}
