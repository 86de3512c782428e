# The agent of Azure Arc as far as its tokens go: it names a file that only root and its
# own user can read, and gives the token of the metadata service to whoever shows it.
import grp, http.server, os, pwd, secrets, sys, urllib.parse, urllib.request

TOKENS = "/var/opt/azcmagent/tokens"
keys = {}


class Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = urllib.parse.parse_qs(url.query)
        if url.path != "/metadata/identity/oauth2/token" or self.headers.get("Metadata") != "true" or query.get("api-version") != ["2020-06-01"] or "client_id" in query:
            return self.answer(400, b'{"error":"invalid_request"}')
        shown = self.headers.get("Authorization", "")
        path = keys.pop(shown.removeprefix("Basic "), None)
        if not shown:
            return self.challenge()
        if path is None:
            return self.answer(403, b'{"error":"forbidden"}')
        os.unlink(path)
        ask = "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&resource=" + urllib.parse.quote(query["resource"][0])
        with urllib.request.urlopen(urllib.request.Request(ask, headers={"Metadata": "true", "X-Arc": "1"})) as r:
            self.answer(200, r.read())

    def challenge(self):
        key, path = secrets.token_hex(32), TOKENS + "/" + secrets.token_hex(16) + ".key"
        with open(path, "w") as f:
            f.write(key)
        os.chown(path, pwd.getpwnam("himds").pw_uid, grp.getgrnam("himds").gr_gid)
        os.chmod(path, 0o440)
        keys[key] = path
        self.answer(401, b"", ("Www-Authenticate", "Basic realm=" + path))

    def answer(self, status, body, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


os.makedirs(TOKENS, exist_ok=True)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 40342), Agent)
print("ready", file=sys.stderr, flush=True)
server.serve_forever()
