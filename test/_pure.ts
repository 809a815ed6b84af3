import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { importedPath, importsIn } from './_imports.ts'

const root = join(import.meta.dirname, '..')

/** Modules with which a test can start a process or a thread, open a socket, or load native code. */
const effects =
  /^(node:)?(child_process|cluster|dgram|dns(\/promises)?|http|http2|https|net|tls|worker_threads)$|^(better-sqlite3|execa|h3|listhen|node-llama-cpp|piscina|playwright-core|sharp|undici|ws)(\/|$)/

/** What a file imports at run time: own files from the root, and other modules by name. */
interface Imports {
  files: string[]
  modules: string[]
}
const known = new Map<string, Imports>()

/**
 * Test files whose imports, direct or not, start no process, thread or socket. They need no build. The rule errs on the
 * safe side: a test that could run as a pure one may be missing.
 */
export function pureTests(): string[] {
  return testFiles().filter(
    path => !reached(path).some(file => importsOf(file).modules.some(name => effects.test(name))),
  )
}

/** What a test does to its process or to modules that others have imported too, or measures of its process. */
const changes =
  /\bgetLlama\(|\bvi\.(mock|doMock|stubEnv|stubGlobal|spyOn|useFakeTimers)\b|\bprocess\.(chdir|umask|on|once|memoryUsage)\b|\bprocess\.env\.\w+ = |\bdelete process\.env\b|\bmonitorEventLoopDelay\b/

/** Hooks that a helper registers when it is loaded: in a shared process only for the first file that imports it. */
const hooks = /^(before|after)(All|Each)\(/m

/** Test files that are not pure and leave their process as it was. */
export function sharedTests(): string[] {
  const pure = new Set(pureTests())
  const isShared = (path: string) =>
    !changes.test(readFileSync(join(root, path), 'utf8')) &&
    !reached(path).some(file => /^test\/.*\/_/.test(file) && hooks.test(readFileSync(join(root, file), 'utf8')))
  return testFiles().filter(path => !pure.has(path) && isShared(path))
}

export const testFiles = (): string[] =>
  readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.test.ts'))
    .map(path => join('test', path))
    .toSorted()

/** The file and everything that it imports, however indirectly. */
function reached(path: string): string[] {
  const found = new Set([path])
  for (const file of found) for (const next of importsOf(file).files) found.add(next)
  return [...found]
}

function importsOf(path: string): Imports {
  const before = known.get(path)
  if (before) return before
  const found = /\.tsx?$/.test(path) ? importsIn(readFileSync(join(root, path), 'utf8')) : []
  const loaded = found.filter(({ kind }) => kind !== 'type')
  const files = loaded.filter(({ from }) => from.startsWith('.')).map(one => importedPath(path, one))
  const imports = {
    files: files.filter(file => existsSync(join(root, file))),
    modules: loaded.map(({ from }) => from).filter(name => !name.startsWith('.')),
  }
  known.set(path, imports)
  return imports
}
