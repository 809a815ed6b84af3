/** What the server of a trial launch reports of its node. */
export interface NodeReport {
  python: string
  /** Paths that are not there, and programs that are not on PATH. */
  missing: readonly string[]
}

/** A server on the socket `argv[1]` that reports which of the further arguments, paths and names of programs, are not there. */
export const trialServer = `
import http.server, json, os, platform, shutil, socketserver, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        missing = [name for name in sys.argv[2:] if not (os.path.exists(name) if '/' in name else shutil.which(name))]
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
