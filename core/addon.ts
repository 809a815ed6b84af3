import { constants } from 'node:os'
import { Failure } from './failure.ts'

/** RTLD_NODELETE of the system's loader. Node has no constant for it. */
const noDelete = 0x1000

/**
 * Loads native code from a file. With `keepLoaded` the code and its libraries stay loaded after the loading thread ends.
 * Throws Failure `internal_error`, whose message says what to do.
 */
export function loadAddon(path: string, { keepLoaded = false }: { keepLoaded?: boolean } = {}): unknown {
  const module = { exports: {} as unknown }
  try {
    process.dlopen(module, path, constants.dlopen.RTLD_LAZY | (keepLoaded ? noDelete : 0))
  } catch (cause) {
    throw new Failure('internal_error', addonRefusal(path, (cause as Error).message), { cause })
  }
  return module.exports
}

/** Returns why native code could not be loaded, as one sentence, from the error message of the system's loader. */
export function addonRefusal(path: string, reason: string): string {
  if (/version .?(GLIBC|GLIBCXX|CXXABI)_/.test(reason))
    return 'This system is too old for infer: it needs glibc 2.34 and libstdc++ of GCC 12 or newer, as in Debian 12, Ubuntu 22.04 or RHEL 10.'
  if (/failed to map segment|Operation not permitted/.test(reason))
    return `${path} is on a file system that does not allow running code (noexec); set INFER_CACHE_DIR to a directory elsewhere.`
  return `Native code could not be loaded: ${reason.trim()}.`
}
