import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { infer, json, temporaryFolder } from '../_infer.ts'

function setUp(models: readonly object[] = []) {
  const dataDir = temporaryFolder()
  const environment = join(dataDir, 'engines', 'python')
  mkdirSync(join(environment, 'bin'), { recursive: true })
  writeFileSync(join(environment, 'bin', 'python'), Buffer.alloc(2_048))
  writeFileSync(join(dataDir, 'infer.yaml'), JSON.stringify({ models }))
  const remove = (...args: string[]) => infer(['engine', 'remove', ...args, '--data-dir', dataDir])
  return { dataDir, environment, remove }
}
const user = { id: 'painter', engine: 'python', source: '/models/painter', tasks: ['slug/text-to-image'] }

test('an environment is deleted, and the space that it frees is named', async () => {
  const { dataDir, environment, remove } = setUp()
  const { exitCode, stdout } = await remove('python', '--yes')
  expect([exitCode, stdout]).toEqual([0, "Deleted the environment 'python': 2.0 KiB are free.\n"])
  expect(existsSync(environment)).toBe(false)
  expect(readdirSync(dataDir).filter(name => name.startsWith('.removed'))).toEqual([])
})

test('with --json', async () => {
  const { environment, remove } = setUp()
  expect(json(await remove('python', '--yes', '--json'))).toEqual({ name: 'python', path: environment, bytes: 2_048 })
})

test('an environment that a model uses stays, and the model is named', async () => {
  const { environment, remove } = setUp([user])
  const { exitCode, stderr } = await remove('python', '--yes')
  expect([exitCode, stderr]).toEqual([
    1,
    expect.stringContaining(
      "'painter' in infer.yaml uses the environment 'python'. Remove this model first: infer model remove painter",
    ),
  ])
  expect(existsSync(environment)).toBe(true)
})

test('without a terminal it needs --yes, and an unknown name is refused with the nearest', async () => {
  const { environment, remove } = setUp()
  expect((await remove('python')).stderr).toContain('Add --yes to confirm.')
  expect((await remove('pyton', '--yes')).stderr).toContain(
    "There is no engine or environment 'pyton' to delete. Did you mean 'python'?",
  )
  expect((await remove('../engines', '--yes')).stderr).toContain('There is no engine or environment')
  expect(existsSync(environment)).toBe(true)
})
