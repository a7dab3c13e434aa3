"""The wire format of opencode, Copilot and Qwen Code: OpenAI chat completions, streamed or whole."""

import json
import re
import time
from collections.abc import Iterator

from tests.e2e.exchange import Api, Reply, Request
from tests.e2e.wire import Json, is_typed, new_id, pieces, texts_of

SHELLS = ("bash", "run_shell_command")
# Qwen Code asks for these after a turn, in the user's name.
HELPERS = ("Managed memory has TWO directories", "[SUGGESTION MODE:")
# Copilot puts the time before what was typed.
DATED = re.compile(r"\A<current_datetime>[^<]*</current_datetime>\n\n")


class ChatCompletions:
    api: Api = "chat"

    def read(self, _path: str, body: Json, at: float) -> Request:
        prompts: list[str] = []
        results: list[str] = []
        for message in body.get("messages") or []:
            texts = texts_of(message.get("content"))
            if message.get("role") == "tool":
                results.append("\n".join(texts))
            elif message.get("role") == "user" and (typed := [text for text in texts if is_typed(text)]):
                prompts += [DATED.sub("", text) for text in typed]
                results.clear()
        return Request(
            api=self.api,
            model=str(body.get("model")),
            conversation=str(body.get("prompt_cache_key")),
            prompts=tuple(prompts),
            results=tuple(results),
            tools=tuple(str((tool.get("function") or {}).get("name")) for tool in body.get("tools") or []),
            at=at,
            body=body,
            is_helper=bool(prompts) and prompts[-1].startswith(HELPERS),
        )

    def events(self, request: Request, reply: Reply) -> Iterator[Json]:
        about = {"id": new_id("chatcmpl"), "created": int(time.time()), "model": request.model}
        chunk = about | {"object": "chat.completion.chunk"}
        deltas: list[Json] = [{"content": piece} for piece in pieces(reply.text)]
        if (call := self._call(request, reply)) is not None:
            deltas = [{"tool_calls": [{"index": 0, **call}]}]
        for delta in [{"role": "assistant", "content": ""}, *deltas]:
            yield chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}]}
        yield chunk | {"choices": [], "usage": self._usage(reply)}
        yield {}

    def frame(self, event: Json) -> bytes:
        return f"data: {json.dumps(event) if event else '[DONE]'}\n\n".encode()

    def whole(self, request: Request, reply: Reply) -> Json | None:
        if request.body.get("stream"):
            return None
        call = self._call(request, reply)
        message: Json = {"role": "assistant", "content": reply.text} | ({"tool_calls": [call]} if call else {})
        return {
            "id": new_id("chatcmpl"),
            "created": int(time.time()),
            "model": request.model,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}],
            "usage": self._usage(reply),
        }

    def _call(self, request: Request, reply: Reply) -> Json | None:
        if reply.tool:
            name, arguments = reply.tool, dict(reply.arguments)
        elif reply.command is None:
            return None
        else:
            name = next((shell for shell in SHELLS if shell in request.tools), SHELLS[0])
            arguments = {"command": reply.command, "description": "scripted step"}
            if name == "run_shell_command":
                arguments["is_background"] = reply.background
        return {
            "id": new_id("call"),
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }

    def _usage(self, reply: Reply) -> Json:
        usage = reply.usage
        return {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
        }

    def error(self, reply: Reply) -> Json:
        error = {"message": reply.text, "type": "scripted_error", "param": None, "code": str(reply.status)}
        return {"error": {**error, **reply.error}}
