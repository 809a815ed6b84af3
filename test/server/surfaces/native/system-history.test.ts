import { expect, test } from 'vitest'
import { fakeModel, startApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

test('the history is for the owner of the machine, and begins after a time', async () => {
  await using app = await startApp({ models: [fakeModel('fake')] })
  const answer = await app.fetch('/api/system/history')
  expect(await answer.json()).toEqual({ object: 'system.history', interval_seconds: 10, samples: [] })
  const { secret, name } = await makeOrganization(app)
  const refused = await app.fetch('/api/system/history', { token: secret })
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining(`not of '${name}'`)])
  expect((await app.fetch('/api/system/history?after=x')).status).toBe(400)
  const milliseconds = await app.fetch(`/api/system/history?after=${Date.now()}`)
  expect(milliseconds.status).toBe(400)
  expect(await milliseconds.text()).toContain('milliseconds')
})
