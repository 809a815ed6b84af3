import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { build, forkedScript, packaged, readAsset, selfCommand, version, workerPath } from '../../core/assets.ts'

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

test('from source the program knows its version and that it is not packed', () => {
  expect({ version, build, packaged }).toEqual({ version: manifest.version, build: 'source', packaged: false })
})

test('the program can start itself again', () => {
  const { file, args, env } = selfCommand(['--version'])
  expect(execFileSync(file, args, { env, encoding: 'utf8' }).trim()).toBe(manifest.version)
})

test('the entries of the threads exist', () => {
  expect(existsSync(workerPath('cpu-worker'))).toBe(true)
  expect(existsSync(workerPath('store-writer'))).toBe(true)
})

// Other tests start them from bundles (test/README.md).
test('from source its threads and children are started from source', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-assets-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const program = `
    import { execFileSync } from 'node:child_process'
    import { selfCommand, workerPath } from './core/assets.ts'
    import { openCpu } from './core/cpu/cpu.ts'
    import { openLog } from './core/log.ts'
    import { openAdminStore } from './core/store/sqlite/admin.ts'
    const cpu = openCpu()
    const header = await cpu.ggufHeader('dist/assets/models/tiny-chat.gguf')
    await cpu.close()
    const store = await openAdminStore(process.argv[1], openLog('error'))
    await store.close()
    const { file, args } = selfCommand(['--version'])
    const version = execFileSync(file, args, { encoding: 'utf8' }).trim()
    console.log(JSON.stringify([typeof header, version, args[0], workerPath('cpu-worker'), workerPath('store-writer')]))`
  const out = execFileSync(process.execPath, ['-e', program, dataDir], { encoding: 'utf8' })
  const sources = ['cli/main.ts', 'cli/cpu-worker.ts', 'core/store/sqlite/writer.ts'].map(path => resolve(path))
  expect(JSON.parse(out)).toEqual(['object', manifest.version, ...sources])
})

test('the error for an asset that is not built names the command that builds it', () => {
  expect(() => readAsset('docs/no-such-asset.js')).toThrow(/no-such-asset\.js is missing\. Run: npm run build/)
})

test('from source fork() is unchanged', () => {
  expect(forkedScript()).toBeUndefined()
})
