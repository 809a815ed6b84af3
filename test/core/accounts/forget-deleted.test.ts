import { expect, test } from 'vitest'
import { openOrganizations } from '../../../core/accounts/organizations.ts'
import { openLog } from '../../../core/log.ts'
import { openAdminStore } from '../../../core/store/sqlite/admin.ts'
import { theServer } from '../../../core/store/store.ts'
import { temporary } from '../../gpu/launcher/_launch.ts'

test('a server forgets what it keeps of organizations that another process has deleted, and of its own', async () => {
  const log = openLog('error')
  const store = await openAdminStore(temporary())
  // The command line deletes without a server.
  const commandLine = openOrganizations({ store, log })
  const [gone, kept, next] = [
    await commandLine.create({ name: 'gone' }),
    await commandLine.create({ name: 'kept' }),
    await commandLine.create({ name: 'next' }),
  ]
  await commandLine.remove(gone.id, { force: true }, theServer)

  const forgotten: string[] = []
  const server = openOrganizations({ store, log, forget: async id => void forgotten.push(id) })
  await server.watch()
  await server.remove(next.id, { force: true }, theServer)
  await server.close()
  expect(forgotten.toSorted()).toEqual([gone.id, next.id].toSorted())
  expect(forgotten).not.toContain(kept.id)
  await store.close()
})
