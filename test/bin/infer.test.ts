import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'

// The launcher in a separate checkout, whose program prints how it was started and exits as requested.
let checkout: string
beforeEach(() => {
  checkout = realpathSync(mkdtempSync(join(tmpdir(), 'infer-launcher-')))
  for (const folder of ['bin', 'dist']) mkdirSync(join(checkout, folder))
  writeFileSync(join(checkout, 'package.json'), '{"type":"module"}')
  for (const file of ['bin/infer.js', 'bin/node-flags.json']) copyFileSync(file, join(checkout, file))
  writeFileSync(
    join(checkout, 'dist/main.cjs'),
    `const [, , how, code] = process.argv
    process.on('SIGTERM', () => process.exit(43))
    if (how === 'wait') setInterval(() => {}, 1e6)
    console.log(JSON.stringify({ how, node: process.version, flags: process.execArgv }))
    if (how === 'exit') process.exit(Number(code))
    if (how === 'die') process.kill(process.pid, 'SIGKILL')`,
  )
})
afterEach(() => rmSync(checkout, { recursive: true, force: true }))

/** `old` presents this Node as an old version. */
function launch(args: string[], { old = false } = {}): ChildProcess {
  const disguise = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'18.19.0'}});process.execve=undefined`
  const flags = old ? ['--import', disguise] : []
  return spawn(process.execPath, [...flags, join(checkout, 'bin/infer.js'), ...args], { env: {} })
}

const ended = async (child: ChildProcess) => {
  const [out, err, [code, signal]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'close')])
  return { out, err, code: code as number | null, signal: signal as string | null }
}

const bringNode = () => symlinkSync(realpathSync('node_modules'), join(checkout, 'node_modules'))

test.each([
  { old: false, how: 'this process becomes the program' },
  { old: true, how: 'an old Node starts the Node that npm brought' },
])('arguments, Node flags and exit code are passed on: $how', async ({ old }) => {
  bringNode()
  const { out, code } = await ended(launch(['exit', '17'], { old }))
  expect(JSON.parse(out)).toEqual({
    how: 'exit',
    node: process.version,
    flags: expect.arrayContaining([expect.stringContaining('--max-semi-space-size=')]),
  })
  expect(code).toBe(17)
})

test.each([false, true])('a signal reaches the program (old Node: %s)', async old => {
  bringNode()
  const child = launch(['wait'], { old })
  const end = ended(child)
  await once(child.stdout!, 'data')
  child.kill('SIGTERM')
  expect(await end).toMatchObject({ code: 43, signal: null })
})

test('a killed program has the exit code that a shell gives it', async () => {
  bringNode()
  expect((await ended(launch(['die'], { old: true }))).code).toBe(137)
})

test('with an old Node and nothing installed, one sentence says what to do', async () => {
  const { err, code } = await ended(launch(['serve'], { old: true }))
  expect(err).toBe(
    `infer runs on Node 24 and this is Node 18.19.0. Run "npm ci" in ${checkout}/: it brings one along.\n`,
  )
  expect(code).toBe(70)
})

test('from source with nothing installed, one sentence says what to do', async () => {
  rmSync(join(checkout, 'dist'), { recursive: true })
  const { err, code } = await ended(launch(['serve']))
  expect(err).toBe(`The packages that infer is made of are not installed. Run "npm ci" in ${checkout}/.\n`)
  expect(code).toBe(70)
})
