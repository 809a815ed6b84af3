import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { infer, json, temporaryFolder } from '../_infer.ts'

test('creating an organization also creates the data directory, and the organization is listed', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const created = await infer([
    'org',
    'create',
    'acme',
    '--plan',
    'pro',
    '--jobs-per-minute',
    '0',
    '--json',
    '--data-dir',
    dataDir,
  ])
  expect([created.exitCode, created.stderr]).toEqual([0, ''])
  const { organization } = json(created) as { organization: { id: string } }
  expect(organization).toMatchObject({
    id: expect.stringMatching(/^org_/) as string,
    name: 'acme',
    plan: 'pro',
    status: 'active',
    requests_per_minute: null,
    jobs_per_minute: 0,
  })
  expect(json(await infer(['org', 'list', '--json'], { env: { INFER_DATA_DIR: dataDir } }))).toEqual({
    organizations: [organization],
  })
  const table = await infer(['org', 'list', '--data-dir', dataDir])
  expect(table.stdout).toMatch(new RegExp(`^${organization.id} +acme +pro +active +\\d`, 'm'))
})

test('the name may be an option, or be omitted', async () => {
  const dataDir = temporaryFolder()
  const named = json(await infer(['org', 'create', '--name', 'acme', '--json', '--data-dir', dataDir]))
  expect(named).toMatchObject({ organization: { name: 'acme' } })
  const { organization } = json(await infer(['org', 'create', '--json', '--data-dir', dataDir])) as {
    organization: { id: string; name: string }
  }
  expect(organization.name).toBe(organization.id)
})

test('a name in use exits with 1', async () => {
  const dataDir = temporaryFolder()
  await infer(['org', 'create', 'acme', '--data-dir', dataDir])
  const again = await infer(['org', 'create', 'acme', '--data-dir', dataDir])
  expect([again.exitCode, again.stdout]).toEqual([1, ''])
  expect(again.stderr).toContain('acme')
})

test('created files can be read by their owner only', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  await infer(['org', 'create', 'acme', '--data-dir', dataDir])
  expect(statSync(dataDir).mode & 0o777).toBe(0o700)
  for (const file of ['infer.db', 'master-key']) expect(statSync(join(dataDir, file)).mode & 0o777).toBe(0o600)
})

test('a data directory that others can write to is refused with 64', async () => {
  const dataDir = temporaryFolder()
  chmodSync(dataDir, 0o777)
  const ended = await infer(['org', 'list', '--data-dir', dataDir])
  expect(ended.exitCode).toBe(64)
  expect(ended.stderr).toContain('chmod 700')
})

test('a data directory that cannot be created exits with 74', async () => {
  const file = join(temporaryFolder(), 'file')
  writeFileSync(file, '')
  const ended = await infer(['org', 'list', '--data-dir', join(file, 'data')])
  expect(ended.exitCode).toBe(74)
  expect(existsSync(join(file, 'data'))).toBe(false)
})

test('a file that is not a database exits with 65', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(join(dataDir, 'infer.db'), 'this is no database, whatever its name says. '.repeat(100))
  const ended = await infer(['org', 'list', '--data-dir', dataDir])
  expect(ended.exitCode).toBe(65)
})
