import { accessSync, constants } from 'node:fs'
import { dirname, isAbsolute } from 'node:path'
import { isWithin, type ResolvedPath } from './mount.ts'
import { resolvedPathsOf } from './resolved-paths.ts'

/** Variables that name libraries, certificates and the like, as one path or several. */
const pathVariables = /^(LD_LIBRARY_PATH|CUDA_HOME|CUDA_PATH|SSL_CERT_FILE|SSL_CERT_DIR)$/

/**
 * What a command line and its environment name: whoever configured them wants the engine to read it. A script comes with
 * the folder it lies in. Paths in the data directory, or above it or above a home, do not count: those are given to an
 * engine only by name (`sandbox_read`).
 */
export function commandPaths(
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  { own, dataDir, homes }: { own: readonly string[]; dataDir: string; homes: readonly string[] },
): ResolvedPath[] {
  const words = argv.slice(1).flatMap(word => [word, word.slice(word.indexOf('=') + 1)])
  const values = Object.entries(env).flatMap(([name, value]) =>
    pathVariables.test(name) || own.includes(name) ? value.split(':') : [],
  )
  const isGiven = (path: string) =>
    isAbsolute(path) &&
    !['/', '/tmp', '/var', '/etc', '/home', '/run', '/var/tmp'].includes(path) &&
    !['/proc', '/sys', '/dev', dataDir].some(folder => isWithin(path, folder)) &&
    ![dataDir, ...homes].some(hidden => isWithin(hidden, path))
  return [...new Set([...words, ...values])].flatMap(word => {
    const places = resolvedPathsOf(word).filter(({ path, real }) => isGiven(path) && isGiven(real))
    const [resolved] = places
    if (!resolved?.file || !isScript(resolved.real)) return places
    const folders = [resolved.path, resolved.real].map(path => dirname(path))
    const given = folders.filter(folder => isGiven(folder) && dirname(folder) !== '/home')
    return [...places, ...given.flatMap(folder => resolvedPathsOf(folder))]
  })
}

/** Scripts load what lies beside them. */
function isScript(file: string): boolean {
  if (/\.(py|sh|[cm]?[jt]s|rb|pl|lua)$/.test(file)) return true
  try {
    accessSync(file, constants.X_OK)
    return !/\.(gguf|bin|safetensors|ya?ml|json|txt)$/.test(file)
  } catch {
    return false
  }
}
