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

function read(name: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(ownParts().size(name))
  ownParts().read(name, bytes)
  return bytes
}
