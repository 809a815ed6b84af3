'use strict'
// The first lines of the executable: they start the program from its text and from what V8 made of it at the last pack.
// bin/README.md says why.
const { getRawAsset } = require('node:sea')
const { Script, constants } = require('node:vm')

const program = new Script(Buffer.from(getRawAsset('program.cjs')).latin1Slice(), {
  filename: process.execPath,
  cachedData: Buffer.from(getRawAsset('program.cache')),
  importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
})
if (program.cachedDataRejected) process.emitWarning('The code cache of this executable does not fit it.')
program.runInThisContext()(exports, require, module, __filename, __dirname)
