import { expect, test } from 'vitest'
import { openStoredKeys } from '../../../core/accounts/keys.ts'
import { openOrganizations } from '../../../core/accounts/organizations.ts'
import { openLog } from '../../../core/log.ts'
import { openAdminStore } from '../../../core/store/sqlite/admin.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'

const day = 86_400_000

test('with --since only newer entries are listed', async () => {
  const dataDir = temporaryFolder()
  openStoredKeys(dataDir)
  const store = await openAdminStore(dataDir)
  const now = () => Date.now() - 3 * day
  await openOrganizations({ store, log: openLog('error'), now }).create({ name: 'acme' })
  await store.close()
  const run = (...args: string[]) => infer([...args, '--data-dir', dataDir])
  await run('org', 'update', 'acme', '--share', '7')
  const actions = async (...args: string[]) =>
    (json(await run('audit', '--json', ...args)) as { entries: { action: string }[] }).entries.map(one => one.action)
  expect(await actions()).toEqual(['organization.updated', 'organization.created'])
  expect(await actions('--since', '2d')).toEqual(['organization.updated'])
  expect(await actions('--since', new Date(now() - day).toISOString())).toHaveLength(2)
  expect((await run('audit', '--since', '2100-01-01')).exitCode).toBe(64)
})
