import { join } from 'node:path'
import { expect, test } from 'vitest'
import { infer, json, temporaryFolder } from '../_infer.ts'

test('where there is no infer.yaml the check says what is offered instead, and what to do', async () => {
  const folder = temporaryFolder()
  const said = await infer(['config', 'check', '--data-dir', folder])
  expect([said.exitCode, said.stdout]).toEqual([
    0,
    `There is no ${join(folder, 'infer.yaml')}, so the models that ship with infer are offered. 'infer model add' makes it.\n`,
  ])
  expect(json(await infer(['config', 'check', '--data-dir', folder, '--json']))).toEqual({ path: null, models: [] })
})

test('a file that was named must be there', async () => {
  const said = await infer(['config', 'check', join(temporaryFolder(), 'other.yaml')])
  expect(said.exitCode).not.toBe(0)
  expect(said.stderr).toContain('other.yaml')
})
