import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { inFolder } from '../../../gpu/caches/held-folder.ts'
import { temporary } from '../launcher/_launch.ts'

test('paths lead into the folder that was opened, whatever an engine puts in its place', async () => {
  const [folder, elsewhere] = [join(temporary(), 'own'), temporary()]
  mkdirSync(folder)
  writeFileSync(join(folder, 'one'), 'its own')
  writeFileSync(join(elsewhere, 'one'), 'a secret')
  const read = await inFolder(folder, async pathOf => {
    renameSync(folder, `${folder}-moved`)
    symlinkSync(elsewhere, folder)
    return readFileSync(pathOf('one'), 'utf8')
  })
  expect(read).toBe('its own')
  expect(await inFolder(folder, async () => 'followed')).toBeUndefined()
})
