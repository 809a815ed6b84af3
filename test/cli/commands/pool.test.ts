import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { addPool, removePool } from '../../../core/models/edit.ts'
import { noSshServer, openBox } from '../../gpu/launcher/ssh/_box.ts'
import { infer, inferProcess, json, temporaryFolder } from '../_infer.ts'

describe('a pool is added to infer.yaml', () => {
  const box = { kind: 'ssh', host: 'me@box', port: undefined }
  test.each([
    ['', '# yaml-language-server: $schema=./infer.schema.json\npools:\n  b:\n    kind: ssh\n    host: me@box\n'],
    ['toys: true # mine', 'toys: true # mine\npools:\n  b:\n    kind: ssh\n    host: me@box\n'],
    [
      'pools:\n    lab: {kind: ssh, host: lab} # a\n\n# models\nmodels: []\n',
      'pools:\n    lab: {kind: ssh, host: lab} # a\n    b:\n      kind: ssh\n      host: me@box\n\n# models\nmodels: []\n',
    ],
  ])('%j', (before, after) => expect(addPool(before, 'b', box)).toBe(after))

  test('once', () =>
    expect(() => addPool('pools: {b: {kind: ssh, host: b}}', 'b', box)).toThrow("infer.yaml already has a pool 'b'."))
})

describe('a pool is taken out of infer.yaml', () => {
  test.each([
    ['pools:\n  b: {kind: ssh, host: b} # b\nmodels: [] # mine\n', 'models: [] # mine\n'],
    [
      '# all\npools:\n  # first\n  a: {kind: ssh, host: a}\n  b:\n    # inside\n    kind: ssh\n    host: b\n  c: {kind: ssh, host: c}\n',
      '# all\npools:\n  # first\n  a: {kind: ssh, host: a}\n  c: {kind: ssh, host: c}\n',
    ],
    ['pools: {a: {kind: ssh, host: a}, b: {kind: ssh, host: b}}\n', 'pools: {a: {kind: ssh, host: a}}\n'],
  ])('%j', (before, after) => expect(removePool(before, 'b')).toBe(after))

  test('that is there, and that no model names', () => {
    expect(() => removePool('pools: {a: {kind: ssh, host: a}}', 'b')).toThrow("infer.yaml has no pool 'b'.")
    const used = {
      pools: { b: { kind: 'ssh', host: 'b' } },
      models: [{ id: 'm', engine: 'custom', command: ['m'], memory: '1GiB', pools: ['local', { pool: 'b' }] }],
    }
    expect(() => removePool(JSON.stringify(used), 'b')).toThrow("In infer.yaml 'm' names the pool 'b'.")
  })
})

const missing = noSshServer()
const box = missing === undefined ? await openBox() : undefined
afterAll(() => box?.close())

test.skipIf(missing !== undefined)('a machine is checked, added, listed and cleaned', async () => {
  const [dataDir, programs] = [temporaryFolder(), temporaryFolder()]
  const config = join(box!.folder, 'ssh_config')
  writeFileSync(join(programs, 'ssh'), `#!/bin/sh\nexec /usr/bin/ssh -F '${config}' "$@"\n`)
  chmodSync(join(programs, 'ssh'), 0o700)
  const env = { INFER_DATA_DIR: dataDir, PATH: `${programs}:${process.env.PATH}` }
  const { host, port, identity_file: key } = box!.settings
  const add = ['pool', 'add', host, '--name', 'box2', '--port', String(port), '--identity-file']

  const refused = await inferProcess([...add, join(box!.folder, 'host')], { env })
  expect(refused.stderr).toContain(`'${host}' accepts no key of this user`)
  expect(refused.exitCode).not.toBe(0)
  expect(existsSync(join(dataDir, 'infer.yaml'))).toBe(false)

  const added = await inferProcess([...add, key], { env })
  expect(added).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^cpu .*\n.*Added the pool 'box2' to/m) })
  expect(readFileSync(join(dataDir, 'infer.yaml'), 'utf8')).toContain(
    `pools:\n  box2:\n    kind: ssh\n    host: ${host}\n`,
  )
  expect(readdirSync(join(box!.cache, 'infer/pools'))).toEqual([])

  const listed = json(await infer(['pool', 'list', '--json'], { env }))
  expect(listed).toMatchObject({ pools: [{ name: 'box2', kind: 'ssh', host, port }] })
  const checked = await inferProcess(['doctor', '--pool', 'box2', '--json'], { env })
  const { findings } = json(checked) as { findings: { name: string; state: string; detail: string }[] }
  expect(findings.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['connection', 'programs there', 'infer there', 'GPUs', 'model files', 'trial engine']),
  )
  expect(findings.find(({ name }) => name === 'trial engine')).toMatchObject({ state: 'fine' })

  const unknown = await infer(['pool', 'clean', 'other'], { env })
  expect(unknown.stderr).toContain("There is no pool 'other'. See: infer pool list")

  const used = join(box!.cache, 'infer/models/0123456789abcdef')
  mkdirSync(used, { recursive: true })
  writeFileSync(join(used, 'm.gguf'), Buffer.alloc(1 << 20))
  const cleaned = await inferProcess(['pool', 'clean', 'box2', '--json'], { env })
  expect(cleaned.stderr).toBe('')
  expect(json(cleaned)).toMatchObject({ pool: 'box2' })
  for (const name of ['programs', 'models', 'pools']) expect(existsSync(join(box!.cache, 'infer', name))).toBe(false)

  const kept = await infer(['pool', 'remove', 'box2', '--keep-files'], { env })
  expect(kept.stdout).toContain("Removed the pool 'box2' from")
  expect(kept.stderr).toContain(`infer pool clean --host ${host} --port ${port} --identity-file ${key}`)
  expect(readFileSync(join(dataDir, 'infer.yaml'), 'utf8')).not.toContain('pools')
  mkdirSync(used, { recursive: true })
  const { stderr } = await inferProcess(['pool', 'clean', '--host', host, ...add.slice(5), key], { env })
  expect([stderr, existsSync(used)]).toEqual(['', false])
})

test('doctor says that a pool of Kubernetes has no kubeconfig', async () => {
  const dataDir = temporaryFolder()
  const kubeconfig = join(dataDir, 'none')
  const pools = { k8s: { kind: 'kubernetes', card_memory: '80GiB', kubeconfig } }
  writeFileSync(join(dataDir, 'infer.yaml'), JSON.stringify({ pools }))
  const { exitCode, stdout } = await infer(['doctor', '--pool', 'k8s'], { env: { INFER_DATA_DIR: dataDir } })
  expect(stdout).toContain(`The kubeconfig ${kubeconfig} cannot be read (ENOENT)`)
  expect(stdout).toContain("Set 'kubeconfig' of the pool.")
  expect(exitCode).not.toBe(0)
})
