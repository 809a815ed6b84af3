import { compileFunction, constants, Script } from 'node:vm'
import { keeperArgument, ownParts } from '../core/executable-parts.ts'

/**
 * The first lines of the executable: they start the program from its text and from what V8 made of it at the last pack.
 * bin/README.md says why.
 */
const run = process.argv[2] === keeperArgument ? keeper() : program()
run(exports, require, module, __filename, __dirname)

type Run = (...given: unknown[]) => void

function program(): Run {
  const script = new Script(textOf('program.cjs'), {
    filename: process.execPath,
    cachedData: read('program.cache'),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  if (script.cachedDataRejected) process.emitWarning('The code cache of this executable does not fit it.')
  return script.runInThisContext() as Run
}

/** The process that keeps engines: without the program it has half of its memory. */
function keeper(): Run {
  const names = ['exports', 'require', 'module', '__filename', '__dirname']
  return compileFunction(textOf('keeper.cjs'), names, { filename: process.execPath }) as Run
}

function textOf(name: string): string {
  return Buffer.from(read(name).buffer).toString('latin1')
}

/** In memory that goes back to the system as soon as it is garbage: a resizable buffer is not of `malloc`. */
function read(name: string): Uint8Array<ArrayBuffer> {
  const size = ownParts().size(name)
  const bytes = new Uint8Array(new ArrayBuffer(size, { maxByteLength: size }))
  ownParts().read(name, bytes)
  return bytes
}
