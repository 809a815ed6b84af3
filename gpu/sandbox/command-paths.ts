import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import type { ResolvedPath } from './mount.ts'
import { resolvedPathsOf } from './resolved-paths.ts'
import { type Guarded, isSafeFolder, isSafeToShow } from './safe-to-show.ts'

/** Variables that contain one path or several, such as those of libraries and certificates. */
const pathVariables = /^(LD_LIBRARY_PATH|CUDA_HOME|CUDA_PATH|SSL_CERT_FILE|SSL_CERT_DIR)$/

/**
 * Returns the paths in an engine's arguments and environment: the administrator configured them for the engine to read.
 * For a script its folder is included. Paths in the data directory, and parents of the data directory or of a home, are
 * left out: they need an entry in `sandbox_read`.
 */
export function commandPaths(
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  { configuredVariables, ...guarded }: { configuredVariables: readonly string[] } & Guarded,
): ResolvedPath[] {
  const words = argv.slice(1).flatMap(word => [word, word.slice(word.indexOf('=') + 1)])
  const values = Object.entries(env).flatMap(([name, value]) =>
    pathVariables.test(name) || configuredVariables.includes(name) ? value.split(':') : [],
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

/** Whether a file is a script, which may load other files of its folder. */
function isScript(file: string): boolean {
  if (/\.(py|sh|[cm]?[jt]s|rb|pl|lua)$/.test(file)) return true
  try {
    accessSync(file, constants.X_OK)
    return !/\.(gguf|bin|safetensors|ya?ml|json|txt)$/.test(file)
  } catch {
    return false
  }
}
