import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import type { LaunchOptions } from '../launcher.ts'
import type { OwnProgram } from './portable-launch.ts'
import { quoted } from './ssh-command.ts'

/** A file or folder of a model, as it is on this machine. */
export interface ModelFiles {
  path: string
  isFolder: boolean
  /** Bytes of its files; those behind links count each time. */
  bytes: number
  /** Changes with its path, and the names, sizes and times of its files. */
  identity: string
}

/** The paths that the engine of a launch reads and that its command names. Pure. */
export const pathsOf = ({ argv, sandbox }: Pick<LaunchOptions, 'argv' | 'sandbox'>, own: OwnProgram): string[] => [
  ...new Set(
    sandbox.read.filter(
      path => isAbsolute(path) && !own.files.includes(path) && argv.slice(1).some(part => part.includes(path)),
    ),
  ),
]

/** What is at a path of this machine; undefined if nothing is. */
export async function modelFilesAt(path: string): Promise<ModelFiles | undefined> {
  const about = await stat(path).catch(() => undefined)
  if (!about) return undefined
  const isFolder = about.isDirectory()
  const names = isFolder ? (await readdir(path, { recursive: true })).toSorted() : ['']
  const facts: [name: string, bytes: number, changedMs: number][] = []
  for (const name of names) {
    const found = await stat(join(path, name)).catch(() => undefined)
    if (found?.isFile()) facts.push([name, found.size, found.mtimeMs])
  }
  const bytes = facts.reduce((sum, [, size]) => sum + size, 0)
  const identity = createHash('sha256')
    .update(JSON.stringify([path, facts]))
    .digest('hex')
    .slice(0, 16)
  return { path, isFolder, bytes, identity }
}

/** Where the copy is kept in the cache of the other machine. */
export const copyPath = (cache: string, { identity, path }: ModelFiles): string =>
  join(cache, 'infer', 'models', identity, basename(path))

/** A script that prints the first of these paths whose files have that many bytes, or nothing. */
export const findScript = (paths: readonly string[], bytes: number): string =>
  `for p in ${paths.map(quoted).join(' ')}; do test -e "$p" && ${hasBytes('"$p"', bytes)} && { printf %s "$p"; exit 0; }; done; exit 0`

/** A condition of a shell: the files at a path, itself a word of it, have that many bytes. */
const hasBytes = (path: string, bytes: number): string =>
  `test "$(find -L ${path} -type f -printf '%s\\n' 2>/dev/null | awk '{ s += $1 } END { printf "%.0f", s }')" = ${bytes}`

/** A script that writes its input there, whole or not at all: the input also ends where the connection does. */
function receiveScript(to: string, { isFolder, bytes }: Pick<ModelFiles, 'isFolder' | 'bytes'>): string {
  const [folder, part] = [quoted(dirname(to)), quoted(`${dirname(to)}.part`)]
  const write = isFolder ? `tar -C ${part} -xf -` : `cat > ${part}/${quoted(basename(to))}`
  return `umask 077; rm -rf ${part}; mkdir -p ${part} && ${write} && ${hasBytes(part, bytes)} && rm -rf ${folder} && mv ${part} ${folder}`
}

/** Runs a script on the other machine with an open file as its input. */
type StartScript = (script: string, input: number | { command: readonly string[] }) => ChildProcess

/** Copies a file or folder there. `progress` gets a function that says how many bytes were read. Rejects with a sentence. */
export async function copyFiles(
  files: ModelFiles,
  to: string,
  start: StartScript,
  progress: (bytes: () => number) => void,
): Promise<void> {
  const script = receiveScript(to, files)
  if (files.isFolder)
    return await finished(
      start(script, { command: ['tar', '-C', dirname(files.path), '-cf', '-', basename(files.path)] }),
      files,
    )
  const input = await open(files.path)
  try {
    const child = start(script, input.fd)
    // The child reads through the same open file, so its position is how far it has come.
    progress(() => Number(/^pos:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${input.fd}`, 'utf8'))?.[1] ?? 0))
    await finished(child, files)
  } finally {
    progress(() => files.bytes)
    await input.close()
  }
}

function finished(child: ChildProcess, { path }: ModelFiles): Promise<void> {
  let errors = ''
  child.stdout?.resume()
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-2_000)
  })
  return new Promise((resolve, reject) => {
    const failed = (why: string) => reject(new Error(`${path} could not be copied: ${why}.`))
    child.once('error', cause => failed(cause.message))
    child.once('close', code =>
      code === 0
        ? resolve()
        : failed(errors.trim().split('\n').at(-1)?.replace(/\.$/, '') || `the connection has ended (${code})`),
    )
  })
}
