import { constants, Script } from 'node:vm'
import { ownParts } from '../core/executable-parts.ts'

/**
 * The first lines of the executable: they start the program from its text and from what V8 made of it at the last pack.
 * bin/README.md says why.
 */
const program = new Script(Buffer.from(read('program.cjs').buffer).toString('latin1'), {
  filename: process.execPath,
  cachedData: read('program.cache'),
  importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
})
if (program.cachedDataRejected) process.emitWarning('The code cache of this executable does not fit it.')
const run = program.runInThisContext() as (...given: unknown[]) => void
run(exports, require, module, __filename, __dirname)

/** In memory that goes back to the system as soon as it is garbage: a resizable buffer is not of `malloc`. */
function read(name: string): Uint8Array<ArrayBuffer> {
  const size = ownParts().size(name)
  const bytes = new Uint8Array(new ArrayBuffer(size, { maxByteLength: size }))
  ownParts().read(name, bytes)
  return bytes
}
