import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openHome } from './_home.ts'

const oneSentence = expect.stringMatching(/^Error: [^\n]+[.)\]]\n$/) as string

test.each([
  ['a command that is not there', ['sevre'], /serve/],
  ['an option that is not there', ['serve', '--prot', '1'], /--prot/],
  ['an address that is none', ['serve', '--listen', 'everywhere'], /host:port/],
  ['a length of time that is none', ['serve', '--drain-timeout', 'soon'], /250ms/],
  ['a scope that is not there', ['token', 'create', '--scopes', 'root'], /user:read/],
  ['a missing argument', ['restore'], /file/],
  ['a backup that is not there', ['restore', 'nowhere.db'], /nowhere\.db/],
  ['no database to look at', ['db', 'check'], /There is no database/],
])('%s: 64', async (_, args, says) => {
  await using home = openHome()
  const { code, out, err } = await home.run(args)
  expect([code, out]).toEqual([64, ''])
  expect(err).toMatch(says)
})

test.each([
  ['a configuration that is no YAML', 'models: [', /infer\.yaml/],
  ['an option of the configuration that is not there', 'modles: []\n', /modles/],
  ['a wrong value, with its line', 'listen: 127.0.0.1:0\nmodels: 3\n', /infer\.yaml:2/],
])('%s: 65', async (_, yaml, says) => {
  await using home = openHome()
  mkdirSync(home.dataDir, { mode: 0o700 })
  writeFileSync(join(home.dataDir, 'infer.yaml'), yaml)
  const { code, out, err } = await home.run(['serve', '--listen', '127.0.0.1:0'])
  expect([code, out]).toEqual([65, ''])
  expect(err).toMatch(says)
})

test('a file that is not a database: 65', async () => {
  await using home = openHome()
  mkdirSync(home.dataDir, { mode: 0o700 })
  writeFileSync(join(home.dataDir, 'infer.db'), 'no database '.repeat(1000))
  expect(await home.run(['serve', '--listen', '127.0.0.1:0'])).toMatchObject({ code: 65, out: '' })
})

test('a port in use: 74, with a message that names it', async () => {
  await using home = openHome()
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as { port: number }
  try {
    const { code, out, err } = await home.run(['serve', '--listen', `127.0.0.1:${port}`])
    expect([code, out, err]).toEqual([74, '', oneSentence])
    expect(err).toContain(`127.0.0.1:${port}`)
    expect(err).toContain('--listen')
  } finally {
    taken.close()
  }
})

test('a data directory that cannot be created: 74', async () => {
  await using home = openHome()
  writeFileSync(join(home.folder, 'file'), '')
  const { code, err } = await home.run([
    'serve',
    '--listen',
    '127.0.0.1:0',
    '--data-dir',
    join(home.folder, 'file/data'),
  ])
  expect([code, err]).toEqual([74, oneSentence])
})

test('a request that cannot be sent or is refused: 1', async () => {
  await using home = openHome()
  home.configure({})
  const alone = await home.run(['chat'], { input: 'Hello' })
  expect([alone.code, alone.err]).toEqual([1, expect.stringContaining('infer serve')])
  const server = home.serve()
  await server.ready
  const unknown = await home.run(['chat', 'gpt-9'], { input: 'Hello' })
  expect([unknown.code, unknown.out]).toEqual([1, ''])
  expect(unknown.err).toContain('gpt-9')
})

test('a successful command: 0', async () => {
  await using home = openHome()
  for (const args of [['--version'], ['--help'], ['serve', '--help'], []]) {
    const { code, out, err } = await home.run(args)
    expect([args, code, err]).toEqual([args, 0, ''])
    expect(out).not.toBe('')
  }
})
