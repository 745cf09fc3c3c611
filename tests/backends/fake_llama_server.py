"""A llama-server with a known schedule and faults on order, for tests and calibration.

It speaks the part of llama-server's HTTP that the lab uses. Faults are queued by the
test: each generation takes the next one ("hang", "slow", "garbage", "cut", "die",
"400-context", "500", "503") or none.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeLlamaServer:
    """Serves on a loopback port between ``with`` and its end.

    Parameters
    ----------
    prompt_ms, token_ms : the schedule: time before the first token, time a step.
    tokens_per_step : tokens that share a step (and a chunk, when ``shared_chunks``).
    """

    def __init__(
        self,
        *,
        prompt_ms=20.0,
        token_ms=2.0,
        tokens_per_step=1,
        shared_chunks=True,
        draft=None,
        key=None,
        model_path="/models/fake.gguf",
        speculative=False,
        content="word ",
    ):
        self.prompt_ms, self.token_ms = prompt_ms, token_ms
        self.tokens_per_step, self.shared_chunks = tokens_per_step, shared_chunks
        self.draft, self.key, self.model_path = draft, key, model_path
        self.speculative, self.content = speculative, content
        self.faults, self.requests, self.loading = [], [], False
        self.counters = {"drafts": 0, "draft_tokens": 0, "accepted_tokens": 0}
        self.stop_type, self.extra = "limit", {}

    def __enter__(self):
        owner = self

        class Handler(_Handler):
            fake = owner

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def timings(self, n, predicted_ms):
        told = {
            "cache_n": 0,
            "prompt_n": 5,
            "prompt_ms": self.prompt_ms,
            "predicted_n": n,
            "predicted_ms": predicted_ms,
        }
        if self.draft:
            told |= {"draft_n": self.draft[0], "draft_n_accepted": self.draft[1]}
        return told | self.extra

    def metrics(self):
        lines = []
        for name, value in self.counters.items():
            full = f"llamacpp:spec_decode_num_{name}_total"
            lines += [f"# TYPE {full} counter", f"{full} {value}"]
        return "\n".join(lines) + "\n"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeLlamaServer

    def log_message(self, *_args):
        pass

    def do_GET(self):
        fake = self.fake
        answers = {
            "/health": {"status": "ok"},
            "/props": {"model_path": fake.model_path, "build_info": "fake-1", "total_slots": 1},
            "/slots": [{"id": 0, "n_ctx": 2048, "speculative": fake.speculative}],
        }
        if self.path == "/health" and fake.loading:
            self._send(503, b'{"error": {"message": "Loading model"}}')
        elif fake.key and self.headers.get("Authorization") != f"Bearer {fake.key}":
            self._send(401, b'{"error": {"message": "Invalid API Key"}}')
        elif self.path == "/metrics":
            self._send(200, fake.metrics().encode(), "text/plain")
        elif self.path in answers:
            self._send(200, json.dumps(answers[self.path]).encode())
        else:
            self._send(404, b"{}")

    def do_POST(self):
        fake = self.fake
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fake.requests.append((self.path, body))
        if self.path == "/apply-template":
            text = "".join(f"<{one['role']}>{one['content']}" for one in body["messages"])
            self._send(200, json.dumps({"prompt": text}).encode())
        elif self.path == "/tokenize":
            self._send(200, json.dumps({"tokens": list(range(len(body["content"])))}).encode())
        elif self.path == "/completion":
            self._complete(body)
        else:
            self._send(404, b"{}")

    def _complete(self, body):
        fake = self.fake
        fault = fake.faults.pop(0) if fake.faults else None
        if fault == "400-context":
            error = {"error": {"type": "exceed_context_size_error", "message": "too long"}}
            return self._send(400, json.dumps(error).encode())
        if fault in {"500", "503"}:
            return self._send(int(fault), b'{"error": {"message": "broken"}}')
        if fault == "garbage":
            return self._send(200, b"<html>\xff\x00</html>")
        if fault == "hang":
            time.sleep(30)
        if fault == "die":
            self.close_connection = True
            return self.connection.close()
        n = body["n_predict"]
        steps = -(-(n - 1) // fake.tokens_per_step)
        predicted_ms = steps * fake.token_ms * (5 if fault == "slow" else 1)
        time.sleep(fake.prompt_ms / 1000)
        if fake.draft:
            fake.counters["drafts"] += steps
            fake.counters["draft_tokens"] += fake.draft[0]
            fake.counters["accepted_tokens"] += fake.draft[1]
        last = {
            "content": "",
            "tokens": [],
            "stop": True,
            "stop_type": fake.stop_type,
            "timings": fake.timings(n, predicted_ms),
        }
        if not body["stream"]:
            time.sleep(predicted_ms / 1000)
            whole = last | {"content": fake.content * n, "tokens": list(range(n))}
            return self._send(200, json.dumps(whole).encode())
        return self._stream(n, steps, predicted_ms, last, fault)

    def _stream(self, n, steps, predicted_ms, last, fault):
        fake = self.fake
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pause = predicted_ms / max(steps, 1) / 1000
        self._event({"content": fake.content, "tokens": [0], "stop": False})
        sent = 1
        while sent < n:
            time.sleep(pause)
            group = list(range(sent, min(sent + fake.tokens_per_step, n)))
            sent += len(group)
            chunks = [group] if fake.shared_chunks else [[one] for one in group]
            for tokens in chunks:
                text = fake.content * len(tokens)
                self._event({"content": text, "tokens": tokens, "stop": False})
            if fault == "cut" and sent > n // 2:
                self.close_connection = True
                return self.connection.close()
        self._event(last)
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _event(self, event):
        data = b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _send(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
