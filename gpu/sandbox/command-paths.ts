import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import type { ResolvedPath } from './mount.ts'
import { resolvedPathsOf } from './resolved-paths.ts'
import { type Guarded, isSafeFolder, isSafeToShow } from './safe-to-show.ts'

/** Variables that name libraries, certificates and the like, as one path or several. */
const pathVariables = /^(LD_LIBRARY_PATH|CUDA_HOME|CUDA_PATH|SSL_CERT_FILE|SSL_CERT_DIR)$/

/**
 * What a command line and its environment name: whoever configured them wants the engine to read it. A script comes
 * with the folder it lies in. Paths in the data directory, or above it or above a home, do not count: those are given
 * to an engine only by name (`sandbox_read`).
 */
export function commandPaths(
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  { own, ...guarded }: { own: readonly string[] } & Guarded,
): ResolvedPath[] {
  const words = argv.slice(1).flatMap(word => [word, word.slice(word.indexOf('=') + 1)])
  const values = Object.entries(env).flatMap(([name, value]) =>
    pathVariables.test(name) || own.includes(name) ? value.split(':') : [],
  )
  return [...new Set([...words, ...values])].flatMap(word => {
    const found = resolvedPathsOf(word).filter(
      ({ path, real }) => isSafeToShow(path, guarded) && isSafeToShow(real, guarded),
    )
    const [first] = found
    if (!first?.file || !isScript(first.real)) return found
    const folders = [first.path, first.real].map(path => dirname(path)).filter(folder => isSafeFolder(folder, guarded))
    return [...found, ...folders.flatMap(folder => resolvedPathsOf(folder))]
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
