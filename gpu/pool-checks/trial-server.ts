/** What the server of a trial launch reports of its node. */
export interface NodeReport {
  python: string
  /** Paths that are not there. */
  missing: readonly string[]
}

/** A server on the socket `argv[1]` that reports which of the further arguments, paths, do not exist. */
export const trialServer = `
import http.server, json, os, platform, socketserver, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        missing = [path for path in sys.argv[2:] if not os.path.exists(path)]
        body = json.dumps({'python': platform.python_version(), 'missing': missing}).encode()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
print('listening', flush=True)
socketserver.UnixStreamServer(sys.argv[1], Answer).serve_forever()
`
