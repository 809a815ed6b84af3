import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram } from '../../../gpu/sandbox/program.ts'

/** Stands for ComfyUI: knows the options of the preset, and says which checkpoints it finds. */
const main = `import argparse, http.server, json, os
from comfy import message
parser = argparse.ArgumentParser()
for name in 'listen', 'base-directory', 'output-directory', 'input-directory', 'temp-directory', 'user-directory':
    parser.add_argument('--' + name)
for name in 'database-url', 'preview-method':
    parser.add_argument('--' + name)
for name in 'port', 'max-upload-size':
    parser.add_argument('--' + name, type=int)
for name in 'disable-metadata', 'disable-api-nodes', 'disable-auto-launch', 'cpu':
    parser.add_argument('--' + name, action='store_true')
args = parser.parse_args()
message.say()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = os.listdir(os.path.join(args.base_directory, 'models', 'checkpoints'))
        body = json.dumps({'system': {'checkpoints': found, 'cpu': args.cpu}}).encode()
        self.send_response(200 if self.path == '/system_stats' else 404)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.HTTPServer((args.listen, args.port), Handler).serve_forever()
`

const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', ['-C', folder, ...args], {
    env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()

/** A repository in the layout of ComfyUI. `commit` makes a version that does `says` at its start, and returns its hash. */
export function makeRepository(folder: string) {
  mkdirSync(join(folder, 'comfy'), { recursive: true })
  mkdirSync(join(folder, 'models/checkpoints'), { recursive: true })
  git(folder, 'init', '--quiet', '--initial-branch=master')
  writeFileSync(join(folder, 'main.py'), main)
  writeFileSync(join(folder, 'comfy/__init__.py'), '')
  writeFileSync(join(folder, 'models/checkpoints/put_checkpoints_here'), '')
  return {
    address: `file://${folder}`,
    commit(version: string, says: string): string {
      writeFileSync(join(folder, 'comfyui_version.py'), `__version__ = "${version}"\n`)
      writeFileSync(join(folder, 'comfy/message.py'), `def say():\n    ${says}\n`)
      git(folder, 'add', '.')
      git(folder, '-c', 'user.name=Test', '-c', 'user.email=test@example.com', 'commit', '--quiet', '-m', version)
      return git(folder, 'rev-parse', 'HEAD')
    },
  }
}

/** A folder with these programs of the PATH, and a `uv` that makes environments without a network. */
export function makePrograms(folder: string, names: readonly string[] = []): string {
  mkdirSync(folder, { recursive: true })
  const put = (name: string, text: string) => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  for (const name of names) put(name, `exec '${findProgram(name, process.env.PATH ?? '')}' "$@"`)
  put(
    'uv',
    `[ "$1" = venv ] || { echo "it asked for packages: $*" >&2; exit 1; }
for last; do :; done
exec python3 -m venv --without-pip "$last"`,
  )
  return folder
}
