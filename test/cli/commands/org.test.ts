import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
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
    limits: { api_requests_per_minute: null, job_submissions_per_minute: 0 },
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

test('an organization is created with a plan of infer.yaml; a refusal names all plans', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(join(dataDir, 'infer.yaml'), 'plans:\n  team:\n    requests_per_minute: 5\n')
  const create = (plan: string) => infer(['org', 'create', plan, '--plan', plan, '--json', '--data-dir', dataDir])
  expect(json(await create('team'))).toMatchObject({ organization: { name: 'team', plan: 'team' } })
  const refused = await create('gold')
  expect(refused.exitCode).toBe(65)
  expect(refused.stderr).toContain("no plan 'gold'. The plans of this server are: free, pro, enterprise, team.")
})

test('without a server an organization is changed, limited, suspended, resumed and deleted', async () => {
  const dataDir = temporaryFolder()
  const env = { INFER_DATA_DIR: dataDir }
  const run = async (...args: string[]) => {
    const ended = await infer(['org', ...args], { env })
    expect(ended.exitCode, ended.stderr).toBe(0)
    return ended
  }
  await run('create', 'acme', '--plan', 'pro', '--spend-limit', '12.5')
  const limited = await run(
    'limits',
    'acme',
    '--pending-jobs',
    '5',
    '--stored-bytes',
    '2GiB',
    '--local-only',
    'yes',
    '--json',
  )
  expect(json(limited)).toMatchObject({
    plan: 'pro',
    limits: {
      pending_jobs: 5,
      stored_bytes: 2 * 2 ** 30,
      monthly_spend_limit: 12.5,
      uploads_per_day: null,
      local_only: true,
    },
  })
  const table = (await run('limits', 'acme')).stdout
  expect(table).toMatch(/^requests per minute +600 +\(of the plan\)$/m)
  expect(table).toMatch(/^pending jobs +5$/m)
  expect(table).toMatch(/^stored bytes +2.0 GiB$/m)
  expect(table).toMatch(/^uploads per day +no limit +\(of the plan\)$/m)
  expect(table).toMatch(/^spend limit per month +12\.50$/m)
  expect(table).toMatch(/^stays on this machine +yes$/m)
  expect(json(await run('limits', 'acme', '--local-only', 'none', '--json'))).toMatchObject({
    limits: { local_only: null },
    effective: { local_only: false },
  })
  expect((await run('show', 'acme')).stdout).toMatch(/^share +2 +\(of the plan\)$/m)
  const updated = await run('update', 'acme', '--name', 'Acme Ltd', '--share', '7', '--region', 'EU', '--json')
  expect(json(updated)).toMatchObject({ organization: { name: 'Acme Ltd', share: 7, region: 'EU' } })
  const cleared = await run('update', 'Acme Ltd', '--share', 'none', '--region', 'none', '--json')
  expect(json(cleared)).toMatchObject({ organization: { share: null, region: null } })
  expect((await run('suspend', 'Acme Ltd')).stdout).toBe('Suspended the organization Acme Ltd.\n')
  expect((await run('show', 'Acme Ltd')).stdout).toMatch(/^status +suspended$/m)
  expect((await run('resume', 'Acme Ltd')).stdout).toBe('Resumed the organization Acme Ltd.\n')
  expect((await run('delete', 'Acme Ltd', '--yes')).stdout).toMatch(/^Deleted the organization Acme Ltd \(org_/)
  expect(json(await run('list', '--json'))).toEqual({ organizations: [] })
  const [deleted] = (json(await run('list', '--all', '--json')) as { organizations: { id: string }[] }).organizations
  expect(deleted).toMatchObject({ name: 'Acme Ltd', status: 'deleted' })
  const audit = await infer(['audit', '--org', deleted!.id, '--json'], { env })
  const { entries } = json(audit) as { entries: { action: string; actor: object }[] }
  expect(entries.map(({ action }) => action.replace('organization.', '')).toReversed()).toEqual([
    'created',
    'updated',
    'updated',
    'updated',
    'updated',
    'suspended',
    'resumed',
    'deleted',
  ])
  expect(entries[0]!.actor).toMatchObject({
    type: 'command_line',
    os_user: expect.any(String) as string,
    token_id: null,
  })
})

test.each([
  [['update', 'acme'], 64, 'Nothing to change'],
  [['limits', 'acme', '--pending-jobs', 'many'], 64, 'a whole number'],
  [['limits', 'acme', '--spend-limit', '-1'], 64, 'a number'],
  [['update', 'acme', '--plan', 'gold'], 65, "There is no plan 'gold'"],
  [['delete', 'acme'], 64, '--yes'],
  [['show', 'acne'], 1, 'Available: acme'],
])('infer org %j exits with %i', async (args, code, text) => {
  const dataDir = temporaryFolder()
  await infer(['org', 'create', 'acme', '--data-dir', dataDir])
  const ended = await infer(['org', ...args, '--data-dir', dataDir])
  expect([ended.exitCode, ended.stdout]).toEqual([code, ''])
  expect(ended.stderr).toContain(text)
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

test('a file that cannot be read exits with 74, and with --json standard error is one document', async () => {
  const dataDir = temporaryFolder()
  mkdirSync(join(dataDir, 'infer.yaml'))
  const ended = await infer(['org', 'create', 'acme', '--json', '--data-dir', dataDir])
  expect([ended.exitCode, ended.stdout]).toEqual([74, ''])
  expect(JSON.parse(ended.stderr)).toMatchObject({
    error: {
      code: 'invalid_value',
      message: expect.stringContaining('infer.yaml cannot be read: illegal operation on a directory') as string,
    },
  })
  expect((await infer(['org', 'list', '--data-dir', dataDir])).exitCode).toBe(0)
})
