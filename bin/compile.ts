import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { constants, Script } from 'node:vm'

/**
 * Run by bin/executable.ts on the Node that becomes the executable: `compile.ts <program> <text> <cache>`. Starts the server
 * once, on an empty data directory, and stores what V8 has compiled when it is ready: nearly all functions that a
 * start runs, and no others.
 */
const [program = '', text = '', cache = ''] = process.argv.slice(2).map(path => resolve(path))
const folder = mkdtempSync(join(tmpdir(), 'infer-compile-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

const source = readFileSync(program, 'latin1').replace(/^#!.*/, '')
const wrapped = `(function (exports, require, module, __filename, __dirname) {${source}\n})`
writeFileSync(text, wrapped, 'latin1')

const script = new Script(wrapped, { importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER })
process.argv = [process.argv[0]!, program, 'serve', '--data-dir', folder, '--listen', '127.0.0.1:0']
const module = { exports: {} }
const run = script.runInThisContext() as (...given: unknown[]) => void
run(module.exports, createRequire(program), module, program, dirname(program))

const address = join(folder, 'server.json')
while (!existsSync(address)) await delay(10)
const { url } = JSON.parse(readFileSync(address, 'utf8')) as { url: string }
await fetch(`${url}/readyz`)
// The server has changed them by now, and V8 takes a cache only under the options that it was made under.
setFlagsFromString('--allocation-site-pretenuring')
setFlagsFromString('--heap-growing-percent=0')
writeFileSync(cache, script.createCachedData())
process.exit(0)
