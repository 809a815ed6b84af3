import { constants } from 'node:os'
import { Failure } from './failure.ts'

/** RTLD_NODELETE of the system's loader, which Node has no name for. */
const neverUnloaded = 0x1000

/**
 * Loads native code from a file. `forEver`: it and the libraries that it needs stay when the thread that loads it ends.
 * Throws Failure `internal_error` with what to do about it.
 */
export function loadAddon(path: string, { forEver = false }: { forEver?: boolean } = {}): unknown {
  const module = { exports: {} as unknown }
  try {
    process.dlopen(module, path, constants.dlopen.RTLD_LAZY | (forEver ? neverUnloaded : 0))
  } catch (cause) {
    throw new Failure('internal_error', addonRefusal(path, (cause as Error).message), { cause })
  }
  return module.exports
}

/** Why native code could not be loaded, as one sentence, from what the system's loader says. */
export function addonRefusal(path: string, reason: string): string {
  if (/version .?(GLIBC|GLIBCXX|CXXABI)_/.test(reason))
    return 'This system is too old for infer: it needs glibc 2.34 and libstdc++ of GCC 12 or newer, as in Debian 12, Ubuntu 22.04 or RHEL 10.'
  if (/failed to map segment|Operation not permitted/.test(reason))
    return `${path} lies on a file system that forbids running code (noexec); set INFER_CACHE_DIR to a directory elsewhere.`
  return `Native code could not be loaded: ${reason.trim()}.`
}
