import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findProgram } from '../../../../gpu/sandbox/program.ts'
import { describePods } from './_describe.ts'
import { type FakeCluster, startFakeCluster } from './_fake-cluster.ts'
import { temporaryFolder } from './_folder.ts'

const absent = findProgram('python3', process.env.PATH ?? '') ? undefined : 'python3 is not installed'

describe.skipIf(absent !== undefined)(`pods${absent ? ` (${absent})` : ''}`, () => {
  let fake: FakeCluster
  beforeAll(async () => {
    fake = await startFakeCluster(temporaryFolder())
  })
  afterAll(() => fake.close())

  describePods(
    'engines as pods',
    () => fake.cluster,
    fails => fake.server.fail(fails),
  )

  test('all of that needs no right that the manifest does not give', () => expect([...fake.role.refused]).toEqual([]))
})
