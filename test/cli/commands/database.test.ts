import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { infer, json, temporaryFolder } from '../_infer.ts'

async function installation(...names: string[]) {
  const folder = temporaryFolder()
  const dataDir = join(folder, 'data')
  const run = (...args: string[]) => infer([...args, '--data-dir', dataDir])
  for (const name of names) await run('org', 'create', name)
  const organizations = async () =>
    (json(await run('org', 'list', '--json')) as { organizations: { name: string }[] }).organizations.map(
      ({ name }) => name,
    )
  return { folder, dataDir, run, organizations }
}

test('an undamaged database passes the check', async () => {
  const { run } = await installation('acme')
  const checked = await run('db', 'check', '--json')
  expect([checked.exitCode, checked.stderr]).toEqual([0, ''])
  expect(json(checked)).toMatchObject({ whole: true, findings: [], jobs: 0, ledger_rows: 0 })
  const text = await run('db', 'check', '--quick')
  expect(text).toMatchObject({
    exitCode: 0,
    stderr: '',
    stdout: expect.stringContaining('The database is intact') as string,
  })
})

/** Overwrites the middle of the database with zeros. */
function damage(path: string) {
  const bytes = readFileSync(path)
  bytes.fill(0, 4096, bytes.length - 4096)
  writeFileSync(path, bytes)
}

test('a damaged database exits with 65 and says what to do', async () => {
  const { dataDir, run } = await installation('acme')
  damage(join(dataDir, 'infer.db'))
  const checked = await run('db', 'check', '--json')
  expect(checked.exitCode).toBe(65)
  const { whole, findings } = json(checked) as { whole: boolean; findings: string[] }
  expect(whole).toBe(false)
  expect(findings.length).toBeGreaterThan(0)
  const text = await run('db', 'check')
  expect(text.exitCode).toBe(65)
  expect(text.stderr).toContain(`infer restore <file> --data-dir ${dataDir}`)
})

test('without a database there is nothing to check', async () => {
  const { run } = await installation()
  const ended = await run('db', 'check')
  expect(ended.exitCode).toBe(64)
  expect(ended.stderr).toContain('There is no database')
})

test('a restore brings back the data of the backup, and the replaced database is kept', async () => {
  const { folder, run, organizations } = await installation('before')
  const file = join(folder, 'copy.db')
  const copied = await run('backup', file, '--json')
  expect([copied.exitCode, json(copied)]).toEqual([0, { file, files: null, bytes: statSync(file).size }])
  expect(statSync(file).mode & 0o777).toBe(0o600)

  await run('org', 'create', 'after')
  expect(await organizations()).toEqual(expect.arrayContaining(['before', 'after']))
  const restored = await run('restore', file, '--json')
  expect(restored.exitCode).toBe(0)
  const { previous } = json(restored) as { previous: string }
  expect(existsSync(previous)).toBe(true)
  expect(await organizations()).toEqual(['before'])
})

test('the text output of a backup names the master key that belongs to it', async () => {
  const { folder, dataDir, run } = await installation('acme')
  const copied = await run('backup', join(folder, 'copy.db'))
  expect(copied.stdout).toMatch(/^Copied [\d.]+ KiB to .*copy\.db and verified it\.\n$/)
  expect(copied.stderr).toContain(join(dataDir, 'master-key'))
  expect(copied.stderr).toContain('Stored files are not included. Include them with --files <folder>.')
})

test('a backup does not overwrite a file', async () => {
  const { folder, run } = await installation('acme')
  const file = join(folder, 'precious')
  writeFileSync(file, 'precious')
  expect((await run('backup', file)).exitCode).toBe(64)
  expect(readFileSync(file, 'utf8')).toBe('precious')
})

test('a damaged database is repaired by a restore', async () => {
  const { folder, dataDir, run, organizations } = await installation('acme')
  await run('backup', join(folder, 'copy.db'))
  damage(join(dataDir, 'infer.db'))
  expect((await run('restore', join(folder, 'copy.db'))).exitCode).toBe(0)
  expect(await organizations()).toEqual(['acme'])
  expect((await run('db', 'check')).exitCode).toBe(0)
})

test.each([
  ['does not exist', undefined, 64],
  ['is not a database', Buffer.from('no database '.repeat(500)), 65],
])('a backup that %s is not restored, and nothing changes', async (_, content, exitCode) => {
  const { folder, dataDir, run, organizations } = await installation('acme')
  const file = join(folder, 'copy.db')
  if (content) writeFileSync(file, content)
  expect((await run('restore', file)).exitCode).toBe(exitCode)
  expect(await organizations()).toEqual(['acme'])
  expect(readdirSync(dataDir).filter(name => name.includes('restor'))).toEqual([])
})
