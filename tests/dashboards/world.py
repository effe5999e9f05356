"""What the gateways stand between: an agent that can misbehave, issuers, and callers."""

import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, kind="application/json", status=200):
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def url(server, path=""):
    return f"http://127.0.0.1:{server.server_address[1]}{path}"


class Agent:
    """Answers what it is sent; to `crash` it closes. Writes a receipt for each call."""

    def __init__(self, receipts):
        lock, log = threading.Lock(), open(receipts, "a", buffering=1)
        agent = self

        class Handler(Quiet):
            def do_GET(self):
                self.answer(json.dumps(agent.card()))

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                call = json.loads(body)
                receipt = {"v": 1, "time": int(time.time() * 1000)}
                if "Portcullis-Request-Id" in self.headers:
                    receipt["request_id"] = self.headers["Portcullis-Request-Id"]
                with lock:
                    log.write(json.dumps(receipt) + "\n")
                agent.reply(self, call)

        self.server = serve(Handler)

    def card(self):
        return {
            "name": "desk", "description": "a desk", "version": "1",
            "supportedInterfaces": [{"url": url(self.server, "/a2a"),
                                     "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {"streaming": True}, "skills": [],
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        }

    def reply(self, handler, call):
        message = call["params"].get("message", {})
        if message.get("parts", [{}])[0].get("text") == "crash":
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        task = call["params"].get("id") or "t-" + message["messageId"]
        status = {"id": task, "contextId": "c-" + task, "status": {"state": "TASK_STATE_COMPLETED"}}
        if call["method"] == "SendStreamingMessage":
            update = {"taskId": task, "contextId": "c-" + task,
                      "status": {"state": "TASK_STATE_WORKING"}}
            results = [{"statusUpdate": update}, {"task": status}]
            events = [{"jsonrpc": "2.0", "id": call["id"], "result": r} for r in results]
            text = "".join(f"data: {json.dumps(e)}\n\n" for e in events)
            return handler.answer(text, "text/event-stream")
        result = status if call["method"] == "GetTask" else {"task": status}
        handler.answer(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}))


def texts(paths):
    """A server of files, each read when it is asked for: key sets, and metrics beside a gateway."""

    class Handler(Quiet):
        def do_GET(self):
            parts = [open(p).read() for p in paths[self.path] if os.path.exists(p)]
            kind = "application/json" if self.path.endswith(".json") else "text/plain"
            self.answer("".join(parts), kind)

    return serve(Handler)


class Collector:
    """Takes OTLP logs while it is told to."""

    def __init__(self):
        self.status = 200
        collector = self

        class Handler(Quiet):
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.answer("", "application/x-protobuf", collector.status)

        self.server = serve(Handler)


class Gateway:
    """`portcullis run`, with its files in a folder of its own."""

    def __init__(self, program, folder, yaml):
        self.program, self.folder = program, folder
        os.makedirs(folder, exist_ok=True)
        self.put("gateway.yaml", yaml)
        self.stderr = open(os.path.join(folder, "stderr"), "w+")

    def put(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def start(self):
        config = os.path.join(self.folder, "gateway.yaml")
        self.process = subprocess.Popen(
            [self.program, "run", "--config", config], stderr=self.stderr, stdout=self.stderr)
        until = time.time() + 30
        while time.time() < until and self.process.poll() is None:
            found = [l for l in open(self.stderr.name) if "the gate stands" in l]
            if found:
                line = re.sub(r"\x1b\[[0-9;]*m", "", found[0])
                self.public, self.admin = re.findall(r"127\.0\.0\.1:(\d+)", line)
                return self
            time.sleep(0.1)
        raise SystemExit("the gateway did not start:\n" + open(self.stderr.name).read())

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.admin), timeout=5)
        connection.request("GET", path)
        return connection.getresponse().read().decode()

    def reaches(self, line):
        """Waits for a line of its metrics."""
        until = time.time() + 30
        while time.time() < until:
            if line in self.get("/metrics").splitlines():
                return
            time.sleep(0.1)
        raise SystemExit(f"no `{line}`:\n" + self.get("/metrics"))

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def refused(port, token, many, path="/agents/desk/a2a"):
    """Has so many calls refused by policy, as fast as one connection goes; how many were."""
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}],
                          "metadata": {"skillId": "review"}}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params})
    request = (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               f"A2A-Version: 1.0\r\nAuthorization: Bearer {token}\r\n"
               f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
    done = 0
    with socket.create_connection(("127.0.0.1", int(port)), timeout=10) as connection:
        reader = connection.makefile("rb")
        while done < many:
            connection.sendall(request)
            if b" 403 " not in reader.readline():
                break
            length = 0
            while (line := reader.readline().rstrip()):
                name, value = line.split(b":", 1)
                length = int(value) if name.lower() == b"content-length" else length
            reader.read(length)
            done += 1
    return done


class Caller:
    """One connection to a gateway, opened again when it is closed."""

    def __init__(self, port, path="/agents/desk/a2a"):
        self.port, self.path, self.connection, self.number = int(port), path, None, 0

    def call(self, token, method="SendMessage", skill="hello", text="hi", task=None):
        """Status, and the request id."""
        self.number += 1
        message = {"messageId": f"{id(self)}-{self.number}", "role": "ROLE_USER",
                   "parts": [{"text": text}], "metadata": {"skillId": skill}}
        params = {"id": task} if task else {"message": message}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        fields = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        if token:
            fields["Authorization"] = "Bearer " + token
        self.last_task = "t-" + message["messageId"]
        for again in (True, False):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                self.connection.request("POST", self.path, body, fields)
                answer = self.connection.getresponse()
                answer.read()
                return answer.status, answer.getheader("Portcullis-Request-Id")
            except (http.client.HTTPException, OSError):
                self.connection = None
                if not again:
                    return 0, None
